"""Runs without their guests: what names them, what they leave, how many are made at a time."""

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cohort import capacity, checkout, host, runs
from cohort.capacity import OVERHEAD_MB, Load
from cohort.errors import CohortError, MissingTool, UsageError
from cohort.phone import initramfs
from cohort.policy import load_policy
from cohort.run_spec import RunSpec
from cohort.runs import Ended, Plan
from cohort.vm import devicetree, guest, machine, steady
from cohort.vm.accel import Wish
from cohort.vm.boot import Boot, Count
from cohort.vm.machine import VmSpec

MakePlan = Callable[..., Plan]
# Before a fixture has put it out of the way.
CHECK_TOOLS = runs._check_tools
Change = Callable[[pytest.MonkeyPatch, Path], None]


def spec(accel: Wish = "deterministic") -> RunSpec:
    """A short run of `none`."""
    return RunSpec(load_policy("none"), "phone-2g", 2, accel=accel)


class FakeEngine:
    """An engine whose guests say the least that a guest may. It keeps the names of the runs."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def width(self, runs: int, here: int = 1) -> int:
        """One at a time."""
        return 1

    def expect(self, runs: Sequence[str]) -> None:
        """There is nothing to prepare."""

    def boot(self, name: str, what: Boot, count: Count, stop: threading.Event) -> Ended:
        """Leave its records."""
        self.made.append(name)
        what.vm.records.write_text('{"r":"end","t":9,"ok":true,"launches":2}\n')
        return Ended(1.0)


def _model(patch: pytest.MonkeyPatch, directory: Path) -> None:
    other = replace(machine.EMULATORS["x86_64"], cpu="max")
    patch.setitem(machine.EMULATORS, "x86_64", other)


def _accelerator(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setitem(machine.ACCEL_ARGS, "deterministic", ("-accel", "tcg", "-icount", "shift=1"))


def _command_line(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(machine, "CMDLINE", (*machine.CMDLINE, "quiet"))


def _device(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(machine, "PORT", "org.other")


def _library(patch: pytest.MonkeyPatch, directory: Path) -> None:
    changed = directory / "changed.c"
    changed.write_text(steady.SOURCE.read_text().replace("GIVE_UP_S 60", "GIVE_UP_S 61"))
    patch.setattr(steady, "SOURCE", changed)


def _flags(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(steady, "FLAGS", (*steady.FLAGS, "-DX"))


def _nodes(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(initramfs, "NODES", initramfs.NODES[:-1])


CHANGES = (_model, _accelerator, _command_line, _device, _library, _flags, _nodes)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_what_the_lab_gives_a_guest_is_in_the_name_of_its_run(
    change: Change, planned: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was made before the change would else be taken for one of today."""
    before = planned(spec()).path.name
    assert planned(spec()).path.name == before
    change(monkeypatch, tmp_path)
    assert planned(spec()).path.name != before


def test_a_free_running_guest_has_nothing_loaded(
    planned: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = spec("tcg")
    before = planned(free).path.name
    _library(monkeypatch, tmp_path)
    assert planned(free).path.name == before


def test_a_run_has_one_name_wherever_its_files_are(
    planned: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(spec())
    name, place = plan.path.name, plan.path.parent
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in (plan.guest, plan.storage):
        shutil.copy(file, elsewhere)
    moved = replace(
        plan,
        kernel=replace(plan.kernel, image=elsewhere / "image", directory=elsewhere),
        guest=elsewhere / "phone",
        storage=elsewhere / "store",
    )
    monkeypatch.setenv("COHORT_OUT", str(elsewhere / "out"))
    monkeypatch.setattr(host, "need", lambda program: elsewhere / program)
    assert moved.path.name == name
    assert moved.path.parent != place


def test_what_is_reserved_in_the_device_tree_names_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = VmSpec(tmp_path, tmp_path / "Image", "tcg", 1024, 2, arch="arm64")
    reserved = replace(plain, guaranteed_mb=260)
    before = guest.identity(reserved)
    assert before != guest.identity(plain)
    monkeypatch.setattr(devicetree, "_ALIGN", 2 << 20)
    assert guest.identity(reserved) != before


def test_what_boots_a_guest_is_looked_for_before_a_kernel_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find(program: str) -> Path | None:
        return None if program in ("setpriv", "mke2fs", "qemu-system-x86_64") else Path(program)

    monkeypatch.setattr(host, "find", find)
    monkeypatch.setattr(runs, "_check_tools", CHECK_TOOLS)
    monkeypatch.setattr(runs, "prepare", lambda specs: pytest.fail("a kernel is built"))
    with pytest.raises(MissingTool, match="^mke2fs, qemu-system-x86_64, setpriv are not"):
        runs.execute_matrix([spec()])


@pytest.mark.usefixtures("prepared")
def test_a_run_that_cannot_be_measured_is_no_finished_run(
    own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of all finished runs, and sets of them, go by meta.json."""

    def refuse(records: object) -> None:
        raise CohortError("record 1 ('end'): lacks 'ok'")

    monkeypatch.setattr(runs, "compute_metrics", refuse)
    with pytest.raises(CohortError, match="lacks 'ok'"):
        runs.execute_matrix([spec()], engine=FakeEngine())
    made = own_out / "runs"
    assert list(made.glob("*/meta.json")) == []
    assert [x.parent.suffix for x in made.glob("*/records.jsonl")] == [".failed"]


@pytest.mark.usefixtures("prepared")
def test_what_tells_of_a_finished_run_is_written_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the lab is killed while it measures."""
    [run] = runs.execute_matrix([spec()], engine=FakeEngine())
    assert run.meta["policy"] == "none" and "kills" in run.metrics
    written: list[str] = []
    write = host.write_json

    def note(path: Path, value: object) -> None:
        written.append(path.name)
        write(path, value)

    monkeypatch.setattr(host, "write_json", note)
    runs.execute_matrix([replace(spec(), fresh=True)], engine=FakeEngine())
    assert written == ["metrics.json", "meta.json"]


@pytest.mark.usefixtures("prepared")
def test_a_note_of_a_workload_makes_no_run_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of before and after it had been of two workloads, which no table takes."""
    [run] = runs.execute_matrix([spec()], engine=FakeEngine())
    before = run.meta
    monkeypatch.setattr(runs.Plan, "workload_digest", property(lambda _: "another"))
    [again] = runs.execute_matrix([spec()], engine=FakeEngine())
    assert again.meta == before | {"workload_digest": "another"}


@pytest.fixture
def small_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Make this host one of so many CPUs, of those that the process may use, and MiB available."""

    def make(cpus: int, memory_mb: int) -> None:
        meminfo = tmp_path / "meminfo"
        total = f"MemTotal: {1 << 30} kB\nMemFree: 1 kB\n"
        meminfo.write_text(f"{total}MemAvailable: {memory_mb << 10} kB\n")
        monkeypatch.setattr(capacity, "MEMINFO", meminfo)
        monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(cpus)))
        monkeypatch.setattr("os.cpu_count", lambda: 64)

    return make


def test_guests_have_cpus_and_memory_to_themselves(
    small_host: Callable[[int, int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(
        capacity.log, "warning", lambda text, *sizes: told.append((text % sizes).split(" swap")[0])
    )
    small_host(8, 1 << 20)
    assert [capacity.guests([Load(threads, 64)]) for threads in (1, 2, 3, 9)] == [8, 4, 2, 1]
    assert capacity.guests([Load(1, 64), Load(4, 64)]) == 2, "by the largest"
    assert capacity.guests([]) == 8
    small_host(8, 3 * (1024 + OVERHEAD_MB) + 1)
    assert [capacity.guests([Load(1, mb)]) for mb in (1024, 1025, 9000)] == [3, 2, 1]
    assert told == ["a guest takes 9512 MiB of memory, and 4609 are available: this machine may"]
    (tmp_path / "meminfo").write_text("MemTotal: 1 kB\n")
    assert capacity.guests([Load(1, 9000)]) == 8, "an old kernel does not say"


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize(("accel", "wide"), [("deterministic", 6), ("tcg", 3)])
def test_runs_are_made_beside_one_another_if_no_guest_disturbs_another(
    accel: Wish,
    wide: int,
    small_host: Callable[[int, int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The phone has two CPUs: free-running ones are two threads, which others would hold up."""
    small_host(6, 1 << 20)
    widths: list[int] = []
    monkeypatch.setattr(runs, "together", lambda calls, width: widths.append(width))
    runs.execute_matrix([replace(spec(accel), seed=seed) for seed in (1, 2, 3)])
    small_host(6, 3 * (2048 + OVERHEAD_MB) - 1)
    runs.execute_matrix([spec(accel)])
    runs.execute_matrix([spec(accel)], jobs=5)
    assert widths == [wide, 2, 5]


@pytest.mark.usefixtures("prepared")
def test_a_run_of_another_commit_is_refused_before_any_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A set of records is of one commit, and its runs take hours."""
    engine = FakeEngine()
    monkeypatch.setattr(checkout, "commit", lambda: "0123")
    [old] = runs.execute_matrix([spec()], engine=engine)
    monkeypatch.setattr(checkout, "commit", lambda: "4567")
    wanted = [replace(spec(), seed=seed, one_commit=True) for seed in (2, 1)]
    with pytest.raises(UsageError) as caught:
        runs.execute_matrix(wanted, engine=engine)
    assert (
        f"1 of 2 runs are there and of another commit than this, 4567: first {old.path.name}"
        in (caught.value.message)
    )
    assert "of 0123" in caught.value.message and "--fresh" in str(caught.value.hint)
    assert engine.made == [old.path.name]
    again = runs.execute_matrix([replace(x, fresh=True) for x in wanted], engine=engine)
    assert [run.meta["versions"]["cohort_git"] for run in again] == ["4567"] * 2
    assert runs.execute_matrix(wanted, engine=engine) == again
    assert len(engine.made) == 3, "those of this commit are taken"
