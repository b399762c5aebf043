"""Which accelerator a run gets. KVM only if a guest really runs with it."""

import logging
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


def choose(wish: Wish, kernel: Kernel) -> Accel:
    """The accelerator for a wish. "auto" is KVM where it works, and says on stderr if it does not;
    for "kvm" that is Skipped, with the reason."""
    if wish == "deterministic" or wish == "tcg":
        return wish
    works, why = probe_kvm(kernel, again=wish == "kvm")
    if works:
        return "kvm"
    if wish == "kvm":
        raise Skipped(
            f"--accel kvm: there is no KVM here: {why}",
            "--accel auto emulates where there is none; of a machine that has it,"
            f" the user must be allowed to open {KVM} (group kvm)",
        )
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
    emulator = machine.emulator(kernel.arch)
    with_kvm = [
        *(str(host.need(emulator.program)), "-M", emulator.machine, "-m", "256"),
        *(*machine.ACCEL_ARGS["kvm"], "-cpu", "host"),
        *("-nographic", "-nodefaults", "-no-user-config"),
        *("-no-reboot", "-serial", "stdio", "-kernel", str(kernel.image)),
        *("-append", f"console={emulator.console} panic=-1"),
    ]
    command = [str(host.need("setpriv")), "--pdeathsig", "KILL", *with_kvm]
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
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return words[-1] if words else "a probe guest printed nothing"
