"""Which accelerator a wish gets, with a probe that boots nothing."""

from pathlib import Path

import pytest

from cohort import host, runs
from cohort.errors import Skipped
from cohort.kernel.build import Kernel
from cohort.policy import load_policy
from cohort.run_spec import RunSpec
from cohort.vm import accel

KERNEL = Kernel(Path("bzImage"), Path(".config"), "6.12.117", "id", "tree", "x86_64")


class Probe:
    """Stands in for the guest that is booted: why it does not run, and how often it was tried."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.boots = 0

    def boot(self, kernel: Kernel) -> str:
        self.boots += 1
        return self.why


@pytest.fixture
def probe(own_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Probe:
    """A machine with /dev/kvm, on which a guest hangs."""
    made = Probe("a probe guest hung for 5 s")
    (tmp_path / "kvm").touch()
    monkeypatch.setattr(accel, "KVM", tmp_path / "kvm")
    monkeypatch.setattr(accel, "_probe", made.boot)
    return made


def test_kvm_that_does_not_work_is_refused_with_the_reason(probe: Probe) -> None:
    """It had been emulated like `auto`: a run that takes many times as long as was asked for."""
    with pytest.raises(Skipped, match="--accel kvm: .*: a probe guest hung") as refused:
        accel.choose("kvm", KERNEL)
    assert refused.value.exit_code == 4
    assert "--accel auto" in (refused.value.hint or "")


def test_auto_is_emulated_where_kvm_does_not_work(probe: Probe) -> None:
    assert [accel.choose("auto", KERNEL) for _ in "ab"] == ["tcg", "tcg"]
    assert probe.boots == 1


def test_kvm_is_tried_again_when_the_reason_may_be_gone(probe: Probe) -> None:
    """As for a user that has been let into the group of /dev/kvm."""
    assert accel.choose("auto", KERNEL) == "tcg"
    probe.why = ""
    assert [accel.choose("kvm", KERNEL) for _ in "ab"] == ["kvm", "kvm"]
    assert accel.choose("auto", KERNEL) == "kvm"
    assert probe.boots == 2


def test_a_machine_without_the_device(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accel, "KVM", Path("/dev/no-kvm"))
    assert accel.choose("auto", KERNEL) == "tcg"
    with pytest.raises(Skipped, match="there is no /dev/no-kvm"):
        accel.choose("kvm", KERNEL)
    assert accel.choose("deterministic", KERNEL) == "deterministic"


def said_of(arch: str = "x86_64") -> str:
    """Why a guest of this machine cannot have KVM."""
    with pytest.raises(Skipped, match="--accel kvm: there is no KVM here: ") as refused:
        accel.check("kvm", arch)
    assert "--accel auto" in (refused.value.hint or "")
    return refused.value.message.partition("KVM here: ")[2]


def test_kvm_that_cannot_be_had_is_refused_before_a_kernel_is_built(
    own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After half an hour of a build it was QEMU that said so."""
    monkeypatch.setattr(accel, "KVM", Path("/dev/no-kvm"))
    monkeypatch.setattr(runs, "prepare", lambda specs: pytest.fail("a kernel is built"))
    with pytest.raises(Skipped, match="there is no /dev/no-kvm"):
        runs.execute_matrix([RunSpec(load_policy("none"), "phone-2g", 2, accel="kvm")])


def test_what_kvm_refuses_is_told(
    tmp_path: Path, own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a shell in the place of QEMU."""
    device, qemu = tmp_path / "kvm", tmp_path / "qemu"
    device.touch()
    qemu.touch(0o755)
    monkeypatch.setattr(accel, "KVM", device)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    need = host.need
    monkeypatch.setattr(host, "need", lambda x: qemu if x.startswith("qemu") else need(x))
    assert said_of("arm64") == "this machine is x86_64, and the guest is arm64"
    qemu.write_text("#!/bin/sh\necho one >&2; echo no vCPU >&2; exit 1\n")
    assert said_of() == "no vCPU"
    qemu.write_text("#!/bin/sh\nread -r word && [ $word = quit ]\n")
    accel.check("kvm", "x86_64")
    accel.check("auto", "arm64")
    device.unlink()
    device.mkdir()
    assert said_of() == f"{device}: Is a directory"


def test_of_a_check_that_qemu_fails_the_line_is_not_shown() -> None:
    raw = "qemu-system-x86_64: ../accel/kvm/kvm-all.c:1: kvm_init: Assertion `x' failed."
    assert accel._last_words(f"one\n{raw}\n".encode()) == (
        "QEMU failed a check of its own (cohort -v shows which)"
    )
    assert accel._last_words(b"one\ntwo\n") == "two"
    assert accel._last_words(b"") == "QEMU ended, and printed nothing"
