"""The guest's folders: what a file calls and includes lies in its own or on a lower floor."""

import re
from pathlib import Path

import pytest

import guest_house
import house
from cohort import host, paths

FILES = guest_house.files(paths.GUEST)
TEXTS = {name: (paths.GUEST / name).read_text(encoding="utf-8") for name in FILES}
SOURCES = [name for name in FILES if name.endswith(".c")]
HEADERS = [name for name in FILES if name.endswith(".h")]
GCC = ("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O0", f"-I{paths.GUEST}")

needs_gcc = pytest.mark.skipif(not (host.find("gcc") and host.find("nm")), reason="needs gcc")


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[guest_house.Arrow, set[str]]:
    """Which file needs which symbols of which other."""
    where = tmp_path_factory.mktemp("objects")
    done = host.run([*GCC, "-c", *(paths.GUEST / name for name in SOURCES)], cwd=where)
    assert done.returncode == 0, done.stderr
    made = sorted(file.name for file in where.glob("*.o"))
    assert len(made) == len(SOURCES), "two files have the same name"
    done = host.run(["nm", "--extern-only", "--print-file-name", *made], cwd=where)
    assert done.returncode == 0, done.stderr
    return house.arrows(guest_house.objects(SOURCES, done.stdout))


def test_each_folder_has_a_floor_and_nothing_lies_beside_them() -> None:
    assert {Path(name).parts[0] for name in FILES} == set(guest_house.FLOORS)
    assert {len(Path(name).parts) for name in FILES} == {2}
    makefile = (paths.GUEST / "Makefile").read_text()
    built = re.search(r"^FOLDERS := (.*)$", makefile, re.MULTILINE)
    assert built is not None
    assert {*built[1].split(), "suite"} == set(guest_house.FLOORS)


@needs_gcc
def test_calls_lead_down(calls: dict[guest_house.Arrow, set[str]]) -> None:
    assert guest_house.wrong_arrows(calls) == []


@needs_gcc
def test_no_two_files_call_each_other_on_any_way(calls: dict[guest_house.Arrow, set[str]]) -> None:
    assert guest_house.circle(calls) == []


@needs_gcc
def test_experiments_do_not_know_each_other(calls: dict[guest_house.Arrow, set[str]]) -> None:
    """dispatch.c knows all of them; what they share lies in lib.c and crew.c, and knows none."""
    here = {name for name in SOURCES if name.startswith("experiments/")}
    known = {end for start, end in calls if start == "experiments/dispatch.c"} & here
    shared = {"experiments/lib.c", "experiments/crew.c"}
    assert known == here - shared - {"experiments/dispatch.c"}
    assert [x for x in calls if x[0] in known | shared and x[1] in here - shared] == []


def test_includes_lead_down() -> None:
    arrows = guest_house.includes(TEXTS)
    assert guest_house.wrong_arrows(arrows) == []
    assert guest_house.circle(arrows) == []


def test_headers_alone_are_included() -> None:
    assert [x for x in guest_house.includes(TEXTS) if not x[1].endswith(".h")] == []


@needs_gcc
def test_each_header_stands_alone(tmp_path: Path) -> None:
    names = [paths.GUEST / name for name in HEADERS]
    words = ("-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c")
    done = host.run([*GCC, *words, *names], cwd=tmp_path)
    assert done.returncode == 0, done.stderr


# ---- the checker, on what nm and files might say ----
SAID = """\
util.o:0000000000000000 T now_ns
heap.o:0000000000000000 T heap_grow
heap.o:                 U now_ns
heap.o:                 U mmap
am.o:0000000000000000 T am_notice
am.o:                 U heap_grow
"""
NAMES = ["apps/heap.c", "apps/heap.h", "base/util.c", "system/am.c"]


def arrows_of(said: str) -> dict[guest_house.Arrow, set[str]]:
    return house.arrows(guest_house.objects(NAMES, said))


def test_a_house_whose_calls_lead_down_is_right() -> None:
    found = arrows_of(SAID)
    assert found == {
        ("apps/heap.c", "base/util.c"): {"now_ns"},
        ("system/am.c", "apps/heap.c"): {"heap_grow"},
    }
    assert guest_house.wrong_arrows(found) == []
    assert guest_house.circle(found) == []


def test_a_call_up_is_found() -> None:
    found = arrows_of(f"{SAID}util.o:                 U am_notice\n")
    assert guest_house.wrong_arrows(found) == ["base/util.c -> system/am.c"]
    assert len(guest_house.circle(found)) == 4


def test_neighbours_on_a_floor_do_not_call_each_other() -> None:
    arrows = [("measure/map.c", "stress/storms.c"), ("measure/map.c", "measure/work.c")]
    assert guest_house.wrong_arrows(arrows) == ["measure/map.c -> stress/storms.c"]


def test_a_circle_inside_a_folder_is_found() -> None:
    arrows = [("base/a.c", "base/b.c"), ("base/b.c", "base/c.c"), ("base/c.c", "base/b.c")]
    assert guest_house.wrong_arrows(arrows) == []
    assert guest_house.circle(arrows) in (
        ["base/b.c", "base/c.c", "base/b.c"],
        ["base/c.c", "base/b.c", "base/c.c"],
    )


def test_a_header_is_named_with_its_folder_or_is_a_neighbour() -> None:
    texts = {"base/a.h": '#include <a.h>\n#include "b.h"\n', "base/b.h": "", "apps/c.h": ""}
    texts["base/b.h"] = '#include "apps/c.h"\n'
    found = guest_house.includes(texts)
    assert found == [("base/a.h", "base/b.h"), ("base/b.h", "apps/c.h")]
    assert guest_house.wrong_arrows(found) == ["base/b.h -> apps/c.h"]
    with pytest.raises(KeyError):
        guest_house.includes({"base/a.h": '#include "gone.h"\n'})


def test_a_folder_without_a_floor_is_refused() -> None:
    with pytest.raises(KeyError):
        guest_house.wrong_arrows([("attic/a.c", "base/b.c")])
    with pytest.raises(KeyError):
        guest_house.objects([], SAID)
