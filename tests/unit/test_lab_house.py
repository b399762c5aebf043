"""The lab's folders: the gate finds a circle of them, and says which imports make it."""

import pytest

import lab_house

FILES = {
    "__init__.py": "__version__ = '1'",
    "host.py": "import os",
    "kernel/__init__.py": "",
    "kernel/build.py": "from cohort import __version__, host",
    "vm/__init__.py": "",
    "vm/accel.py": "from cohort.kernel.build import Kernel",
    "vm/guest.py": "from cohort.vm import accel",
}


def test_without_a_circle_nothing_is_said() -> None:
    found = lab_house.arrows(FILES)
    assert found == {
        ("kernel", "__init__.py"): {"kernel/build.py: __init__.py"},
        ("kernel", "host.py"): {"kernel/build.py: host.py"},
        ("vm", "kernel"): {"vm/accel.py: kernel/build.py"},
    }
    assert lab_house.circle(found) == []


@pytest.mark.parametrize(
    "text",
    [
        "from cohort.vm import guest",
        "from cohort.vm.guest import Limits",
        "import cohort.vm.guest",
        "def run():\n    from cohort.vm import guest",
        "if TYPE_CHECKING:\n    from cohort.vm.guest import Limits",
    ],
)
def test_two_folders_that_import_each_other_are_a_circle(text: str) -> None:
    found = lab_house.circle(lab_house.arrows({**FILES, "kernel/kunit.py": text}))
    assert sorted(found) == [
        "kernel -> vm: kernel/kunit.py: vm/guest.py",
        "vm -> kernel: vm/accel.py: kernel/build.py",
    ]


def test_a_way_over_a_file_beside_the_folders_is_a_circle() -> None:
    """A shared piece that is put there, and needs both, hides one."""
    more = {"runs.py": "from cohort.vm import guest", "kernel/check.py": "from cohort import runs"}
    found = lab_house.circle(lab_house.arrows({**FILES, **more}))
    assert sorted(found) == [
        "kernel -> runs.py: kernel/check.py: runs.py",
        "runs.py -> vm: runs.py: vm/guest.py",
        "vm -> kernel: vm/accel.py: kernel/build.py",
    ]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(KeyError, match=r"cohort\.gone\.x"):
        lab_house.arrows({"host.py": "from cohort.gone import x"})
