"""`cohort status --watch`, and devices that are reached by adb and ssh."""

import io
import json
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from cohort import device, sysfs, watch
from cohort.device import fetch
from cohort.errors import HostError, UsageError
from tests_support import Outcome

# Gives the script to a shell whose root is the made machine.
FAKE = """\
#!/bin/sh
echo "$0 $*" | head -1 >> {log}
for script; do :; done
exec sh -c "cd {root}; ${{script#cd / || exit 1}}"
"""
FILES = {
    "proc/buddyinfo": "Node 0, zone  DMA32  1 2 0\nNode 0, zone Normal  4 0 3\n",
    "proc/meminfo": "MemTotal:        2014848 kB\nMemFree:  4 kB\n",
    "proc/zoneinfo": "Node 0, zone  DMA32\n        managed  500000\nNode 0, zone Normal\n"
    "  pages free     1\n        managed  3712\n",
    "proc/vmstat": "oom_kill 2\nworkingset_refault_anon 10\nworkingset_refault_file 30\n",
    "sys/kernel/mm/cohort/parked_kb": "12\n",
    "sys/kernel/mm/cohort/owned_free": "3 0 0 0 1 0 0 0 2 0 0\n",
    "sys/kernel/mm/cohort/region/order": "8\n",
    "sys/kernel/mm/cohort/region/enabled": "1\n",
    "sys/kernel/mm/cohort/region/process_blocks": "7\n",
    "sys/kernel/mm/cohort/region/process_parked_kb": "2048\n",
    "sys/kernel/mm/cohort/region/cache_blocks": "9\n",
    "sys/kernel/mm/cohort/region/cache_parked_kb": "0\n",
    "sys/kernel/mm/cohort/region/hot_blocks": "0\n",
    "sys/kernel/mm/cohort/region/hot_parked_kb": "0\n",
    "sys/kernel/mm/cohort/cpb/enabled": "0\n",
    "sys/kernel/mm/cohort/cpb/order": "4\n",
    "sys/kernel/mm/cohort/cpb/process_sets": "3\n",
    "sys/kernel/mm/cohort/cpb/reserved_kb": "64\n",
    "sys/kernel/mm/cohort/cpb/cpu_sets": "0\n",
    "sys/kernel/mm/cohort/cpb/cpu_kb": "0\n",
    "sys/fs/cgroup/app/memory.stat": "pgsteal 5\n",
    "proc/1/vnode": "app\n",
    "proc/1/cmdline": "init\0",
    "proc/2/vnode": "app\n",
    "proc/2/cmdline": "",
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    root = tmp_path / "machine"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def log(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An adb and an ssh that lead to the made machine; what they were called with."""
    log = tmp_path / "calls"
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("adb", "ssh"):
        (tools / name).write_text(FAKE.format(root=machine, log=log))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return log


def test_blocks_buffers_kills_and_refaults(machine: Path) -> None:
    now = watch.read(machine, 1.0)
    assert [(x.name, x.blocks, x.kb, x.parked_kb) for x in now.owners] == [
        ("cache", 9, 9 << 10, 0),
        ("process", 7, 7 << 10, 2048),
        ("process sets", 3, 192, 64),
    ]
    assert now.free == (5, 2, 3)
    assert now.largest_kb == 16
    assert [now.obtainable_kb(order) for order in (0, 1, 4)] == [20 + 16 + 48, 64, 0]
    assert now.obtainable_kb(8, owned=True) == 2048
    assert now.obtainable_kb(4, owned=True) == 2048 + 64
    assert (now.kills, now.refaults_anon, now.refaults_file) == (2, 10, 30)


def test_an_area_and_nodes_have_tables_of_their_own(machine: Path) -> None:
    assert (watch.read(machine, 1.0).area, watch.read(machine, 1.0).nodes) == ({}, ())
    area, nodes = (machine / "sys/kernel/mm/cohort" / name for name in ("pcpa", "vnode"))
    sizes = {f"{name}_kb": "1024\n" for name in watch.NODE_SIZES}
    for place, files in (
        (area, {"size": "0x4000000\n", **{f"{x}_kb": "2048\n" for x in sysfs.AREA_PARTS}}),
        (nodes, {"layout": "trusted:1G,others:rest\n"}),
        (nodes / "others", {**sizes, "oom_kills": "3\n"}),
        (nodes / "trusted", {**sizes, "oom_kills": "0\n", "lent_kb": "512\n"}),
    ):
        place.mkdir()
        for name, text in files.items():
            (place / name).write_text(text)
    now = watch.read(machine, 1.0)
    assert [(x.name, x.kb["lent"], x.kills) for x in now.nodes] == [
        ("trusted", 512, 0),
        ("others", 1024, 3),
    ]
    said = io.StringIO()
    Console(file=said, width=100).print(watch.screen(now, None))
    lines = [" ".join(line.split()) for line in said.getvalue().splitlines()]
    assert "area, MiB free cache client lent other" in lines
    assert "holds 2.0 2.0 2.0 2.0 2.0" in lines
    assert "trusted 1.0 1.0 1.0 1.0 1.0 0.5 0" in lines
    (area / "size").write_text("0\n")
    assert watch.read(machine, 1.0).area == {}


@pytest.mark.parametrize("width", [20, 40, 64])
def test_a_narrow_terminal_cuts_no_number(width: int, machine: Path) -> None:
    """An ellipsis stood in the place of the last digits."""
    said = io.StringIO()
    Console(file=said, width=width).print(watch.screen(watch.read(machine, 1.0), None))
    assert "\u2026" not in said.getvalue()


def test_a_device_whose_pages_are_larger(machine: Path) -> None:
    """Sizes are by the device's pages, not by those of the machine that asks."""
    path = machine / "proc/zoneinfo"
    path.write_text("Node 0, zone Normal\n  pages free     1\n        managed  125928\n")
    now = watch.read(machine, 1.0)
    assert (now.page_kb, now.largest_kb) == (16, 64)
    assert next(x.kb for x in now.owners if x.name == "cache") == 4 * 9 << 10
    said = io.StringIO()
    Console(file=said, width=100).print(watch.screen(now, None))
    assert "in pieces of 4 MiB and more" in said.getvalue()
    path.unlink()
    assert sysfs.page_kb(machine) == mmap.PAGESIZE >> 10


def lines_after(machine: Path, vmstat: str) -> list[str]:
    """The screen's lines, with single spaces, two seconds after a look that found other counts."""
    before = watch.read(machine, 1.0)
    (machine / "proc/vmstat").write_text(vmstat)
    said = io.StringIO()
    Console(file=said, width=100).print(watch.screen(watch.read(machine, 3.0), before))
    return [" ".join(line.split()) for line in said.getvalue().splitlines()]


def test_the_screen_has_rates(machine: Path) -> None:
    lines = lines_after(machine, "oom_kill 3\nworkingset_refault_file 50\n")
    assert "process 7 7.0 2.0" in lines
    assert "in pieces of 1 MiB and more 0.0 2.0" in lines
    assert "killed by the kernel 3 0.5" in lines
    assert "refaulted, file pages 50 10.0" in lines


def test_a_device_that_starts_again_has_no_rates_below_nothing(machine: Path) -> None:
    """Its counts begin anew; one that has come back so far has the rate of any other."""
    lines = lines_after(machine, "oom_kill 0\nworkingset_refault_file 32\n")
    assert "killed by the kernel 0 -" in lines
    assert "refaulted, anonymous pages 0 -" in lines
    assert "refaulted, file pages 32 1.0" in lines


def test_a_terminal_that_can_only_print_has_one_look_after_the_other(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.StringIO()
    dumb = Console(file=said, force_terminal=True, _environ={"TERM": "dumb"})
    monkeypatch.setattr(watch, "Console", lambda: dumb)
    watch.watch(lambda: watch.read(machine, 1.0), 0.1, 2)
    assert said.getvalue().count("killed by the kernel") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--watch --every nan --times 1", "nan is not in the range"),
        ("--watch --every inf --times 1", "inf is not in the range"),
        ("--every 3", "are of --watch"),
        ("--times 2", "are of --watch"),
    ],
)
def test_looks_that_make_no_sense(
    machine: Path, cohort: Callable[..., Outcome], words: str, said: str
) -> None:
    done = cohort("status", "--root", machine, *words.split())
    assert (done.code, said in done.stderr) == (2, True), done.stderr


def test_a_machine_without_blocks(machine: Path, cohort: Callable[..., Outcome]) -> None:
    """A kernel with Cohort off, and files that older ones lack."""
    top = machine / "sys/kernel/mm/cohort"
    (top / "owned_free").unlink()
    for path in (top / "region").iterdir():
        path.unlink()
    (top / "cpb/process_sets").write_text("0\n")
    done = cohort("status", "--root", machine, "--watch", "--times", "1")
    assert "none has any" in done.stdout
    assert "in one piece" in done.stdout


@pytest.mark.parametrize("scheme", ["region", "cpb"])
@pytest.mark.parametrize("order", ["-1", "17", "4000000000"])
def test_an_order_that_is_none(
    scheme: str, order: str, machine: Path, cohort: Callable[..., Outcome]
) -> None:
    path = machine / sysfs.SYSFS / scheme / "order"
    path.write_text(f"{order}\n")
    done = cohort("status", "--root", machine, "--watch", "--times", "1")
    assert (done.code, f"{path}: {order} is no order" in done.stderr) == (8, True), done.stderr


@pytest.mark.parametrize("target", ["adb", "adb:emulator-5554", "ssh:phone"])
def test_a_device_says_what_it_would_say_here(
    target: str, machine: Path, log: Path, cohort: Callable[..., Outcome]
) -> None:
    here = cohort("status", "--root", machine, "--json")
    there = cohort("status", "--on", target, "--json")
    assert (there.code, there.stdout) == (0, here.stdout), there.stderr
    called = log.read_text()
    assert ("-s emulator-5554" in called) == (target == "adb:emulator-5554")


def test_every_look_is_a_line_of_json(log: Path, cohort: Callable[..., Outcome]) -> None:
    words = "status --on ssh:phone --watch --every 0.1 --times 2 --json"
    done = cohort(*words.split())
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert second["t"] > first["t"]
    assert first["obtainable"]["8"] == {"free_kb": 0, "with_parked_kb": 2048}
    assert len([x for x in log.read_text().splitlines() if "ssh -o BatchMode=yes" in x]) == 2


@pytest.mark.usefixtures("log")
def test_a_device_that_does_not_answer(
    tmp_path: Path, machine: Path, cohort: Callable[..., Outcome]
) -> None:
    (tmp_path / "bin" / "adb").write_text("#!/bin/sh\necho 'no devices found' >&2\nexit 1\n")
    done = cohort("status", "--on", "adb")
    assert done.code == 8
    assert "adb does not answer: no devices found" in done.stderr
    for path in (machine / "sys/kernel/mm/cohort").rglob("*"):
        if path.is_file():
            path.unlink()
    assert cohort("status", "--on", "ssh:phone").code == 4


def test_a_device_that_hangs_is_given_up(
    tmp_path: Path, log: Path, cohort: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A phone that thrashes takes the connection and then says nothing, for ever."""
    monkeypatch.setattr(device, "LIMIT_S", 0.3)
    cohort("status", "--on", "ssh:phone")
    assert "-o ServerAliveInterval=5" in log.read_text()
    (tmp_path / "bin" / "adb").write_text("#!/bin/sh\nexec sleep 30\n")
    done = cohort("status", "--on", "adb", "--watch")
    assert done.code == 8
    assert "adb does not answer within 0 s\nhint: it may be too short of memory" in done.stderr


@pytest.mark.parametrize("target", ["", "usb", "ssh:", "ssh:-oProxyCommand=x"])
def test_a_target_that_is_none(target: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a machine"):
        fetch(target, tmp_path)


@pytest.mark.usefixtures("log")
def test_a_device_names_no_file_outside(tmp_path: Path) -> None:
    (tmp_path / "bin" / "ssh").write_text("#!/bin/sh\nprintf '\\001../../evil\\nx\\n'\n")
    with pytest.raises(HostError, match="outside"):
        fetch("ssh:phone", tmp_path / "copy")


def test_two_machines_at_once(tmp_path: Path, cohort: Callable[..., Outcome]) -> None:
    assert cohort("status", "--root", tmp_path, "--on", "adb").code == 2
