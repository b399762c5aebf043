"""Packages of the kernel, without a compiler: configurations by name, and what make is told."""

import lzma
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from cohort import host
from cohort.errors import BuildError, MissingTool, UsageError
from cohort.kernel import build, config, deb, identity

BASE = """\
CONFIG_LOCALVERSION=""
# CONFIG_DEBUG_INFO_NONE is not set
CONFIG_EXT4_FS=m
CONFIG_SYSTEM_TRUSTED_KEYS="own.pem"
"""


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """The distribution's package of configurations."""
    where = tmp_path / "linux-config-6.12"
    where.mkdir()
    for name in ("amd64_none_amd64", "amd64_none_cloud-amd64", "amd64_rt_amd64"):
        text = f"{BASE}CONFIG_OF={name}\n"
        (where / f"config.{name}.xz").write_bytes(lzma.compress(text.encode()))
    return where


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("amd64", "amd64_none_amd64"),
        ("cloud-amd64", "amd64_none_cloud-amd64"),
        ("rt-amd64", "amd64_rt_amd64"),
    ],
)
def test_a_configuration_has_the_name_of_its_flavour(name: str, kind: str, configs: Path) -> None:
    assert f"CONFIG_OF={kind}\n" in deb.base_config(name, configs)


def test_a_file_is_a_configuration(configs: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.config"
    own.write_text(BASE)
    assert deb.base_config(str(own), configs) == BASE


def test_a_configuration_that_is_no_text_is_told(configs: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.config"
    own.write_bytes(BASE.encode() + b'CONFIG_CMDLINE="\xe4"\n')
    with pytest.raises(UsageError, match="not UTF-8 text"):
        deb.base_config(str(own), configs)


def test_an_unknown_name_is_told_with_the_nearest(configs: Path) -> None:
    with pytest.raises(UsageError, match="did you mean cloud-amd64"):
        deb.base_config("clowd-amd64", configs)
    with pytest.raises(UsageError, match="there are: amd64, cloud-amd64, rt-amd64"):
        deb.base_config("xyz", configs)


def test_without_the_package_its_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingTool, match="apt-get install linux-config-6.12"):
        deb.base_config("amd64", tmp_path / "linux-config-6.12")


class Make:
    """Stands in for make: keeps the configuration but for `refused`, and makes two packages."""

    def __init__(self, refused: str = "") -> None:
        self.words: list[str] = []
        self.targets: list[str] = []
        self.refused = refused

    def configure(
        self, argv: Sequence[str | Path], *, env: Mapping[str, str]
    ) -> CompletedProcess[str]:
        words = [str(word) for word in argv]
        self.targets.append(words[-1])
        if words[-1] == "localmodconfig":
            assert Path(words[-2].removeprefix("LSMOD=")).is_absolute()
        out = Path(next(word for word in words if word.startswith("O=")).removeprefix("O="))
        lines = (out / ".config").read_text().splitlines()
        kept = config.parse("\n".join(lines), "")
        kept.pop(self.refused, None)
        (out / ".config").write_text(config.render(kept))
        return CompletedProcess(words, 0, "", "")

    def make(self, command: list[str], out: Path, update: object, steps: int) -> None:
        self.words = command
        for name in ("linux-image", "linux-headers"):
            (out.parent / f"{name}-6.12.117-cohort_6.12.117-2_amd64.deb").touch()
        release = out / "include/config/kernel.release"
        release.parent.mkdir(parents=True, exist_ok=True)
        release.write_text("6.12.117-cohort\n")


@pytest.fixture
def make(patched: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A tree that is fetched and patched, and make that compiles nothing."""
    made = Make()
    monkeypatch.setattr(host, "find", lambda program: Path("/bin", program))
    monkeypatch.setattr(host, "run", made.configure)
    monkeypatch.setattr(build, "make", made.make)
    monkeypatch.setattr(identity, "identify", lambda tree: "id")
    return made


def test_packages_are_made_and_those_of_before_are_gone(
    make: Make, configs: Path, own_out: Path
) -> None:
    home = own_out / "kernel/deb/cloud-amd64"
    home.mkdir(parents=True)
    (home / "linux-image-6.12.9-cohort_6.12.9-1_amd64.deb").touch()
    made = deb.build_packages("cloud-amd64", None, 2, lambda done, total: None, configs)
    assert made.release == "6.12.117-cohort"
    assert [path.name.partition("_")[0] for path in made.files] == [
        "linux-headers-6.12.117-cohort",
        "linux-image-6.12.117-cohort",
    ]
    assert make.words[-2:] == ["KDEB_PKGVERSION=6.12.117-2", "bindeb-pkg"]
    built = config.parse((home / "build/.config").read_text(), "")
    assert {built[x].value for x in ("CONFIG_COHORT", "CONFIG_COHORT_VNODE")} == {"y"}
    assert built["CONFIG_EXT4_FS"].value == "m"
    assert built["CONFIG_SYSTEM_TRUSTED_KEYS"].value == '""'
    assert built["CONFIG_LOCALVERSION"].value == '"-cohort"'


def test_a_configuration_without_a_keyring_gets_no_certificate(
    make: Make, tmp_path: Path, own_out: Path
) -> None:
    own = tmp_path / "own.config"
    own.write_text("".join(BASE.splitlines(keepends=True)[:-1]))
    deb.build_packages(str(own), None, 1, lambda done, total: None)
    (written,) = (own_out / "kernel/deb").glob("own-config-*/build/.config")
    assert "TRUSTED_KEYS" not in written.read_text()


def test_modules_that_a_machine_has_not_loaded_are_left_out_before_cohort_is_added(
    make: Make, configs: Path, tmp_path: Path, own_out: Path
) -> None:
    lsmod = tmp_path / "lsmod"
    lsmod.write_text("Module                  Size  Used by\next4  1 0\n")
    deb.build_packages("cloud-amd64", None, 1, lambda done, total: None, configs, lsmod)
    assert make.targets == ["olddefconfig", "localmodconfig", "olddefconfig"]
    (written,) = (own_out / "kernel/deb").glob("cloud-amd64-*/build/.config")
    built = config.parse(written.read_text(), "")
    assert built["CONFIG_COHORT"].value == "y"


@pytest.mark.parametrize("text", [None, "", "ext4\n"])
def test_what_is_no_output_of_lsmod_is_refused(
    make: Make, configs: Path, tmp_path: Path, text: str | None
) -> None:
    lsmod = tmp_path / "lsmod"
    if text is not None:
        lsmod.write_text(text)
    with pytest.raises(UsageError, match="not the output of lsmod"):
        deb.build_packages("cloud-amd64", None, 1, lambda done, total: None, configs, lsmod)
    assert make.targets == []


def test_a_kernel_that_refuses_cohort_is_not_built(make: Make, configs: Path) -> None:
    make.refused = "CONFIG_COHORT_VNODE"
    with pytest.raises(BuildError, match="CONFIG_COHORT_VNODE=y became n"):
        deb.build_packages("amd64", None, 1, lambda done, total: None, configs)
    assert make.words == []


def test_packages_of_others_stay(
    make: Make, patched: Path, configs: Path, tmp_path: Path, own_out: Path
) -> None:
    """Those of two trees, and of two files of one name: the second removed those of the first."""
    lsmod = tmp_path / "lsmod"
    lsmod.write_text("Module                  Size  Used by\next4  1 0\n")
    files = [tmp_path / phone / ".config" for phone in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text(BASE)
    calls: list[tuple[str, Path | None, Path | None]] = [
        ("amd64", None, None),
        ("amd64", patched, None),
        ("amd64", None, lsmod),
        *((str(file), None, None) for file in files),
    ]
    made = [
        deb.build_packages(name, tree, 1, lambda done, total: None, configs, loaded)
        for name, tree, loaded in calls
    ]
    assert [all(file.is_file() for file in one.files) for one in made] == [True] * len(calls)
    assert len({one.files[0].parent for one in made}) == len(calls)
    again = deb.build_packages(str(files[0]), None, 1, lambda done, total: None, configs)
    assert again.files == made[-2].files


def test_what_is_wrong_is_told_before_what_is_missing(
    configs: Path, tmp_path: Path, own_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all that is missing at once."""
    gone = {"dh", "rsync", "flex"}
    monkeypatch.setattr(host, "find", lambda name: None if name in gone else Path("/bin", name))

    def build_of(name: str, tree: Path | None = None, lsmod: Path | None = None) -> None:
        deb.build_packages(name, tree, 1, lambda done, total: None, configs, lsmod)

    with pytest.raises(UsageError, match="no file and no configuration"):
        build_of("amd65")
    with pytest.raises(UsageError, match="not the output of lsmod"):
        build_of("amd64", None, tmp_path / "gone")
    with pytest.raises(UsageError, match="is not a kernel tree"):
        build_of("amd64", tmp_path)
    with pytest.raises(MissingTool, match="dh, rsync, flex are not installed") as missing:
        build_of("amd64")
    assert missing.value.hint == "apt-get install debhelper rsync flex"


def test_a_tree_without_cohort_is_refused(
    make: Make, make_tree: Callable[..., Path], configs: Path, own_out: Path
) -> None:
    tree = make_tree()
    with pytest.raises(UsageError, match="has no Cohort") as refused:
        deb.build_packages("amd64", tree, 1, lambda done, total: None, configs)
    assert refused.value.hint == f"cohort kernel patch --tree {tree}"
