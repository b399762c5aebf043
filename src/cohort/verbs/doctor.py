"""`cohort doctor`: what this host can do, and what to install for the rest."""

import json
import platform
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from cohort import host, paths
from cohort.errors import MissingTool
from cohort.kernel import source
from cohort.verbs.options import JSON
from cohort.vm import accel
from cohort.vm.accel import Probe

NEEDED_GIB = 12
"""Disk for the source, three kernel builds and a few hundred runs."""

PROGRAMS = (
    *("gcc", "ld", "make", "flex", "bison", "bc", "perl", "patch", "tar", "xz"),
    *("mke2fs", "debugfs", "setpriv", "qemu-system-x86_64"),
)
ARM64_PROGRAMS = ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-ld", "qemu-system-aarch64")
"""What only runs with --arch arm64 need; nothing is missing without."""
HEADERS = {"gelf.h": "libelf-dev", "openssl/ssl.h": "libssl-dev"}


@dataclass(frozen=True)
class Check:
    """One thing looked at. `install` names the Debian package of a required thing not there."""

    name: str
    found: str
    ok: bool = True
    install: str | None = None


def checks() -> list[Check]:
    """Everything the lab needs or uses, looked up now."""
    return [
        Check("cpus", str(host.cpus())),
        _disk(),
        Check("python", platform.python_version()),
        *(_program(name) for name in PROGRAMS),
        *(_header(name, package) for name, package in HEADERS.items()),
        _static("libc.a", "libc6-dev"),
        _static("libsqlite3.a", "libsqlite3-dev"),
        _source(),
        Check("ccache", host.version("ccache") or "not there: rebuilding kernels takes longer"),
        _kvm(),
        _arm64(),
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


def _arm64() -> Check:
    """A phone of arm64: the guest's libsqlite3.a the lab fetches itself."""
    missing = [name for name in ARM64_PROGRAMS if host.find(name) is None]
    if host.find("apt-get") is None:
        return Check("arm64", "no apt-get, which brings SQLite for the guest")
    if not missing:
        return Check("arm64", host.version(ARM64_PROGRAMS[-1]))
    packages = " ".join(host.PACKAGES[name] for name in missing)
    return Check("arm64", f"for --arch arm64: apt-get install {packages}")


def _disk() -> Check:
    free = shutil.disk_usage(paths.out_dir()).free >> 30
    found = f"{free} GiB free for {paths.out_dir()}"
    return Check("disk", found if free >= NEEDED_GIB else f"{found}; {NEEDED_GIB} are needed")


def _kvm() -> Check:
    """What the last probe boot said; without a kernel there is nothing to boot."""
    verdict = accel.last_verdict()
    words = {
        Probe.NO_DEVICE: f"no {accel.KVM}: guests are emulated",
        Probe.NOT_PROBED: f"{accel.KVM} is there; a guest has not been tried (`cohort run` does)",
        Probe.WORKS: "a probe guest ran",
    }
    if isinstance(verdict, str):
        return Check("kvm", f"{verdict}: guests are emulated")
    return Check("kvm", words[verdict])


@click.command("doctor")
@JSON
def command(as_json: bool) -> None:
    """Say what this host can do; exit 3 if something the lab needs is missing."""
    found = checks()
    if as_json:
        print(json.dumps({"checks": [asdict(x) for x in found], "ok": all(x.ok for x in found)}))
    else:
        _print_table(found)
    missing = [x for x in found if not x.ok]
    if missing:
        packages = " ".join(dict.fromkeys(x.install for x in missing if x.install))
        names = ", ".join(x.name for x in missing)
        raise MissingTool(f"missing: {names}", f"apt-get install {packages}")


def _print_table(found: list[Check]) -> None:
    width = max(len(check.name) for check in found)
    for check in found:
        mark = click.style("ok", fg="green") if check.ok else click.style("no", fg="red")
        click.echo(f"{mark}  {check.name:{width}}  {check.found}")
