"""Packages of `cohort kernel deb` in a Debian system: installed, booted, switched on and off."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from cohort import host, paths
from cohort.kernel import deb
from cohort.log import Update
from cohort.suites.root import codename

pytestmark = [pytest.mark.integration, pytest.mark.night]

FLAVOUR = "cloud-amd64"
# What the machine of the test has: the flavour's other 1,100 modules take hours to build.
MODULES = ("virtio_pci", "virtio_blk", "autofs4")
PACKAGES = ("initramfs-tools", "kmod", "python3-minimal", "python3", "systemd-sysv", "zstd")
# What `cohort status` imports.
LIBRARIES = ("click", "rich", "cohort")
IMAGE_MB = 3072
BOOT_LIMIT_S = 1200
CHECK = """\
#!/bin/sh
# Begins with cohort=region, of the boot line; tells each look on the console.
export PYTHONPATH=/opt/lab HOME=/root
say() { echo "check: $*" > /dev/console; }
look() { say "$1 $(python3 -m cohort status --json)"; }
enabled=/sys/kernel/mm/cohort/region/enabled
say "release $(uname -r)"
look booted
echo 0 > $enabled; look off
echo 1 > $enabled; find / -xdev -type f -exec cat {} + > /dev/null; look on
say "system $(systemctl is-system-running --wait)"
say "failed $(systemctl list-units --failed --plain --no-legend | tr '\\n' ' ')"
sync
systemctl poweroff
"""
UNIT = """\
[Unit]
Description=What the test looks at
After=multi-user.target
[Service]
Type=simple
ExecStart=/opt/check.sh
[Install]
WantedBy=multi-user.target
"""


@pytest.fixture(scope="module")
def packages(
    announce: Callable[[str], Update], tmp_path_factory: pytest.TempPathFactory
) -> deb.Packages:
    lsmod = tmp_path_factory.mktemp("modules") / "lsmod"
    lsmod.write_text("Module Size Used by\n" + "".join(f"{name} 1 0\n" for name in MODULES))
    task = announce(f"building packages of {FLAVOUR}")
    return deb.build_packages(FLAVOUR, None, 1, task, lsmod=lsmod)


@pytest.fixture(scope="module")
def root(packages: deb.Packages) -> Iterator[Path]:
    """A Debian system with both packages installed, and the script that runs when it is up."""
    place = paths.made("kernel", "deb") / "root"
    shutil.rmtree(place, ignore_errors=True)
    words = ["--variant=minbase", f"--include={','.join(PACKAGES)}", codename(), str(place)]
    run([host.need("debootstrap"), *words])
    for path in packages.files:
        shutil.copy(path, place / "var/tmp")
    # Its own /proc, gone with the command.
    inside: list[str | Path] = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        f"--mount-proc={place}/proc",
        "chroot",
        place,
    ]
    names = [f"/var/tmp/{path.name}" for path in packages.files if "libc-dev" not in path.name]
    run([*inside, "dpkg", "--install", *names])
    lab = place / "opt/lab"
    for name in LIBRARIES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        shutil.copytree(Path(spec.origin).parent, lab / name)
    (place / "opt/check.sh").write_text(CHECK)
    (place / "opt/check.sh").chmod(0o755)
    (place / "etc/systemd/system/check.service").write_text(UNIT)
    (place / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 0\n")
    run([*inside, "systemctl", "enable", "check.service"])
    yield place
    shutil.rmtree(place)


def run(words: Sequence[str | Path]) -> None:
    """Run to a good end."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = host.run(words, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def boot(root: Path, release: str, directory: Path) -> str:
    """What the system says on its console until it powers off."""
    image, console = directory / "root.img", directory / "console.log"
    run([host.need("mke2fs"), "-q", "-F", "-t", "ext4", "-d", root, image, f"{IMAGE_MB}m"])
    words: list[str | Path] = [
        *(host.need("qemu-system-x86_64"), "-M", "q35", "-accel", "tcg,thread=multi"),
        *("-cpu", "max", "-smp", "2", "-m", "1024", "-nodefaults", "-nographic", "-no-reboot"),
        *(
            "-kernel",
            root / f"boot/vmlinuz-{release}",
            "-initrd",
            root / f"boot/initrd.img-{release}",
        ),
        *("-drive", f"file={image},format=raw,if=virtio", "-serial", f"file:{console}"),
        *("-append", "root=/dev/vda rw console=ttyS0 cohort=region no_timer_check panic=-1"),
    ]
    subprocess.run([str(word) for word in words], timeout=BOOT_LIMIT_S, check=True)
    return console.read_text(errors="replace").replace("\r", "")


def test_installed_packages_boot_a_system_and_region_goes_off_and_on(
    packages: deb.Packages, root: Path, tmp_path: Path
) -> None:
    kinds = {path.name.removesuffix(".deb").partition("_")[0] for path in packages.files}
    assert {f"linux-{kind}-{packages.release}" for kind in ("image", "headers")} <= kinds
    assert (root / f"usr/src/linux-headers-{packages.release}/include/linux/cohort.h").is_file()
    console = boot(root, packages.release, tmp_path)
    said = {
        name: rest
        for line in console.splitlines()
        if "check: " in line
        for name, _, rest in [line.partition("check: ")[2].partition(" ")]
    }
    assert said.get("release") == packages.release, console[-4000:]
    assert (said["system"], said["failed"].strip()) == ("running", ""), console[-4000:]
    general = {name: json.loads(said[name])["cohort"] for name in ("booted", "off", "on")}
    assert [look["schemes"]["region"] for look in general.values()] == [True, False, True]
    assert general["off"]["parked_kb"] == 0
    assert general["on"]["parked_kb"] > 0
    assert "WARNING:" not in console
    assert "BUG:" not in console
