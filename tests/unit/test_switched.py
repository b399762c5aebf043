"""The kernel's own word on its switches, from made-up records and kernel logs."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from cohort import runs
from cohort.errors import GuestError
from cohort.policy import load_policy, policy_names
from cohort.run_spec import RunSpec
from cohort.vm import guest, machine, switched
from cohort.vm.machine import VmSpec
from cohort.vm.switched import Switched

OFF = {
    **{"region/enabled": "0", "region/order": "8", "cpb/enabled": "0", "cpb/order": "4"},
    **{"cpb/refill": "split", "rightsize/enabled": "0", "pcpa/size": "0", "pcpa/base": "0"},
    **{"pcpa/min_order": "4", "pcpa/timer_ms": "500"},
}
"""What a kernel says that was booted without a switch of Cohort's."""
STOCK: dict[str, str] = {}
AREA = ("cohort.pcpa=260M", "cohort.pcpa_min_order=9")
LOG = """\
Booting from ROM..\x1bc\x1b[?7l\x1b[2J[    0.000000] Linux version 6.12.117 (cohort@lab) #1\r
[    0.000000] Command line: console=ttyS0 cohort.pcpa=260M cohort.pcpa_min_order=9
[    0.000000] Kernel command line: console=ttyS0 cohort.pcpa=260M cohort.pcpa_min_order=9\r
[    0.010000] cohort: pcpa: cohort.pcpa_min_order=9: expected 0 to 8; staying off\r
[    0.900000] Run /init as init process
"""


def record(files: dict[str, str], sra: bool = False) -> dict[str, Any]:
    return {"r": "switches", "t": 1, "files": files, "sra": sra}


def line(files: dict[str, str]) -> str:
    return json.dumps(record(files), separators=(",", ":"))


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ((), OFF),
        ((), STOCK),
        (("quiet", "cma=260M"), OFF),
        (("cohort=off",), OFF),
        (("cohort=region,rightsize",), OFF | {"region/enabled": "1", "rightsize/enabled": "1"}),
        (("cohort=region,rightsize", "cohort=region"), OFF | {"region/enabled": "1"}),
        (
            ("cohort=region", "cohort.region_order=6", "cohort.region_vmalloc=0"),
            OFF | {"region/enabled": "1", "region/order": "6"},
        ),
        (
            ("cohort=cpb", "cohort.cpb_order=2", "cohort.cpb_refill=remnants"),
            OFF | {"cpb/enabled": "1", "cpb/order": "2", "cpb/refill": "remnants"},
        ),
        (("cohort.pcpa=260M",), OFF | {"pcpa/size": "272629760", "pcpa/base": "1048576"}),
        (
            ("cohort.pcpa=64M@0x40000000",),
            OFF | {"pcpa/size": "67108864", "pcpa/base": "1073741824"},
        ),
        (
            ("cohort.vnode=a:512M,b:rest", "cohort.vnode_default=a"),
            OFF | {"vnode/layout": "a:512M,b:rest", "vnode/default": "a"},
        ),
    ],
)
def test_as_asked(words: tuple[str, ...], files: dict[str, str]) -> None:
    assert switched.differences(words, record(files)) == []


@pytest.mark.parametrize(
    ("words", "files", "wrong"),
    [
        (("cohort=region",), OFF, ["region/enabled is 0, not 1"]),
        (("cohort=region",), STOCK, ["region/enabled is absent, not 1"]),
        ((), OFF | {"region/enabled": "1"}, ["region/enabled is 1, not 0"]),
        (
            ("cohort=region", "cohort.region_order=6"),
            OFF | {"region/enabled": "1"},
            ["region/order is 8, not 6"],
        ),
        (("cohort.pcpa=260M",), OFF, ["pcpa/size is 0, not 272629760"]),
        (("cohort.pcpa_below=1G",), OFF, ["pcpa/below is absent, not 1073741824"]),
        (("cohort.vnode=a:512M,b:rest",), OFF, ["vnode/layout is absent, not a:512M,b:rest"]),
        ((), OFF | {"vnode/layout": "a:1G,b:rest"}, ["vnode/layout is a:1G,b:rest, not absent"]),
        (("cohort.sra=260M",), OFF, ["a static reserve is not there"]),
    ],
)
def test_not_as_asked(words: tuple[str, ...], files: dict[str, str], wrong: list[str]) -> None:
    assert switched.differences(words, record(files)) == wrong


def test_a_static_reserve_shows_in_its_heap_alone() -> None:
    assert switched.differences(("cohort.sra=260M",), record(OFF, sra=True)) == []
    assert switched.differences((), record(OFF, sra=True)) == ["a static reserve is there"]


@pytest.mark.parametrize("name", policy_names())
def test_a_kernel_that_stays_off_is_found_out_under_every_policy_with_a_switch(name: str) -> None:
    words = load_policy(name).cmdline
    given = [word for word in words if word.startswith("cohort") and word != "cohort=off"]
    assert bool(switched.differences(words, record(OFF))) == bool(given)


def test_the_error_has_the_kernels_own_words(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(LOG)
    word = Switched("pcpa", AREA, tmp_path / "console.log")
    word.watch('{"r":"hello","t":2}')
    with pytest.raises(GuestError) as error:
        word.watch(line(OFF))
    assert error.value.message.splitlines() == [
        "this is no run of policy pcpa: pcpa/size is 0, not 272629760, pcpa/min_order is 4, not 9,"
        " after a boot with cohort.pcpa=260M cohort.pcpa_min_order=9",
        "the kernel's log says: [    0.010000] cohort: pcpa: cohort.pcpa_min_order=9: "
        "expected 0 to 8; staying off",
    ]


def test_a_kernel_without_cohort_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("[    0.900000] Run /init as init process\n")
    word = Switched("region", ("cohort=region",), tmp_path / "console.log")
    with pytest.raises(GuestError, match="nothing about Cohort"):
        word.watch(line(STOCK))


def test_a_guest_that_does_not_tell(tmp_path: Path) -> None:
    word = Switched("none", (), tmp_path / "console.log")
    with pytest.raises(GuestError, match="did not tell"):
        word.finish()
    word.watch(line(OFF))
    word.finish()


def test_the_run_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after all its launches, and although the guest would go on."""
    spec = VmSpec(tmp_path, tmp_path / "bzImage", "tcg", 64, 1)
    (tmp_path / "log").write_text(LOG)
    script = f"cat log > console.log; echo '{line(OFF)}' > records.jsonl; exec sleep 60"
    words = ["sh", "-c", f"cd '{tmp_path}'; {script}"]
    monkeypatch.setattr(machine, "arguments", lambda spec: words)
    word = Switched("pcpa", AREA, spec.console)
    with pytest.raises(GuestError, match="no run of policy pcpa.*\n.*staying off"):
        guest.run(spec, guest.Limits(50, 50), word.watch, threading.Event())


@pytest.mark.usefixtures("prepared")
def test_a_run_under_a_wrong_name_is_kept_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def arguments(spec: VmSpec) -> list[str]:
        (spec.run_dir / "log").write_text(LOG)
        script = f"cat log > console.log; echo '{line(OFF)}' > records.jsonl; exec sleep 60"
        return ["sh", "-c", f"cd '{spec.run_dir}'; {script}"]

    monkeypatch.setattr(machine, "arguments", arguments)
    spec = RunSpec(load_policy("pcpa"), "phone-2g", 5, accel="tcg")
    with pytest.raises(GuestError, match="no run of policy pcpa: pcpa/size is 0") as error:
        runs.execute(spec)
    assert error.value.run_dir is not None and error.value.run_dir.name.endswith(".failed")
    assert "staying off" in (error.value.run_dir / "console.log").read_text()
    assert not list(error.value.run_dir.parent.glob("*.part"))


@pytest.mark.usefixtures("prepared")
def test_a_guest_that_gives_up_after_its_kernel_stayed_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel's reason is told, not what the guest then lacked."""

    def arguments(spec: VmSpec) -> list[str]:
        fatal = '{"r":"fatal","t":2,"text":"the kernel has no virtual node trusted"}'
        return ["sh", "-c", f"printf '%s\\n' '{line(OFF)}' '{fatal}' > {spec.records}"]

    monkeypatch.setattr(machine, "arguments", arguments)
    with pytest.raises(GuestError, match="no run of policy vnode: vnode/layout is absent"):
        runs.execute(RunSpec(load_policy("vnode"), "phone-2g", 5, accel="tcg"))
