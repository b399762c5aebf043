"""A Dask scheduler and workers as processes of their own, and a shell script in QEMU's place.

As a program it measures what the engine costs a run:

    .venv/bin/python tests/cluster_support.py --workers 4 --runs 40 --seconds 0.5
"""

import argparse
import asyncio
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

from cohort import cli, host, runs
from cohort.cluster.engine import Cluster
from cohort.kernel import build
from cohort.kernel.build import Kernel
from cohort.phone import initramfs
from cohort.policy import load_policy
from cohort.run_spec import RunSpec

FAKE_QEMU = """\
#!/bin/sh
if [ "$1" = --version ]; then echo "QEMU emulator version ${FAKE_VERSION:-9}"; exit; fi
for word; do
	case "$word" in
	file,id=console,path=*) console=${word#*path=} ;;
	file,id=records,path=*) records=${word#*path=} ;;
	*initramfs.cpio) sum=$(cksum < "$word") initrd=$word ;;
	esac
done
echo $$ > "$FAKE_FLAGS/run.$$"
read -r _ _ _ worker _ < /proc/$PPID/stat
[ ! -e "$FAKE_FLAGS/deadly" ] || { echo "$worker" >> "$FAKE_FLAGS/deadly"; kill -9 "$worker"; }
said=$sum
[ ! -e "$FAKE_FLAGS/noisy" ] || said=$$
echo '{"r":"switches","t":1,"files":{},"sra":false}' > "$records"
echo '{"r":"note","t":2,"text":"storage /dev/dm-0"}' >> "$records"
echo "{\\"r\\":\\"note\\",\\"t\\":3,\\"text\\":\\"$said\\"}" >> "$records"
[ ! -e "$FAKE_FLAGS/slow" ] || exec sleep 60
sleep "$(cat "$FAKE_FLAGS/seconds")"
echo "booted" > "$console"
# Of two that see it at once one takes it away.
if rm "$FAKE_FLAGS/mortal" 2> /dev/null; then
	echo '{"r":"case","t":4,"name":"a"}' >> "$records"
	exit
fi
rest='"lines":0,"ns":6'
# Dies when so many cases have ended: the file is named after the policy.
last=$(cat "$FAKE_FLAGS/late.$(basename "${initrd%/*/*}")" 2> /dev/null)
tr '\\0' '\\n' < "$initrd" | grep -a '^case ' | while read -r _ name _; do
	echo "{\\"r\\":\\"case\\",\\"t\\":4,\\"name\\":\\"$name\\"}"
	echo "{\\"r\\":\\"result\\",\\"t\\":5,\\"name\\":\\"$name\\",\\"status\\":0,$rest}"
	ended=$((ended + 1))
	[ "$ended" != "$last" ] || break
done >> "$records"
[ -z "$last" ] || { echo "Kernel panic - not syncing: too late" >> "$console"; exit; }
echo '{"r":"end","t":9,"ok":true,"launches":2}' >> "$records"
"""


def spec(seed: int) -> RunSpec:
    """A run that has the seed in its guest's conf."""
    return RunSpec(load_policy("none"), "phone-2g", 2, seed=seed)


def prepare(root: Path, seconds: float) -> Path:
    """Make what `prepared` needs: the script's runs take so many seconds. Its flags are files in
    the directory that is returned."""
    flags, programs = root / "flags", root / "bin"
    for directory in (flags, programs):
        directory.mkdir(parents=True)
    qemu = programs / "qemu-system-x86_64"
    qemu.write_text(FAKE_QEMU)
    qemu.chmod(0o755)
    (flags / "seconds").write_text(str(seconds))
    for name in ("image", "config", "phone", "store"):
        (root / name).write_bytes(name.encode() * 1000 + bytes(1 << 21))
    return flags


@contextmanager
def prepared(root: Path) -> Iterator[None]:
    """Kernel, guest and storage are there as the lab would have built them, and the script is in
    QEMU's place."""
    made = Kernel(root / "image", root / "config", "6.12", "i" * 16, "t" * 16, "x86_64")
    environment = {
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "FAKE_FLAGS": str(root / "flags"),
        "COHORT_OUT": str(root / "out"),
    }
    host.version.cache_clear()
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(runs, "build", lambda *_: made),
        mock.patch.object(runs, "build_guest", lambda *_, **__: root / "phone"),
        mock.patch.object(runs, "build_storage", lambda *_: root / "store"),
        mock.patch.object(build, "build", lambda *_: made),
        mock.patch.object(initramfs, "build_guest", lambda *_, **__: root / "phone"),
    ):
        yield
    host.version.cache_clear()


def drive(root: Path, words: list[str]) -> None:
    """Be the command, with stderr in a file `said`."""
    os.dup2(os.open(root / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with prepared(root):
        cli.main(words)


def serve_scheduler(said: Connection) -> None:
    """Be a scheduler that says its address."""
    from distributed import Scheduler

    async def serve() -> None:
        async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
            said.send(scheduler.address)
            await scheduler.finished()

    asyncio.run(serve())


def serve_worker(
    said: Connection, address: str, directory: str, environment: dict[str, str]
) -> None:
    """Be a worker of one run at a time that says when the scheduler knows it."""
    from distributed import Worker

    async def serve() -> None:
        async with Worker(
            address, nthreads=1, local_directory=directory, dashboard=False, host="127.0.0.1"
        ) as worker:
            said.send(worker.address)
            await worker.finished()

    os.environ.update(environment)
    asyncio.run(serve())


@dataclass
class Processes:
    """A scheduler and its workers, forked off a process that has imported Dask before."""

    directory: Path
    address: str = ""
    workers: list[BaseProcess] = field(default_factory=list)
    _scheduler: BaseProcess | None = None

    def start(self, workers: int) -> None:
        """Start the scheduler and so many workers."""
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["distributed", "cohort.cluster.engine"])
        here, there = self.context.Pipe()
        self._scheduler = self.fork(serve_scheduler, there)
        assert here.poll(60), "the scheduler does not start"
        self.address = here.recv()
        self.refill(workers)

    def refill(self, workers: int) -> None:
        """Start as many as are missing, and wait until the scheduler knows them."""
        self.workers = [worker for worker in self.workers if worker.is_alive()]
        started = [self.add_worker() for _ in range(workers - len(self.workers))]
        assert all(said.poll(60) for said in started), "a worker does not start"

    def add_worker(self) -> Connection:
        """One more worker; it says its address when the scheduler knows it."""
        here, there = self.context.Pipe()
        environment = {name: os.environ[name] for name in ("PATH", "FAKE_FLAGS")}
        words = (there, self.address, str(self.directory), environment)
        self.workers.append(self.fork(serve_worker, *words))
        return here

    def fork(self, target: Callable[..., None], *words: Any) -> BaseProcess:
        """A process of its own that calls `target` and ends with the tests."""
        process = self.context.Process(target=target, args=words, daemon=True)
        process.start()
        return process

    @property
    def pids(self) -> list[int]:
        """Of all of them, and of this process, which has the command in it."""
        parts = [process for process in (*self.workers, self._scheduler) if process is not None]
        return [os.getpid(), *(process.pid for process in parts if process.pid is not None)]

    def kill(self, worker: BaseProcess) -> None:
        """Kill a worker as a machine that loses power would."""
        worker.kill()
        worker.join()
        self.workers.remove(worker)

    def stop(self) -> None:
        """End all of them."""
        for process in [*self.workers, self._scheduler]:
            if process is not None:
                process.kill()
                process.join()


@dataclass(frozen=True)
class Cost:
    """Seconds of wall time, and of CPU time of all processes that were part of it."""

    wall: float
    cpu: float


def _cost(
    specs: list[RunSpec], jobs: int | None, pids: list[int], engine: runs.Engine | None
) -> Cost:
    start, before = time.monotonic(), sum(map(_cpu_s, pids))
    runs.execute_matrix(specs, jobs, engine=engine)
    return Cost(time.monotonic() - start, sum(map(_cpu_s, pids)) - before)


def _cpu_s(pid: int) -> float:
    """Seconds of CPU time of a process and the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _measure(workers: int, count: int, seconds: float) -> None:
    """Print what runs cost on the cluster, as many at a time here, and the difference a run."""
    specs = [spec(seed) for seed in range(count)]
    with tempfile.TemporaryDirectory() as name, prepared(Path(name)):
        prepare(Path(name), seconds)
        processes = Processes(Path(name) / "workers")
        processes.start(workers)
        with Cluster(processes.address, 0) as cluster:
            runs.execute_matrix([spec(count)], engine=cluster)  # ships what all need
            there = _cost(specs, None, processes.pids, cluster)
        processes.stop()
        os.environ["COHORT_OUT"] = str(Path(name) / "here")
        runs.execute_matrix([spec(count)])
        here = _cost(specs, workers, [os.getpid()], None)
    for place, cost in {"cluster": there, "here": here}.items():
        print(f"{place}: {count} runs of {seconds} s: {cost.wall:.1f} s, CPU {cost.cpu:.1f} s")
    print(f"of the engine: {1000 * (there.cpu - here.cpu) / count:.0f} ms of CPU time a run")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.5)
    given = parser.parse_args()
    _measure(given.workers, given.runs, given.seconds)
    sys.exit(0)
