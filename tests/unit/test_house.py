"""The checker of the kernel part's floors, on what `nm` might say."""

import pytest

import house

LIB = house.read("lib", "0000000000000000 T cohort_order_ok\n")
CORE = house.read(
    "core",
    "                 U cohort_order_ok\n"
    "                 U kmalloc\n"
    "0000000000000000 T cohort_domain_put\n"
    "0000000000000010 t cohort_slot_of\n"
    "0000000000000020 T __cohort_link\n",
)
REGION = house.read(
    "region",
    "                 U cohort_domain_put\n"
    "0000000000000000 B cohort_region_key\n"
    "0000000000000000 T __cohort_kernel_domain\n",
)
HOOKS = house.read(
    "hooks", "                 U cohort_region_key\n0000000000000000 T __cohort_free_page\n"
)
RIGHT = [LIB, CORE, REGION, HOOKS]
HEADER = "bool __cohort_link(struct page *page);\nvoid __cohort_free_page(struct page *page);\n"


def test_a_house_whose_arrows_point_down_is_right() -> None:
    assert house.wrong_arrows(RIGHT) == []
    assert house.scheme_names(RIGHT) == []
    assert house.entries_from_inside(RIGHT, HEADER) == []
    assert house.arrows(RIGHT) == {
        ("core", "lib"): {"cohort_order_ok"},
        ("region", "core"): {"cohort_domain_put"},
        ("hooks", "region"): {"cohort_region_key"},
    }


def test_lines_that_a_patch_adds_are_counted_without_its_heads() -> None:
    patch = (
        "Subject: +1\n---\n--- a/mm/x.c\n+++ b/mm/x.c\n@@ -1,2 +1,3 @@\n"
        " int x;\n-int y;\n+\n+++x;\n"
    )
    assert house.added_lines(patch) == 2


def test_core_that_asks_a_scheme_is_found() -> None:
    wrong = house.read("core", "                 U cohort_region_key\n")
    assert house.wrong_arrows([*RIGHT, wrong]) == ["core -> region: cohort_region_key"]
    assert house.scheme_names([*RIGHT, wrong]) == ["cohort_region_key"]


def test_a_static_function_of_core_named_after_a_scheme_is_found() -> None:
    wrong = house.read("core", "0000000000000000 t cohort_cpb_step\n")
    assert house.scheme_names([*RIGHT, wrong]) == ["cohort_cpb_step"]


@pytest.mark.parametrize("folder", ["lib", "core", "region", "dmabuf"])
def test_nothing_calls_what_hooks_defines(folder: str) -> None:
    wrong = house.read(folder, "                 U __cohort_free_page\n")
    assert house.wrong_arrows([*RIGHT, wrong]) == [f"{folder} -> hooks: __cohort_free_page"]
    assert house.entries_from_inside([*RIGHT, wrong], HEADER) == ["__cohort_free_page"]


def test_an_entry_of_another_folder_is_not_called_from_inside_either() -> None:
    wrong = house.read("region", "                 U __cohort_link\n")
    assert house.entries_from_inside([*RIGHT, wrong], HEADER) == ["__cohort_link"]


@pytest.mark.parametrize(
    ("name", "found"), [("cohort_age", ["cohort_age"]), ("cohort_zone_drain", [])]
)
def test_an_entry_is_one_by_its_place_not_by_its_name(name: str, found: list[str]) -> None:
    """But for the few that both sides call."""
    header = f"{HEADER}bool {name}(struct zone *zone);\n#define cohort_core(x) cohort_lib(x)\n"
    wrong = house.read("core", f"                 U {name}\n                 U cohort_lib\n")
    assert house.entries_from_inside([*RIGHT, wrong], header) == found


def test_schemes_do_not_call_each_other() -> None:
    wrong = house.read("cpb", "                 U cohort_region_key\n")
    assert house.wrong_arrows([*RIGHT, wrong]) == ["cpb -> region: cohort_region_key"]


def test_a_folder_without_a_floor_is_refused() -> None:
    with pytest.raises(KeyError):
        house.read("attic", "")
