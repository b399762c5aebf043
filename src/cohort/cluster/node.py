"""What a worker does. Sent by value: a worker needs no lab, only Python of the command's version,
`distributed`, and the programs of a run.

Files go to a store beside the worker's local directory, by content: all workers of a machine
share it, and it is left there for the next time.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from distributed import Reschedule, Worker, get_worker

STORE = "cohort-store"
SAID = ("records.jsonl", "console.log", "cmdline", "qemu.json")
"""Files of a run that go back."""
POLL_S = 0.2
LAST_LINES = 5
_CHUNK = 1 << 20


def run(
    job: dict[str, Any], digests: Sequence[str], topic: str, *contents: bytes
) -> dict[str, Any]:
    """Make a run: `job` for `cohort.cluster.job`, its initramfs packed, and the contents by digest
    that it calls `job["shared"]`, the lab first.

    Progress goes to `topic`. Returns the worker's address, how the run ended (`told`) and what
    the guest said, packed (`files`).
    """
    worker = get_worker()
    key = str(worker.get_current_task())
    worker.log_event(topic, {"key": key, "worker": worker.address, "launches": 0})
    with tempfile.TemporaryDirectory(dir=worker.local_directory, prefix="cohort-") as name:
        directory = Path(name)
        try:
            store = Path(worker.local_directory).parent / STORE
            lab, *shared = [_stored(store, *x) for x in zip(digests, contents, strict=True)]
            _write_job(directory, job, shared)
            with _start(directory, _unzipped(lab), store) as process:
                try:
                    _watch(process, directory, worker, key, topic)
                finally:
                    process.kill()
            told = _outcome(directory, process.returncode)
        except OSError as error:
            told = {"error": "HostError", "message": str(error), "hint": None}
        said = [path for name in SAID if (path := directory / name).is_file()]
        files = {path.name: zlib.compress(path.read_bytes(), 1) for path in said}
    return {"worker": worker.address, "told": told, "files": files}


def _stored(store: Path, digest: str, packed: bytes) -> Path:
    """The content in the store, unpacked unless it is there; OSError if it is not what it says."""
    path = store / digest
    store.mkdir(exist_ok=True)
    with (store / f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            part = store / f"{digest}.part"
            if _unpack(packed, part) != digest:
                part.unlink()
                raise OSError(f"{path}: the content that came is another")
            part.replace(path)
    return path


def _unpack(packed: bytes, path: Path) -> str:
    """Write the content, with holes for zeros; its SHA-256."""
    unpacker, total, rest = zlib.decompressobj(), hashlib.sha256(), packed
    with path.open("wb") as file:
        while rest or not unpacker.eof:
            piece = unpacker.decompress(rest, _CHUNK)
            rest = unpacker.unconsumed_tail
            if not piece and not rest:
                break
            total.update(piece)
            if piece.count(0) == len(piece):
                file.seek(len(piece), os.SEEK_CUR)
            else:
                file.write(piece)
        file.truncate()
    return total.hexdigest()


def _unzipped(lab: Path) -> Path:
    """The shipped lab as a directory to import from."""
    root = lab.with_suffix(".lab")
    with lab.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            with tempfile.TemporaryDirectory(dir=lab.parent) as name:
                part = Path(name) / "lab"
                with zipfile.ZipFile(lab) as archive:
                    archive.extractall(part)
                part.replace(root)
    return root


def _write_job(directory: Path, job: dict[str, Any], shared: Sequence[Path]) -> None:
    """The job as `cohort.cluster.job` reads it, with its files."""
    initrd = directory / "initramfs.cpio"
    initrd.write_bytes(zlib.decompress(job["initrd"]))
    files = dict(zip(job["shared"], map(str, shared), strict=True)) | {"initrd": str(initrd)}
    (directory / "job.json").write_text(json.dumps(job["boot"] | {"files": files}))


def _start(directory: Path, lab: Path, store: Path) -> subprocess.Popen[bytes]:
    """The lab's own process; it dies with this one, and QEMU with it, however that comes."""
    program = [sys.executable, "-m", "cohort.cluster.job", str(directory)]
    with (directory / "launches").open("wb") as out, (directory / "said").open("wb") as said:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *program],
            env={**os.environ, "PYTHONPATH": str(lab), "COHORT_OUT": str(store / "out")},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=said,
            start_new_session=True,
        )


def _watch(
    process: subprocess.Popen[bytes], directory: Path, worker: Worker, key: str, topic: str
) -> None:
    """Wait for the end and tell of launches; Reschedule if the run is not wanted any more."""
    told = 0
    with (directory / "launches").open() as launches:
        while True:
            try:
                process.wait(POLL_S)
                return
            except subprocess.TimeoutExpired:
                if not _wanted(worker, key):
                    raise Reschedule from None
            done = _last_number(launches, told)
            if done != told:
                told = done
                worker.log_event(topic, {"key": key, "worker": worker.address, "launches": told})


def _wanted(worker: Worker, key: str) -> bool:
    """The worker goes on, and its task is neither cancelled nor forgotten."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state == "executing" and "clos" not in worker.status.name


def _last_number(lines: IO[str], before: int) -> int:
    """The last whole line that was added, `before` without one."""
    numbers = [line for line in lines.readlines() if line.endswith("\n")]
    return int(numbers[-1]) if numbers else before


def _outcome(directory: Path, code: int) -> dict[str, Any]:
    """What the job says of its end, or that it could not."""
    path = directory / "outcome.json"
    if path.is_file():
        told = json.loads(path.read_text())
        assert isinstance(told, dict)
        return told
    last = (directory / "said").read_text(errors="replace").splitlines()[-LAST_LINES:]
    message = "\n".join([f"the lab's process ended with code {code}", *last])
    return {"error": "HostError", "message": message, "hint": None}
