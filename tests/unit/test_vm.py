"""QEMU's arguments, and the watch over it, with a shell in its place."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cohort import host
from cohort.errors import Failed, GuestError, MissingTool, Stopped, UsageError
from cohort.vm import devicetree, guest, machine
from cohort.vm.boot import BOOTS, STALE_BREAKPOINT, Boot, boot
from cohort.vm.machine import VmSpec

END = '{"r":"end","t":9,"ok":true,"launches":2}'
LIMITS = guest.Limits(total_s=5, silent_s=2)


@pytest.fixture
def spec(tmp_path: Path) -> VmSpec:
    store = tmp_path / "store.img"
    store.write_bytes(b"\0" * 4096)
    return VmSpec(tmp_path, tmp_path / "bzImage", "deterministic", 2048, 2, storage=store)


def replace_qemu(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Run a shell script, in the run directory, instead of QEMU."""

    def arguments(spec: VmSpec) -> list[str]:
        return ["sh", "-c", f"cd '{spec.run_dir}'\n{script}"]

    monkeypatch.setattr(machine, "arguments", arguments)


def test_deterministic_arguments(spec: VmSpec) -> None:
    words = " ".join(machine.arguments(spec))
    for part in (
        "-accel tcg,thread=single",
        "-icount shift=0,sleep=off -rtc base=2024-01-01,clock=vm",
        "-cpu max,-erms,-fsrm,-rdrand,-rdseed",
        "-m 2048,slots=2,maxmem=10240M",
        "share=off,size=4096",
        "virtio-serial-pci,ioeventfd=off",
        "nokaslr norandmaps random.trust_cpu=off",
    ):
        assert part in words


def test_storage_with_latency_is_a_device_mapper_target(spec: VmSpec) -> None:
    assert "dm-mod" not in spec.kernel_cmdline
    flash = replace(spec, latency=machine.Latency(100, 50, 600), cmdline=("cohort=region",))
    assert flash.kernel_cmdline.endswith(
        " dm-mod.waitfor=/dev/pmem0"
        ' dm-mod.create="flash,,,rw,0 8 flash /dev/pmem0 100 50 600" cohort=region'
    )


def test_free_tcg_has_no_virtual_clock(spec: VmSpec) -> None:
    free = VmSpec(spec.run_dir, spec.kernel, "tcg", 1024, 2)
    words = machine.arguments(free)
    assert "-icount" not in words and "nvdimm,memdev=store" not in words
    assert "tcg,thread=multi" in words


def test_cpus_of_a_machine_with_nodes_share_no_package(spec: VmSpec) -> None:
    nodes = replace(spec, memory_mb=1024, cpus=2, nodes_mb=(512, 512))
    words = machine.arguments(nodes)
    assert words[words.index("-smp") + 1] == "2,cores=1,threads=1"
    assert machine.arguments(spec)[words.index("-smp") + 1] == str(spec.cpus)


def test_an_unknown_machine(spec: VmSpec) -> None:
    with pytest.raises(UsageError, match="no emulator for vax"):
        machine.arguments(VmSpec(spec.run_dir, spec.kernel, "tcg", 1024, 2, arch="vax"))


@pytest.mark.skipif(not host.find("qemu-system-aarch64"), reason="needs the arm64 emulator")
def test_storage_of_a_machine_without_nvdimms(spec: VmSpec) -> None:
    arm = replace(spec, arch="arm64")
    words = " ".join(machine.arguments(arm))
    assert "console=ttyAMA0" in arm.kernel_cmdline
    for part in (
        "-M virt,dtb-randomness=off -m 2048 ",
        "-icount shift=0,sleep=off",
        "share=off,size=4096",
        "-device ivshmem-plain,memdev=store",
    ):
        assert part in words


@pytest.mark.skipif(not host.find("fdtput"), reason="needs device-tree-compiler")
@pytest.mark.skipif(not host.find("qemu-system-aarch64"), reason="needs the arm64 emulator")
def test_a_device_tree_tells_of_memory_for_gcma(spec: VmSpec) -> None:
    arm = replace(spec, arch="arm64", guaranteed_mb=260)
    assert f"-dtb {spec.run_dir}/machine.dtb" in " ".join(machine.arguments(arm))
    devicetree.write(machine.board(arm), arm.guaranteed_mb, arm.device_tree)
    node = "/reserved-memory/gcma"

    def asked(kind: str, name: str) -> str:
        words = [str(host.need("fdtget")), "-t", kind, str(arm.device_tree), node, name]
        return host.run(words).stdout.strip()

    assert asked("s", "compatible") == "shared-dma-pool"
    assert asked("x", "size") == "0 10400000"
    assert all(asked("s", flag) == "" for flag in ("reusable", "guarantee", "linux,cma-default"))
    names = host.run([host.need("fdtget"), "-p", arm.device_tree, node]).stdout.split()
    assert {"reusable", "guarantee", "linux,cma-default"} <= set(names)
    assert host.run([host.need("fdtget"), "-l", arm.device_tree, "/"]).stdout.count("memory@") == 1


def test_a_device_tree_that_cannot_be_made_is_told(spec: VmSpec) -> None:
    with pytest.raises(Failed, match="false made no device tree"):
        devicetree.write(["false", "-M", "virt"], 260, spec.device_tree)


def test_a_missing_emulator(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(machine.emulator("x86_64"), program="qemu-gone")
    monkeypatch.setitem(machine.EMULATORS, "x86_64", gone)
    with pytest.raises(MissingTool, match="qemu-gone"):
        machine.arguments(spec)


def test_a_good_run(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"""printf '{{"r":"launch","n":1}}\\n{{"r":"lau' >> records.jsonl
    sleep 0.3; printf 'nch","n":2}}\\n{END}\\n' >> records.jsonl"""
    replace_qemu(monkeypatch, script)
    seen: list[str] = []
    assert guest.run(spec, LIMITS, seen.append) > 0.2
    assert seen == ['{"r":"launch","n":1}', '{"r":"launch","n":2}', END]
    assert (spec.run_dir / "cmdline").read_text().startswith("console=ttyS0")
    assert (spec.run_dir / "qemu.json").is_file()


def test_the_console_of_firmware_clears_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    path.write_bytes(b"ROM..\x1bc\x1b[?7l\x1b[2J[ 0.0] Linux\r\n\x1b[1;31m[ 1.0]\tr\xffd\x07\n")
    assert guest.console_lines(path) == ["ROM..[ 0.0] Linux", "[ 1.0]\tr\ufffdd"]


def test_a_panic(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """echo '{"r":"hello"}' > records.jsonl
    printf '[ 1.0] fine\\r\\n[ 2.0] Kernel panic - not syncing: oh\\r\\n' > console.log"""
    replace_qemu(monkeypatch, script)
    with pytest.raises(GuestError) as error:
        guest.run(spec, LIMITS)
    assert "died before its end: [ 2.0] Kernel panic - not syncing: oh" in error.value.message
    assert error.value.console == ["[ 1.0] fine", "[ 2.0] Kernel panic - not syncing: oh"]
    assert str(spec.run_dir) in str(error.value)


def test_a_guest_that_gives_up(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_qemu(monkeypatch, """echo '{"r":"fatal","t":1,"text":"no memory"}' > records.jsonl""")
    with pytest.raises(GuestError, match="the guest gave up: no memory"):
        guest.run(spec, LIMITS)


def test_a_hang(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_qemu(monkeypatch, "echo booting > console.log; exec sleep 60")
    started = time.monotonic()
    with pytest.raises(GuestError, match="no sign of life for 1 s"):
        guest.run(spec, guest.Limits(total_s=20, silent_s=1))
    assert time.monotonic() - started < 5


def test_a_panic_that_does_not_end_qemu(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "echo '[ 2.0] Kernel panic - not syncing: oh' > console.log; exec sleep 60"
    replace_qemu(monkeypatch, script)
    with pytest.raises(GuestError, match="died before its end: .*Kernel panic"):
        guest.run(spec, guest.Limits(total_s=20, silent_s=15))


def test_power_off_ends_the_run(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"""echo '{END}' > records.jsonl
    echo '[ 2.0] reboot: Power down' > console.log; exec sleep 60"""
    replace_qemu(monkeypatch, script)
    assert guest.run(spec, LIMITS) < 5


def test_running_out_of_time(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_qemu(monkeypatch, "while :; do echo . >> console.log; sleep 0.1; done")
    with pytest.raises(GuestError, match="ran out of time after 1 s") as ended:
        guest.run(spec, guest.Limits(total_s=1, silent_s=5))
    assert "--timeout SECONDS" in str(ended.value.hint)


def test_qemu_that_does_not_start(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_qemu(monkeypatch, "echo 'could not load kernel' >&2; exit 1")
    with pytest.raises(GuestError, match="QEMU failed: could not load kernel"):
        guest.run(spec, LIMITS)


def test_calling_a_run_off(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_qemu(monkeypatch, "echo $$ > pid; exec sleep 60")
    stop, pid = threading.Event(), spec.run_dir / "pid"

    def stop_when_it_runs() -> None:
        wait_for_pid(pid, 50)
        stop.set()

    threading.Thread(target=stop_when_it_runs, daemon=True).start()
    with pytest.raises(Stopped):
        guest.run(spec, guest.Limits(total_s=60, silent_s=60), stop=stop)
    assert_gone(int(pid.read_text()))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_lab_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    code = f"""
import sys
from dataclasses import replace
from pathlib import Path
from cohort import cli
from cohort.vm import guest, machine
machine.arguments = lambda spec: ["sh", "-c", "cd {tmp_path}; echo $$ > pid; exec sleep 60"]
spec = machine.VmSpec(Path("{tmp_path}"), Path("k"), "tcg", 64, 1)
cli.cohort.main = lambda **words: guest.run(spec, guest.Limits(50, 50))
cli.main([])
"""
    lab = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.DEVNULL,
        # A shell's background job ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    pid = tmp_path / "pid"
    wait_for_pid(pid, 20)
    lab.send_signal(how)
    codes = {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}
    assert lab.wait(10) == codes[how]
    assert_gone(int(pid.read_text()))


def wait_for_pid(file: Path, seconds: float) -> None:
    """Until a process has written its number there, or time is up."""
    deadline = time.monotonic() + seconds
    while not (file.is_file() and file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)


def assert_gone(pid: int) -> None:
    """The process is gone within a few seconds."""
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} is still there")


def count_boots(spec: VmSpec, monkeypatch: pytest.MonkeyPatch, dies: int, says: str) -> Path:
    """A guest that dies `dies` times of what it `says`, then ends well; the file of its boots."""
    script = f"""
echo boot >> boots
echo '{{"r":"switches","t":1,"files":{{}},"sra":false}}' > records.jsonl
if [ "$(wc -l < boots)" -le {dies} ]; then
    echo '{says}' > console.log
else
    echo '{END}' >> records.jsonl
    echo fine > console.log
fi"""
    replace_qemu(monkeypatch, script)
    return spec.run_dir / "boots"


def boot_it(spec: VmSpec) -> None:
    boot(Boot(spec, "none", LIMITS), lambda launches: None, threading.Event())


def test_a_stale_breakpoint_is_booted_again(spec: VmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    free = replace(spec, accel="tcg")
    boots = count_boots(free, monkeypatch, BOOTS - 1, f"{STALE_BREAKPOINT}0000 [#1]")
    boot_it(free)
    assert boots.read_text().count("boot") == BOOTS


@pytest.mark.parametrize(
    ("accel", "says", "wanted"),
    [
        ("tcg", f"{STALE_BREAKPOINT}0000 [#1]", BOOTS),
        ("tcg", "Kernel panic - not syncing: no", 1),
        ("deterministic", f"{STALE_BREAKPOINT}0000 [#1]", 1),
    ],
)
def test_a_guest_that_goes_on_dying_has_failed(
    accel: machine.Accel, says: str, wanted: int, spec: VmSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = replace(spec, accel=accel)
    boots = count_boots(dying, monkeypatch, 9, says)
    with pytest.raises(GuestError, match="died before its end"):
        boot_it(dying)
    assert boots.read_text().count("boot") == wanted
