"""Configuration fragments: merged, and checked against what the kernel made of them."""

from pathlib import Path

import pytest

from cohort.errors import BuildError, UsageError
from cohort.kernel import config
from cohort.kernel.build import KernelSpec


def fragments(directory: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (directory / f"{name}.config").write_text(text)
    return directory


def test_a_later_fragment_overrides(tmp_path: Path) -> None:
    where = fragments(tmp_path, base="CONFIG_A=y\nCONFIG_B=n\n# why\n", debug="CONFIG_B=y\n")
    merged = config.merge(("base", "debug"), where)
    assert config.render(merged) == "CONFIG_A=y\nCONFIG_B=y\n"
    assert merged["CONFIG_B"].where.endswith("debug.config:1")


def test_not_set_is_the_same_as_n(tmp_path: Path) -> None:
    where = fragments(tmp_path, base="# CONFIG_A is not set\nCONFIG_B=n\n")
    merged = config.merge(("base",), where)
    config.verify(merged, "CONFIG_C=y\n# CONFIG_A is not set\n")
    assert config.render(merged) == "# CONFIG_A is not set\n# CONFIG_B is not set\n"


def test_every_line_that_did_not_land_is_listed(tmp_path: Path) -> None:
    where = fragments(tmp_path, base="CONFIG_A=y\nCONFIG_N=64\nCONFIG_OFF=n\nCONFIG_OK=y\n")
    with pytest.raises(BuildError) as error:
        config.verify(config.merge(("base",), where), "CONFIG_N=32\nCONFIG_OFF=y\nCONFIG_OK=y\n")
    text = str(error.value)
    assert "base.config:1: CONFIG_A=y became n" in text
    assert "base.config:2: CONFIG_N=64 became 32" in text
    assert "base.config:3: CONFIG_OFF=n became y" in text
    assert "CONFIG_OK" not in text


def test_a_line_that_is_no_request_is_named(tmp_path: Path) -> None:
    where = fragments(tmp_path, base="CONFIG_A=y\nCONFG_B=y\n")
    with pytest.raises(UsageError, match=r"base\.config:2: .*CONFG_B=y"):
        config.merge(("base",), where)


def test_an_unknown_fragment_names_the_nearest_or_lists_the_known(tmp_path: Path) -> None:
    where = fragments(tmp_path, base="", arm64="")
    with pytest.raises(UsageError, match=r"did you mean base\?"):
        config.merge(("bass",), where)
    with pytest.raises(UsageError, match="there are: arm64, base"):
        config.merge(("lab",), where)


def test_variants() -> None:
    assert KernelSpec.variant("stock").configs == ("base", "x86_64", "lab")
    assert KernelSpec.variant("cohort").configs == ("base", "x86_64", "lab", "cohort")
    order9 = ("base", "x86_64", "lab", "cohort", "order9")
    assert KernelSpec.variant("order9").configs == order9
    debug = ("base", "x86_64", "lab", "cohort", "debug", "kunit")
    assert KernelSpec.variant("debug").configs == debug
    lockstat = ("base", "x86_64", "lab", "cohort", "lockstat")
    assert KernelSpec.variant("lockstat").configs == lockstat
    races = ("base", "x86_64", "lab", "cohort", "races")
    assert KernelSpec.variant("races").configs == races
    assert config.merge(races)["CONFIG_KCSAN"].value == "y"
    assert KernelSpec.from_fragments("base,x86_64").name == "base-x86_64"
    with pytest.raises(UsageError, match="no kernel variant"):
        KernelSpec.variant("sotck")
    with pytest.raises(UsageError, match="no machine"):
        KernelSpec.from_fragments("base,cohort")
    with pytest.raises(UsageError, match="name a machine 2 times"):
        KernelSpec.from_fragments("base,x86_64,arm64")
