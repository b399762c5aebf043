"""Runs on a scheduler and workers that are processes of their own, with a shell in QEMU's place."""

import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path

import dask
import pytest

from cluster_support import Processes, drive, prepare, prepared, spec
from cohort import host, runs
from cohort.cluster import content, engine, job
from cohort.cluster.engine import Cluster
from cohort.errors import Failed, GuestError, HostError, MissingTool, UsageError
from cohort.results.rundir import RunDir
from cohort.vm.boot import Boot
from cohort.vm.guest import Limits
from cohort.vm.machine import Latency, VmSpec
from tests_support import Outcome

FILES = ("records.jsonl", "console.log", "metrics.json", "phone.conf", "cmdline", "config")
WAIT_S = 60.0


@dataclass(frozen=True)
class Lab:
    """Where things are, and the processes of the cluster."""

    root: Path
    flags: Path
    processes: Processes

    @property
    def done(self) -> int:
        """How many runs are finished."""
        return len(list((self.root / "out" / "runs").glob("*/meta.json")))

    @property
    def running(self) -> list[int]:
        """The ids of the processes in QEMU's place that were started."""
        return [int(path.suffix[1:]) for path in self.flags.glob("run.*")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A cluster of four workers, and all that a run needs."""
    root = tmp_path_factory.mktemp("cluster")
    flags = prepare(root, seconds=0.3)
    processes = Processes(root / "workers")
    with prepared(root):
        processes.start(4)
        yield Lab(root, flags, processes)
    processes.stop()


@pytest.fixture
def lab(shared: Lab) -> Iterator[Lab]:
    """The cluster with all its workers, and no flag set."""
    shared.processes.refill(4)
    yield shared
    for flag in shared.flags.glob("*"):
        if flag.name != "seconds":
            flag.unlink()


def wait_for(what: Callable[[], bool]) -> None:
    """Until it is so, within a time that is long on any host."""
    deadline = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def digests(done: list[RunDir]) -> list[dict[str, str]]:
    return [{name: host.digest_file(run.path / name) for name in FILES} for run in done]


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_workers_die_and_the_results_are_those_without_a_cluster(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of four are killed at random and replaced; each result is the same, and repeats."""
    specs = [spec(seed) for seed in range(10)]
    chance = random.Random(1)

    def far(runs_done: int) -> Callable[[], bool]:
        return lambda: lab.done >= runs_done

    def killer() -> None:
        for kill in range(3):
            wait_for(far(3 * kill + 2))
            lab.processes.kill(chance.choice(lab.processes.workers))
            lab.processes.add_worker()

    with Cluster(lab.processes.address, 0.3) as cluster, ThreadPoolExecutor(1) as pool:
        killed = pool.submit(killer)
        done = runs.execute_matrix(specs, engine=cluster)
        killed.result()
    workers = [run.meta["workers"] for run in done]
    assert sum(len(names) == 2 for names in workers) == 3
    assert all(len(set(names)) == len(names) for names in workers)
    half = (lab.root / "workers").rglob("*.part")
    # A compiler may outlive the worker that called it; what it writes is made anew if need be.
    assert not [x for x in half if not x.name.startswith("steady-")], "nothing half unpacked"
    monkeypatch.setenv("COHORT_OUT", str(lab.root / "here"))
    assert digests(runs.execute_matrix(specs, 4)) == digests(done)


def test_a_matrix_goes_on_where_it_was(lab: Lab) -> None:
    specs = [spec(seed) for seed in range(100, 103)]
    with Cluster(lab.processes.address, 0) as cluster:
        first = runs.execute_matrix(specs[:2], engine=cluster)
        started = [run.meta["started"] for run in first]
        runs_before = len(lab.running)
        again = runs.execute_matrix(specs, engine=cluster)
    assert [run.meta["started"] for run in again[:2]] == started
    assert len(lab.running) == runs_before + 1


def test_a_run_that_does_not_repeat_names_both_workers(lab: Lab) -> None:
    (lab.flags / "noisy").touch()
    with Cluster(lab.processes.address, 1) as cluster, pytest.raises(Failed) as error:
        runs.execute_matrix([spec(200)], engine=cluster)
    assert "does not repeat: records.jsonl of worker tcp://" in error.value.message
    assert error.value.message.count("tcp://127.0.0.1:") == 2
    kept = list((lab.root / "out" / "runs").glob("*.failed/records.jsonl*"))
    assert sorted(path.name for path in kept) == ["records.jsonl", "records.jsonl.again"]


SUITE_TOML = """\
title = "two"
memory_mb = 512
deterministic = true
[case]
a = "./a"
b = "./b"
"""
SUITE_FILES = ("cases.jsonl", "boot-1/records.jsonl", "boot-1/suite.conf", "boot-1/cmdline")


def suite_words(lab: Lab) -> list[str | Path]:
    """`cohort suite` of two cases under two policies, which need nothing of the host."""
    directory = lab.root / "two"
    directory.mkdir(exist_ok=True)
    (directory / "suite.toml").write_text(SUITE_TOML)
    policies = ("--policies", "none,tuned")
    return ["suite", "two", "--dir", directory, "--rootfs", "initramfs", *policies, "--json"]


def suite_digests(out: Path) -> dict[str, str]:
    made = out / "suites" / "runs" / "two"
    files = [f"{policy}/{name}" for policy in ("none", "tuned") for name in SUITE_FILES]
    return {name: host.digest_file(made / name) for name in files}


@pytest.fixture
def busybox(lab: Lab) -> None:
    """What stands for the shell of the guest's root."""
    program = lab.root / "bin" / "busybox"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)


@pytest.mark.usefixtures("busybox")
def test_a_suite_on_workers_says_what_it_says_here(
    lab: Lab, cohort: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = suite_words(lab)
    before = len(lab.running)
    there = cohort(*words, "--cluster", lab.processes.address, "--verify-share", "1")
    assert there.code == 0, there.stderr
    assert len(lab.running) == before + 4, "each made on two workers"
    digests_there = suite_digests(lab.root / "out")
    monkeypatch.setenv("COHORT_OUT", str(lab.root / "here"))
    here = cohort(*words)
    assert here.stdout == there.stdout
    assert '"pass": 2' in here.stdout
    assert suite_digests(lab.root / "here") == digests_there


@pytest.mark.usefixtures("busybox")
def test_a_case_that_kills_its_guest_on_a_worker_has_died(
    lab: Lab, cohort: Callable[..., Outcome]
) -> None:
    """What the guest said until then comes back, and another begins with the next case."""
    (lab.flags / "mortal").touch()
    words = (*suite_words(lab), "--cluster", lab.processes.address, "--verify-share", "0")
    done = cohort(*words)
    assert done.code == 1, done.stderr
    cases = sorted((lab.root / "out" / "suites" / "runs" / "two").glob("*/boot-2/suite.conf"))
    assert [path.read_text().splitlines()[-1] for path in cases] == ["case b 120 ./b"]
    assert '"died": 1' in done.stdout


@pytest.mark.usefixtures("busybox")
def test_a_suite_that_does_not_repeat_names_both_workers(
    lab: Lab, cohort: Callable[..., Outcome]
) -> None:
    (lab.flags / "noisy").touch()
    words = (*suite_words(lab), "--cluster", lab.processes.address, "--verify-share", "1")
    done = cohort(*words)
    assert done.code == 1
    assert re.search(r"two-\w+-boot-1 does not repeat: .* of worker tcp://.* and of", done.stderr)


def test_another_qemu_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "8")
    host.version.cache_clear()
    with Cluster(lab.processes.address, 0) as cluster, pytest.raises(MissingTool) as error:
        runs.execute_matrix([spec(300)], engine=cluster)
    host.version.cache_clear()
    for word in ("worker tcp://", "emulator version 9", "emulator version 8"):
        assert word in error.value.message


@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_command_that_ends_leaves_no_qemu_on_workers(
    lab: Lab, how: signal.Signals, code: int
) -> None:
    (lab.flags / "slow").touch()
    words = ["run", "none", "--launches", "2", "--seed", f"{400 + how}"]
    words += ["--cluster", lab.processes.address]
    command = lab.processes.fork(drive, lab.root, words)
    wait_for(lambda: len(lab.running) == 1)
    assert command.pid is not None
    os.kill(command.pid, how)
    command.join(WAIT_S)
    assert command.exitcode == code, (lab.root / "said").read_text()
    wait_for(lambda: gone(lab.running[0]))


def test_a_run_that_kills_its_workers_is_named(lab: Lab) -> None:
    (lab.flags / "deadly").touch()
    with Cluster(lab.processes.address, 0) as cluster, pytest.raises(HostError) as error:
        runs.execute_matrix([spec(500)], engine=cluster)
    assert "phone-2g-none-s500-" in error.value.message
    # The fourth may have started it before the command could call it off.
    assert re.search(r"the worker died [34] times: tcp://", error.value.message)
    assert len((lab.flags / "deadly").read_text().split()) in (3, 4)


def test_no_scheduler_there(
    own_out: Path, cohort: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "CONNECT_S", 1.0)
    start = time.monotonic()
    done = cohort("compare", "none", "region", "--cluster", "tcp://127.0.0.1:9")
    assert done.code == 8
    assert "no scheduler answers at tcp://127.0.0.1:9 within 1 s" in done.stderr
    assert time.monotonic() - start < WAIT_S
    assert not (own_out / "kernel").exists(), "before anything is built"


VERBS = [
    *(("compare", "none"), ("run", "none"), ("study", "cpb-fig3a"), ("scale", "none")),
    *(("tune", "pcpa"), ("suite", "fio")),
]


@pytest.mark.parametrize("verb", VERBS)
def test_an_address_that_is_none(
    own_out: Path, cohort: Callable[..., Outcome], verb: tuple[str, ...]
) -> None:
    done = cohort(*verb, "--cluster", "localhost")
    assert done.code == 2
    assert "--cluster localhost: not a scheduler's address" in done.stderr


def test_a_share_that_is_no_number(own_out: Path, cohort: Callable[..., Outcome]) -> None:
    words = ("compare", "none", "--cluster", "tcp://127.0.0.1:9", "--verify-share", "nan")
    done = cohort(*words)
    assert (done.code, "nan is not in the range" in done.stderr) == (2, True), done.stderr


def test_tls_without_keys(
    own_out: Path, cohort: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = cohort("compare", "none", "--cluster", "tls://127.0.0.1:9")
    assert (done.code, "which keys to take" in done.stderr) == (2, True), done.stderr
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in done.stderr
    gone = {"distributed.comm.tls.ca-file": "/nowhere", "distributed.comm.tls.client.cert": "/no"}
    with dask.config.set(gone):
        done = cohort("compare", "none", "--cluster", "tls://127.0.0.1:9")
    assert (done.code, "cannot be read" in done.stderr) == (2, True), done.stderr


def test_other_versions_are_named() -> None:
    def about(python: str, dask: str) -> dict[str, dict[str, str]]:
        return {"packages": {"python": python, "distributed": dask}}

    found = {"client": about("3.11.2.final.0", "1"), "scheduler": about("3.11.9.final.0", "1")}
    engine.check_versions(found | {"workers": {"tcp://a:1": about("3.11.2.final.0", "1")}})
    with pytest.raises(UsageError, match=r"worker tcp://a:1 has Python 3\.12, distributed 1,"):
        engine.check_versions(found | {"workers": {"tcp://a:1": about("3.12.1.final.0", "1")}})


def test_a_worker_boots_the_machine_that_was_described(tmp_path: Path) -> None:
    """Whatever a machine has, by the fields of its class: what is left out would be the usual."""
    files = {name: str(tmp_path / name) for name in ("kernel", "initrd", "storage")}
    vm = VmSpec(
        run_dir=tmp_path,
        kernel=tmp_path / "kernel",
        accel="tcg",
        memory_mb=512,
        cpus=3,
        initrd=tmp_path / "initrd",
        storage=tmp_path / "storage",
        latency=Latency(1, 2, 3),
        cmdline=("a", "b=c"),
        arch="arm64",
        nodes_mb=(128, 384),
        guaranteed_mb=64,
    )
    plain = VmSpec(tmp_path, tmp_path, "deterministic", 1, 1)
    same = {x.name for x in fields(vm) if getattr(vm, x.name) == getattr(plain, x.name)}
    assert same == {"run_dir", "keep_writes"}, "a new field is to be described, too"
    what = Boot(vm, "none", Limits(9.0, 8.0), counted="result")
    sent = json.loads(json.dumps(job.described(what)))
    assert job.read(tmp_path, sent | {"files": files}) == what
    with pytest.raises(UsageError, match="keeps what it writes"):
        job.described(replace(what, vm=replace(vm, keep_writes=True)))


def test_a_workers_error_comes_back_as_it_was() -> None:
    def fail() -> float:
        raise GuestError("the guest hung", console=["last words"])

    with pytest.raises(GuestError) as error:
        job.raise_error(job.outcome(fail), "tcp://a:1")
    assert error.value.message == "on worker tcp://a:1: the guest hung"
    assert error.value.console == ["last words"]
    job.raise_error(job.outcome(lambda: 1.0), "tcp://a:1")


def test_a_second_worker_that_cannot_boot_is_no_run_that_does_not_repeat() -> None:
    def lack() -> float:
        raise MissingTool("qemu is not there")

    def fail() -> float:
        raise GuestError("the guest hung")

    with pytest.raises(MissingTool, match="on worker tcp://b:1: qemu is not there"):
        job.raise_unable(job.outcome(lack), "tcp://b:1")
    job.raise_unable(job.outcome(fail), "tcp://b:1")
    job.raise_unable(job.outcome(lambda: 1.0), "tcp://b:1")


def test_the_same_lab_is_the_same_content() -> None:
    assert content.lab() == content.lab()
