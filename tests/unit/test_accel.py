"""Which accelerator a wish gets, with a probe that boots nothing."""

from pathlib import Path

import pytest

from cohort.errors import Skipped
from cohort.kernel.build import Kernel
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
