"""Runs a guest to its end and says how it ended.

The verdict comes from the records; the console is only searched for why a guest died.
"""

import json
import logging
import os
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cohort import host
from cohort.errors import GuestError, Stopped
from cohort.vm import devicetree, machine, steady
from cohort.vm.machine import VmSpec

log = logging.getLogger(__name__)

CONSOLE_LINES = 20
POLL_S = 0.1
TAIL_BYTES = 4096
LAST_WORDS_S = 2.0  # a panicking kernel prints for so long after its first line
POWER_DOWN = b"reboot: Power down"
PANIC = b"Kernel panic - not syncing"
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_a-z])|[\x00-\x08\x0b-\x1f\x7f]")
"""What firmware sends a terminal to clear it, and all else that is no text."""
OUT_OF_TIME, HUNG = "ran out of time", "hung"
MORE_TIME = "more: --timeout SECONDS, where the command has it; on a busy host --jobs 1"
"""What to do about a guest that its limit ended."""
DEATH = re.compile(r"Kernel panic|BUG:|Oops|WARNING:|general protection fault|Out of memory: Kill")


@dataclass(frozen=True)
class Limits:
    """When to give up, in seconds: for the whole run, and without a sign of life."""

    total_s: float
    silent_s: float


class Lines:
    """Whole lines of a file that is still being written."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._rest = ""

    def take(self) -> list[str]:
        """The lines completed since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        return lines


def identity(spec: VmSpec) -> str:
    """SHA-256 of all that `run` gives a guest but the contents of files: QEMU's arguments, wherever
    the files are, what is loaded into QEMU, and what is added to the device tree."""
    loaded = [steady.identity()] if spec.accel == "deterministic" else []
    added = [devicetree.identity(spec.guaranteed_mb)] if spec.guaranteed_mb else []
    return host.digest(*machine.placeless(spec), *loaded, *added)


def run(
    spec: VmSpec,
    limits: Limits,
    watch: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> float:
    """Boot and wait for the end; returns seconds of wall time.

    `watch` is given each record line as it arrives. Raises GuestError, with the console's last
    lines, if the guest hangs, runs out of time or ends without an `end` record.
    """
    if spec.guaranteed_mb:
        devicetree.write(machine.board(spec), spec.guaranteed_mb, spec.device_tree)
    argv = machine.arguments(spec)
    host.write_json(spec.run_dir / "qemu.json", argv)
    host.write_text(spec.run_dir / "cmdline", spec.kernel_cmdline + "\n")
    log.debug("%s", shlex.join(argv))
    started = time.monotonic()
    why = _supervise(argv, spec, limits, watch or (lambda line: None), stop or threading.Event())
    verify(spec.run_dir, why)
    return time.monotonic() - started


def _supervise(
    argv: list[str],
    spec: VmSpec,
    limits: Limits,
    watch: Callable[[str], None],
    stop: threading.Event,
) -> str | None:
    """Wait for QEMU to end, or end it; returns why it had to be ended, or what QEMU said."""
    # QEMU dies with the thread that started it, however that dies. A session of its own keeps
    # the terminal's Ctrl-C from it: this process decides.
    command = [str(host.need("setpriv")), "--pdeathsig", "KILL", *argv]
    spec.records.touch()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=_environment(spec),
        start_new_session=True,
    )
    try:
        why = _wait(process, spec, limits, watch, stop)
    finally:
        process.kill()
        _, said = process.communicate()
    if why is None and process.returncode > 0:
        return f"QEMU failed: {said.strip()}"
    return why


def _environment(spec: VmSpec) -> dict[str, str]:
    preload = {"LD_PRELOAD": str(steady.library())} if spec.accel == "deterministic" else {}
    return {**os.environ, **preload}


def _wait(
    process: subprocess.Popen[str],
    spec: VmSpec,
    limits: Limits,
    watch: Callable[[str], None],
    stop: threading.Event,
) -> str | None:
    started = alive = time.monotonic()
    seen = -1
    with spec.records.open(errors="replace") as records:
        lines = Lines(records)
        while True:
            ended = _ended(process) or _over(spec.console, time.monotonic() - alive)
            for line in lines.take():
                watch(line)
            if ended:
                return None
            if stop.is_set():
                raise Stopped
            now = time.monotonic()
            size = _size(spec.records) + _size(spec.console)
            if size != seen:
                seen, alive = size, now
            if now - started > limits.total_s:
                return f"{OUT_OF_TIME} after {limits.total_s:.0f} s"
            if now - alive > limits.silent_s:
                return f"{HUNG}: no sign of life for {limits.silent_s:.0f} s"


def _ended(process: subprocess.Popen[str]) -> bool:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _over(console: Path, silent_s: float) -> bool:
    """The guest powered off or panicked. In a deterministic run QEMU does not notice by itself:
    its main loop works only while the virtual CPUs wait, and after this they spin."""
    if not console.is_file():
        return False
    with console.open("rb") as file:
        file.seek(max(0, _size(console) - TAIL_BYTES))
        tail = file.read()
    return tail.rstrip().endswith(POWER_DOWN) or (silent_s > LAST_WORDS_S and PANIC in tail)


def verify(run_dir: Path, why: str | None = None) -> None:
    """GuestError unless the last record is a good `end`; `why` is what the host knows of it."""
    last = _last_record(run_dir / "records.jsonl")
    if why is None and last.get("r") == "end" and last.get("ok") is True:
        return
    console = console_lines(run_dir / "console.log")
    hint = None
    if last.get("r") == "fatal":
        message = f"the guest gave up: {last.get('text', '')}"
    elif why is not None:
        message = f"the guest {why}" if not why.startswith("QEMU") else why
        hint = MORE_TIME if why.startswith((OUT_OF_TIME, HUNG)) else None
    else:
        message = f"the guest died before its end: {_cause(console)}"
    raise GuestError(message, hint, run_dir=run_dir, console=console[-CONSOLE_LINES:])


def _last_record(path: Path) -> dict[str, object]:
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    try:
        record = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def console_lines(path: Path) -> list[str]:
    """What firmware and the guest's kernel printed so far, as plain text: shown again, it does
    nothing to the user's terminal."""
    text = path.read_text(errors="replace") if path.is_file() else ""
    return [line.rstrip() for line in ESCAPES.sub("", text).splitlines()]


def _cause(console: list[str]) -> str:
    """The first console line that tells of a death."""
    return next((line for line in console if DEATH.search(line)), "no reason on the console")
