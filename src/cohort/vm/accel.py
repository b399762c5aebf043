"""Which accelerator a run gets. KVM only if a guest really runs with it."""

import logging
import os
import platform
import subprocess
import time
from enum import Enum
from pathlib import Path
from typing import Literal

from cohort import host, paths
from cohort.errors import Skipped
from cohort.kernel.build import Kernel
from cohort.vm import machine
from cohort.vm.machine import Accel

log = logging.getLogger(__name__)


class Probe(Enum):
    """What is known of KVM when there is no reason it fails."""

    NO_DEVICE = "no device"
    NOT_PROBED = "not probed"
    WORKS = "works"


Wish = Literal["deterministic", "tcg", "kvm", "auto"]

KVM = Path("/dev/kvm")
PROBE_LIMIT_S = 5.0
VERDICT_LASTS_S = 24 * 3600
MACHINES = {"x86_64": "x86_64", "aarch64": "arm64"}
"""What kernels call a machine, and what the lab calls it."""


def check(wish: Wish, arch: str) -> None:
    """Skipped, with the reason, for a wish for KVM on a machine that cannot have a guest of `arch`
    with it: before a kernel is built, with which `choose` finds out the rest."""
    if wish == "kvm" and (why := _unusable(arch)):
        raise _without_kvm(why)


def _unusable(arch: str) -> str:
    """Why KVM gives no CPU to a guest of this machine; empty if it does."""
    if not KVM.exists():
        return f"there is no {KVM}"
    here = MACHINES.get(platform.machine(), platform.machine())
    if here != arch:
        return f"this machine is {here}, and the guest is {arch}"
    try:
        os.close(os.open(KVM, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{KVM}: {error.strerror}"
    return _stopped(arch)


def _stopped(arch: str) -> str:
    """Why QEMU makes no machine with KVM; empty if it does. Of it no instruction is executed."""
    still = ["-S", "-display", "none", "-monitor", "stdio"]
    command = [*_with_kvm(arch), *still]
    try:
        done = subprocess.run(
            command, input=b"quit\n", capture_output=True, timeout=PROBE_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"QEMU hung for {PROBE_LIMIT_S:.0f} s"
    return "" if done.returncode == 0 else _last_words(done.stderr)


def _with_kvm(arch: str) -> list[str]:
    """QEMU with KVM and a machine of no devices, as the command that it begins with."""
    emulator = machine.emulator(arch)
    return [
        *(str(host.need("setpriv")), "--pdeathsig", "KILL"),
        *(str(host.need(emulator.program)), "-M", emulator.machine, "-m", "256"),
        *(*machine.ACCEL_ARGS["kvm"], "-cpu", "host"),
        *("-nodefaults", "-no-user-config"),
    ]


def _without_kvm(why: str) -> Skipped:
    return Skipped(
        f"--accel kvm: there is no KVM here: {why}",
        "--accel auto emulates where there is none; of a machine that has it,"
        f" the user must be allowed to open {KVM} (group kvm)",
    )


def choose(wish: Wish, kernel: Kernel) -> Accel:
    """The accelerator for a wish. "auto" is KVM where it works, and says on stderr if it does not;
    for "kvm" that is Skipped, with the reason."""
    if wish == "deterministic" or wish == "tcg":
        return wish
    works, why = probe_kvm(kernel, again=wish == "kvm")
    if works:
        return "kvm"
    if wish == "kvm":
        raise _without_kvm(why)
    log.warning("no KVM (%s): emulating, which is many times slower", why)
    return "tcg"


def probe_kvm(kernel: Kernel, *, again: bool = False) -> tuple[bool, str]:
    """Does a guest run under KVM here, and if not, why. The answer is kept for a day; with `again`
    only a good one, as the reason may be gone.

    Opening /dev/kvm proves nothing: on some hosts it opens and guests hang.
    """
    if not KVM.exists():
        return False, f"there is no {KVM}"
    emulator = machine.emulator(kernel.arch).program
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    verdicts = paths.made("cache")
    key = host.digest(kernel.id, host.version(emulator), boot)[:16]
    path = verdicts / f"kvm-{key}"
    if path.is_file() and time.time() - path.stat().st_mtime < VERDICT_LASTS_S:
        why = path.read_text()
        if not (why and again):
            return not why, why
    why = _probe(kernel)
    host.write_text(path, why)
    return not why, why


def last_verdict() -> Probe | str:
    """The newest answer of a probe, without probing: a string says why KVM does not work."""
    if not KVM.exists():
        return Probe.NO_DEVICE
    verdicts = sorted(paths.made("cache").glob("kvm-*"), key=lambda path: path.stat().st_mtime)
    if not verdicts:
        return Probe.NOT_PROBED
    return verdicts[-1].read_text() or Probe.WORKS


def _probe(kernel: Kernel) -> str:
    """Boot without a root file system: the kernel panics, restarts, and QEMU ends. Empty if so."""
    command = [
        *_with_kvm(kernel.arch),
        *("-nographic", "-no-reboot", "-serial", "stdio", "-kernel", str(kernel.image)),
        *("-append", f"console={machine.emulator(kernel.arch).console} panic=-1"),
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a probe guest hung for {PROBE_LIMIT_S:.0f} s"
    if b"Linux version" in done.stdout:
        return ""
    return _last_words(done.stderr)


def _last_words(said: bytes) -> str:
    """What QEMU ended with, as one line. A check of its own that fails, with file, line and an
    expression, says something to its authors alone."""
    words = said.decode(errors="replace").strip()
    log.debug("QEMU: %s", words)
    last = words.splitlines()[-1] if words else ""
    if "ssertion" in last:
        return "QEMU failed a check of its own (cohort -v shows which)"
    return last or "QEMU ended, and printed nothing"
