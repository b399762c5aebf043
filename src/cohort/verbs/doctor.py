"""`cohort doctor`: what this host can do, and what to install for the rest."""

import json
import platform
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from cohort import host, paths
from cohort.errors import MissingTool
from cohort.kernel import deb, source
from cohort.suites import selftests
from cohort.verbs.options import JSON
from cohort.vm import accel
from cohort.vm.accel import Probe

GB = 10**9
DISK_GB = 15
"""For the source, three kernel builds and a few hundred runs."""
MEMORY_GB = 8
"""For two guests beside a build."""

PROGRAMS = (
    *("gcc", "ld", "make", "flex", "bison", "bc", "perl", "patch", "tar", "xz"),
    *("mke2fs", "debugfs", "setpriv", "qemu-system-x86_64"),
)
HEADERS = {"gelf.h": "libelf-dev", "openssl/ssl.h": "libssl-dev"}
APT = "apt-get"
PARTS = {
    "arm64": (
        "--arch arm64",
        ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-ld", "qemu-system-aarch64", APT),
    ),
    "gcma": ("cohort run gcma", ("fdtput",)),
    "suites": ("cohort suite", ("debootstrap", "rsync", "unshare", APT)),
    "initramfs": ("cohort suite --rootfs initramfs", ("busybox",)),
    "packages": ("cohort kernel deb", deb.TOOLS),
    "devices": ("cohort status --on", ("adb", "ssh")),
}
"""What only some commands need: which, and what programs. Nothing is missing without."""


@dataclass(frozen=True)
class Check:
    """One thing looked at. `install` names the Debian packages of what is not there; where `ok` it
    is a thing that only some commands need."""

    name: str
    found: str
    ok: bool = True
    install: str | None = None


def checks() -> list[Check]:
    """Everything the lab needs or uses, looked up now."""
    return [
        Check("cpus", str(host.cpus())),
        _memory(),
        _disk(),
        Check("python", platform.python_version()),
        *(_program(name) for name in PROGRAMS),
        *(_header(name, package) for name, package in HEADERS.items()),
        _static("libc.a", "libc6-dev"),
        _static("libsqlite3.a", "libsqlite3-dev"),
        _source(),
        Check("ccache", host.version("ccache") or "not there: rebuilding kernels takes longer"),
        _kvm(),
        *(_part(name, command, programs) for name, (command, programs) in PARTS.items()),
    ]


def _program(name: str) -> Check:
    path = host.find(name)
    if path is None:
        return Check(name, "missing", False, host.PACKAGES.get(name, name))
    lines = [host.version(name), str(path)]
    return Check(name, next(x for x in lines if re.search(r"\d|/", x)))


def _header(name: str, package: str) -> Check:
    gcc = host.find("gcc")
    if gcc is None:
        return Check(name, "unknown without gcc", False, package)
    done = host.run([gcc, "-E", "-include", name, "-x", "c", "/dev/null", "-o", "/dev/null"])
    there = done.returncode == 0
    return Check(name, "there" if there else "missing", there, None if there else package)


def _static(library: str, package: str) -> Check:
    """The guest is linked statically."""
    gcc = host.find("gcc")
    found = host.run([gcc, f"-print-file-name={library}"]).stdout.strip() if gcc else ""
    there = Path(found).is_absolute()
    return Check(library, found if there else "missing", there, None if there else package)


def _source() -> Check:
    if source.TARBALL.is_file():
        return Check("kernel source", str(source.TARBALL))
    # An unpacked tree alone does not do: whether it is the package's, the package tells.
    return Check("kernel source", "missing", False, f"linux-source-{source.SERIES}")


def _part(name: str, command: str, programs: Sequence[str]) -> Check:
    """What a command needs that others do not."""
    gone = [program for program in programs if host.find(program) is None]
    packages = [host.packages_of(x for x in gone if x != APT), *_libraries(name)]
    if install := " ".join(x for x in packages if x):
        return Check(name, f"for {command}: apt-get install {install}", install=install)
    if gone:
        return Check(name, f"for {command}: a Debian, whose {APT} fetches packages")
    return Check(name, f"{command}: all is there")


def _libraries(name: str) -> list[str]:
    """Debian packages without a program that a part needs and that are not there."""
    if name == "packages":
        return [] if deb.flavours() else [deb.CONFIGS.name]
    if name != "suites":
        return []
    wanted = (pair for headers in selftests.HEADERS.values() for pair in headers.items())
    return [package for header, package in wanted if not _header(header, package).ok]


def _memory() -> Check:
    """What the kernel has, which is less than the machine was sold with."""
    total = host.memory() / GB
    found = f"{total:.1f} GB"
    enough = round(total) >= MEMORY_GB
    return Check("memory", found if enough else f"{found}; {MEMORY_GB} GB are needed", enough)


def _disk() -> Check:
    """What is free, and what `out/` has of it already: that is not needed again."""
    out = paths.out_dir()
    free = shutil.disk_usage(out).free / GB
    found = f"{free:.0f} GB free for {out}"
    if free >= DISK_GB or free + _held_gb(out) >= DISK_GB:
        return Check("disk", found)
    return Check("disk", f"{found}; {DISK_GB} GB are needed: set COHORT_OUT elsewhere", False)


def _held_gb(directory: Path) -> float:
    """What files below a directory take of the disk, GB."""
    said = host.run([host.need("du"), "--summarize", "--block-size=1", directory]).stdout
    return int(said.split()[0]) / GB if said else 0.0


def _kvm() -> Check:
    """What the last probe boot said; without a kernel there is nothing to boot."""
    verdict = accel.last_verdict()
    words = {
        Probe.NO_DEVICE: f"no {accel.KVM}: guests are emulated",
        Probe.NOT_PROBED: f"{accel.KVM} is there; a guest has not been tried (`--accel auto` does)",
        Probe.WORKS: "a probe guest ran",
    }
    if isinstance(verdict, str):
        return Check("kvm", f"{verdict}: guests are emulated")
    return Check("kvm", words[verdict])


@click.command("doctor")
@JSON
def command(as_json: bool) -> None:
    """Say what this host can do; exit 3 if something the lab needs is missing.

    What only some commands need is marked with a dash where it is not there.
    """
    found = checks()
    if as_json:
        print(json.dumps({"checks": [asdict(x) for x in found], "ok": all(x.ok for x in found)}))
    else:
        _print_table(found)
    missing = [x for x in found if not x.ok]
    if missing:
        packages = " ".join(dict.fromkeys(x.install for x in missing if x.install))
        names = ", ".join(x.name for x in missing)
        hint = f"apt-get install {packages}" if packages else None
        raise MissingTool(f"missing, or too little: {names}", hint)


def _print_table(found: list[Check]) -> None:
    width = max(len(check.name) for check in found)
    for check in found:
        mark = click.style("ok", fg="green") if check.ok else click.style("no", fg="red")
        if check.ok and check.install:
            mark = click.style("- ", fg="yellow")
        click.echo(f"{mark}  {check.name:{width}}  {check.found}")
