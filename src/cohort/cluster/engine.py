"""The side of the command: what is shipped, what is waited for, what is checked twice."""

import hashlib
import logging
import math
import operator
import re
import threading
import time
import uuid
import zlib
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import cloudpickle
import dask
from distributed import Client, Future, KilledWorker
from distributed.security import Security

from cohort import host
from cohort.cluster import content, job, node
from cohort.cluster.content import Content
from cohort.errors import Failed, HostError, Stopped, UsageError
from cohort.runs import Ended
from cohort.vm.boot import Boot, Count

log = logging.getLogger(__name__)

CONNECT_S = 5.0
POLL_S = 0.05
LOOK_S = 0.5
WIDTH = 256  # runs under way: each has a thread that waits
DEATHS = 3
TLS = "name them: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, and CLIENT__CERT and CLIENT__KEY likewise"
SAME = ("records.jsonl", "console.log")
"""What must be the same byte for byte when a run is made again."""


class NoneLeft(Exception):
    """The workers that might have made a run again are gone."""


@dataclass(frozen=True)
class Made:
    """A run as a worker made it: how it ended, and what the guest said, by file name."""

    worker: str
    told: dict[str, Any]
    files: dict[str, bytes]

    @classmethod
    def of(cls, result: dict[str, Any]) -> "Made":
        """From what `node.run` returns."""
        files = {name: zlib.decompress(packed) for name, packed in result["files"].items()}
        return cls(result["worker"], result["told"], files)

    def write(self, run_dir: Path, suffix: str = "") -> None:
        """What the guest said as files of the run directory."""
        for name, data in self.files.items():
            host.write_bytes(run_dir / f"{name}{suffix}", data)


@dataclass
class Attempt:
    """A run under way: which workers started it, and where its progress goes."""

    name: str
    count: Count
    stop: threading.Event
    workers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Sent:
    """A run for `node.run`: the job, and the files it needs beside the lab."""

    job: dict[str, Any]
    files: tuple[Path, ...]


class Cluster:
    """An engine: the workers of the Dask scheduler at `address`.

    A `share` of the runs that must repeat is made twice, on different workers. UsageError for an
    address that is none, and for a part of the cluster that has another Python or `distributed`
    than is here; HostError if no scheduler answers there within seconds.
    """

    def __init__(self, address: str, share: float) -> None:
        self._address = address
        self._share = share
        self._client = _connect(address)
        self._topic = f"cohort-{uuid.uuid4().hex}"
        self._attempts: dict[str, Attempt] = {}
        self._twice: frozenset[str] = frozenset()
        self._shared: dict[str, tuple[str, Future[Any]]] = {}
        self._lock = threading.Lock()
        self._client.subscribe_topic(self._topic, self._hear)
        try:
            # Now, and not after the kernels are built.
            check_versions(self._client.get_versions())
        except BaseException as error:
            self._client.close(timeout=CONNECT_S)
            if isinstance(error, OSError):
                raise HostError(f"the scheduler {address} is gone") from None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the scheduler, which calls off what is still under way."""
        self._client.close(timeout=CONNECT_S)

    def width(self, runs: int, here: int = 1) -> int:
        """All of them, whatever this host bears: the scheduler decides what waits, and may ask for
        more workers."""
        return max(1, min(runs, WIDTH))

    def expect(self, runs: Sequence[str]) -> None:
        """Choose which of the `runs` that must repeat are made twice: the same of the same names.

        UsageError names a worker that came since and cannot read what this command sends.
        """
        check_versions(self._client.get_versions())
        workers = self._workers()
        if not workers:
            log.warning("%s has no workers yet: runs wait for one", self._address)
        if len(workers) == 1 and self._share > 0 and runs:
            log.warning("%s has one worker: no run is checked on another", self._address)
        several = math.ceil(self._share * len(runs))
        self._twice = frozenset(sorted(runs, key=host.digest)[:several])

    def boot(self, name: str, what: Boot, count: Count, stop: threading.Event) -> Ended:
        """Have a worker boot it.

        Failed, with both workers' names, if the guest said other things on a second one; what that
        one says if it cannot boot it; HostError if workers die of it or the scheduler is gone; else
        as `cohort.vm.boot.boot`.
        """
        sent = _sent(what)
        made = self._make(sent, Attempt(name, count, stop))
        workers = [made.worker]
        if name in self._twice and "error" not in made.told:
            again = self._again(sent, Attempt(name, lambda _: None, stop), made.worker)
            if again is not None:
                workers.append(again.worker)
                job.raise_unable(again.told, again.worker)
                _compare(name, what.vm.run_dir, made, again)
        made.write(what.vm.run_dir)
        job.raise_error(made.told, made.worker)
        return Ended(made.told["wall_s"], tuple(workers))

    def _again(self, sent: Sent, attempt: Attempt, first: str) -> Made | None:
        """The run of another worker than the `first`, of another machine if there is one."""
        while others := _others(first, self._workers()):
            try:
                return self._make(sent, attempt, others)
            except NoneLeft:
                continue
        log.warning("%s is not checked: there is no worker but %s", attempt.name, first)
        return None

    def _make(self, sent: Sent, attempt: Attempt, workers: list[str] | None = None) -> Made:
        """The run from one of `workers`, or from any; again if it was lost."""
        while True:
            key = f"cohort-run-{uuid.uuid4().hex}"
            self._attempts[key] = attempt
            future = self._submit(key, sent, workers)
            try:
                return self._result(future, attempt, workers)
            except KilledWorker:
                # Dask also blames a run that only waited on workers that died.
                self._check_deaths(attempt)
                with self._lock:
                    self._shared.clear()
            finally:
                del self._attempts[key]
                future.release()

    def _submit(self, key: str, sent: Sent, workers: list[str] | None) -> "Future[Any]":
        """Ask for the run; what it needs and the cluster has not goes there first."""
        with self._lock:
            _, code = self._share_out("code", _code, cloudpickle.loads)
            shared = [
                self._share_out("lab", content.lab),
                *(self._share_out(str(x), partial(content.of_file, x)) for x in sent.files),
            ]
        digests = [digest for digest, _ in shared]
        futures = [future for _, future in shared]
        # No `allow_other_workers`: it lets an idle worker steal the run.
        return self._client.submit(
            operator.call, code, sent.job, digests, self._topic, *futures, key=key, workers=workers
        )

    def _share_out(
        self, name: str, make: Callable[[], Content], use: Callable[[bytes], Any] = bytes
    ) -> "tuple[str, Future[Any]]":
        """A content as a task's result: Dask brings it to each worker that needs it, once, and
        makes it again if all workers that had it died."""
        if name not in self._shared:
            made = make()
            key = f"cohort-content-{uuid.uuid4().hex}"
            self._shared[name] = made.digest, self._client.submit(use, made.packed, key=key)
        return self._shared[name]

    def _result(self, future: "Future[Any]", attempt: Attempt, workers: list[str] | None) -> Made:
        """Wait for the run. Stopped on `stop`; NoneLeft if the `workers` that were named are
        gone, HostError if the run cannot be had."""
        look = time.monotonic() + LOOK_S
        while not future.done():
            if attempt.stop.wait(POLL_S):
                raise Stopped
            if time.monotonic() > look:
                self._check_deaths(attempt)
                if workers and not set(workers) & set(self._workers()):
                    raise NoneLeft
                look = time.monotonic() + LOOK_S
        try:
            return Made.of(future.result())
        except KilledWorker:
            raise
        except CancelledError:
            raise HostError(f"the scheduler {self._address} is gone") from None
        except Exception as error:
            raise HostError(f"{attempt.name} on {self._address}: {error!r}") from error

    def _check_deaths(self, attempt: Attempt) -> None:
        """HostError if DEATHS workers that started the run are gone."""
        if len(attempt.workers) < DEATHS:
            return
        alive = self._workers()
        dead = [worker for worker in attempt.workers if worker not in alive]
        if len(dead) >= DEATHS:
            raise HostError(f"{attempt.name}: the worker died {len(dead)} times: {', '.join(dead)}")

    def _workers(self) -> list[str]:
        """The addresses of the workers there are now."""
        # Not `scheduler_info`: another thread's cache, which mostly has no workers, gets between.
        return list(self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"])

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Take what a worker tells of a run: that it starts it, and how many launches are done."""
        _, told = event
        attempt = self._attempts.get(told["key"])
        if attempt is None:
            return
        if told["launches"] == 0:
            attempt.workers.append(told["worker"])
        attempt.count(told["launches"])


def _connect(address: str) -> Client:
    """A client of the scheduler; UsageError for no address, HostError without an answer."""
    if not re.fullmatch(r"(tcp|tls)://\S+:\d+", address):
        raise UsageError(
            f"--cluster {address}: not a scheduler's address", "like --cluster tcp://HOST:8786"
        )
    if address.startswith("tls:"):
        _check_tls()
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
    try:
        return Client(address, timeout=CONNECT_S, set_as_default=False)
    except OSError as error:
        raise HostError(
            f"no scheduler answers at {address} within {CONNECT_S:.0f} s",
            "start one: dask scheduler --port 8786",
        ) from error


def _check_tls() -> None:
    """UsageError if Dask is not told which keys to speak TLS with."""
    try:
        told = Security().get_connection_args("client")["ssl_context"] is not None
    except OSError as error:
        raise UsageError(f"--cluster: the keys for TLS cannot be read: {error}", TLS) from error
    if not told:
        raise UsageError("--cluster tls://: Dask is not told which keys to take", TLS)


def check_versions(found: Any) -> None:
    """UsageError if a part of the cluster cannot read what this command sends it."""
    here = _versions(found["client"])
    parts = {"the scheduler": found["scheduler"]}
    parts |= {f"worker {address}": about for address, about in found["workers"].items()}
    for name, about in parts.items():
        if _versions(about) != here:
            raise UsageError(
                f"{name} has {_versions(about)}, and this command {here}",
                "install requirements.txt of one commit on all machines",
            )


def _versions(about: Any) -> str:
    """What must be the same on both sides of a connection, as words."""
    packages = about["packages"]
    python = ".".join(packages["python"].split(".")[:2])
    return f"Python {python}, distributed {packages['distributed']}"


def _code() -> Content:
    """`node.run` by value: the worker's own `cohort`, if it has one, is not asked for it."""
    cloudpickle.register_pickle_by_value(node)
    code = cloudpickle.dumps(node.run)
    return Content(hashlib.sha256(code).hexdigest(), code)


def _sent(what: Boot) -> Sent:
    """The boot for a worker; the initramfs has the run's own conf, so it goes with the job."""
    vm = what.vm
    assert vm.initrd is not None
    files = {"kernel": vm.kernel} | ({} if vm.storage is None else {"storage": vm.storage})
    initrd = zlib.compress(vm.initrd.read_bytes(), 1)
    made = {"boot": job.described(what), "initrd": initrd, "shared": list(files)}
    return Sent(made, tuple(files.values()))


def _others(first: str, workers: Sequence[str]) -> list[str]:
    """The workers on other machines than the `first`, or else the others on its own."""

    def machine(address: str) -> str:
        return address.rpartition(":")[0]

    others = [worker for worker in workers if worker != first]
    return [x for x in others if machine(x) != machine(first)] or others


def _compare(name: str, run_dir: Path, first: Made, second: Made) -> None:
    """Failed, with what both said kept in the run directory, if they said different things."""
    differ = [x for x in SAME if first.files.get(x, b"") != second.files.get(x, b"")]
    if not differ:
        return
    first.write(run_dir)
    second.write(run_dir, suffix=".again")
    raise Failed(
        f"{name} does not repeat: {', '.join(differ)} of worker {first.worker}"
        f" and of worker {second.worker} differ"
    )
