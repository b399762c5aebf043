"""Phones fit in their memory, and one that does not is refused with what would."""

import re
from collections.abc import Sequence

import pytest

from cohort import paths, runs, switches
from cohort.errors import UsageError
from cohort.phone import room
from cohort.phone.workload import load_workload, workload_names
from cohort.policy import load_policy
from cohort.run_check import check_run
from cohort.run_spec import RunSpec


@pytest.mark.parametrize("name", workload_names())
def test_every_phone_has_room_for_its_largest_app(name: str) -> None:
    phone = load_workload(name)
    assert room.booted_mb(phone) < room.least_mb(phone) <= phone.memory_mb


def test_what_boot_starts_is_added_up() -> None:
    phone = load_workload("phone-2g")
    heaps = 110 + 80 + 36 + 17 * 14 + 21 * 16 + 8 * 10 + 40 + 49 * 3
    launcher = 50 + 3 + 16 + 4 + 1
    expected = (heaps + launcher + room.KERNEL_MB + 49 + 5 + 32) * 64 / 63
    assert room.booted_mb(phone) == int(expected)
    camera = 44 * 90 // 100 + 3 + 260 + 16 + 1
    assert room.least_mb(phone) == pytest.approx(expected + camera * 64 / 63, abs=1)
    swaps = load_workload("phone-2g-zram")
    assert room.booted_mb(swaps) < room.booted_mb(phone)


def test_too_little_memory_is_an_error_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def built(specs: Sequence[RunSpec]) -> None:
        raise AssertionError("something was built")

    monkeypatch.setattr(runs, "prepare", built)
    spec = RunSpec(load_policy("none"), "phone-2g", memory_mb=1024)
    for run in (lambda: runs.execute(spec), lambda: runs.execute_matrix([spec])):
        with pytest.raises(UsageError) as caught:
            run()
        assert "phone-2g: 1024 MiB are too little" in caught.value.message
        assert f"--memory {room.least_mb(load_workload('phone-2g'))}" in str(caught.value.hint)
        assert "phone-1g" in str(caught.value.hint)
    fast = check_run(RunSpec(load_policy("none"), "phone-2g"))
    free = check_run(RunSpec(load_policy("none"), "phone-2g", accel="auto"))
    assert ["time virtual" in fast.conf, "time real" in free.conf] == [True, True]
    small = (("process.framework.heap_mb", 48), ("group.service.heap_mb", 4))
    assert check_run(RunSpec(load_policy("none"), "phone-2g", change=small))


def test_what_a_policy_sets_aside_is_no_room_for_the_phone() -> None:
    """Pages of the area are lent to processes, those of a static reserve never are."""

    def check(policy: str, memory_mb: int) -> None:
        check_run(RunSpec(load_policy(policy), "camera", 2, memory_mb=memory_mb))

    booted = room.booted_mb(load_workload("camera"))
    check("pcpa", booted)
    for policy in ("sra", "pcpa-kept"):
        with pytest.raises(UsageError, match="of which 260 are set aside are too little") as caught:
            check(policy, booted + 259)
        assert f"--memory {room.least_mb(load_workload('camera')) + 260}" in str(caught.value.hint)
        check(policy, booted + 260)
    written = {switches.AREA_FILES["cohort.pcpa_contig"]: "260M"}
    late = load_policy("none").model_copy(update={"sysfs": written})
    with pytest.raises(UsageError, match="of which 260 are set aside are too little"):
        check_run(RunSpec(late, "camera", 2, memory_mb=booted + 259))


@pytest.mark.parametrize("name", ["vnode-case3", "vnode-case4"])
def test_the_memory_that_a_policy_speaks_of_holds_its_trusted_node(name: str) -> None:
    """Its apps come besides, but the fault benchmark is there before any."""
    text = (paths.POLICIES / f"{name}.toml").read_text(encoding="utf-8")
    memory_mb = int(re.findall(r"--memory (\d+)", text)[0])
    phone = load_workload("vnode-pressure")
    cow = phone.zygote.cow_mb.value + room.PROCESS_MB
    single = [x.heap_mb.value + cow for x in phone.process.values() if x.role == "trusted"]
    alike = [
        (x.heap_mb.value + cow) * x.count.value for x in phone.group.values() if x.role == "trusted"
    ]
    launcher = sum(room._on_screen(phone, phone.app["launcher"]))
    kernel = room.KERNEL_MB + memory_mb // 64 + room.NATIVE + phone.zygote.heap_mb.value
    needed = kernel + sum(single) + sum(alike) + launcher + phone.faults.bench_mb.value
    layout = switches.values(load_policy(name).cmdline)["cohort.vnode"]
    size, unit = re.findall(r":(\d+)([M%])", layout)[0]
    assert needed <= (int(size) if unit == "M" else memory_mb * int(size) // 100)
