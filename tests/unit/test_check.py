"""Compiling what is touched, without a compiler: the mirror, and what a configuration has."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from cohort import host
from cohort.errors import BuildError
from cohort.kernel import build, check
from tests_support import HOOK, Outcome, snapshot

MAKEFILE = """\
mmu-y\t:= gup.o \\
\t\t   alloc.o
obj-$(CONFIG_A) += a.o more-a.o
obj-$(CONFIG_B) += b.o
ifeq ($(CONFIG_C),y)
many-objs += c.o
else
many-objs += no-c.o
endif
ifdef CONFIG_A
obj-$(CONFIG_D) += d.o
endif
"""


class Make:
    """Stands in for make: remembers what was asked for, and what the source tree looked like."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[list[str]] = []
        self.seen: dict[str, str] = {}
        self.fails = fails

    def run(
        self, argv: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None
    ) -> CompletedProcess[str]:
        words = [str(word) for word in argv]
        self.calls.append(words)
        tree = Path(words[words.index("-C") + 1])
        self.seen = {str(x.relative_to(tree)): _kind(x) for x in sorted(tree.rglob("*"))}
        out = Path(next(word for word in words if word.startswith("O=")).removeprefix("O="))
        if "allnoconfig" in words:
            asked = next(word for word in words if word.startswith("KCONFIG_ALLCONFIG="))
            (out / ".config").write_text(Path(asked.partition("=")[2]).read_text())
        said = "  CC mm/alloc.o\nmm/alloc.c:3:1: error: no\n" if self.fails in words else ""
        return CompletedProcess(words, 2 if said else 0, said, "")


def _kind(path: Path) -> str:
    if path.is_symlink():
        return "link"
    return "directory" if path.is_dir() else path.read_text()


@pytest.fixture
def tree(own_out: Path, make_tree: Callable[..., Path], make_series: Callable[..., Path]) -> Path:
    """A tree that was built inside, and a series and fragments of little."""
    make_series(
        {
            "kernel/mm/cohort/core.c": "int cohort;\n",
            "patches/6.12/series": "0001-hook.patch\n",
            "patches/6.12/0001-hook.patch": HOOK,
        }
    )
    made = make_tree()
    for name in (
        "mm/other.c",
        ".config",
        "include/config/auto.conf",
        "include/linux/mm.h",
        "arch/x86/include/generated/a.h",
        "arch/x86/include/asm/b.h",
    ):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text("theirs\n")
    return made


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """In place of make."""
    stand_in = Make(fails="never")
    monkeypatch.setattr(host, "run", stand_in.run)
    monkeypatch.setattr(build, "make_command", lambda tree, out, arch: ["-C", tree, f"O={out}"])
    return stand_in


@pytest.mark.parametrize("option", ["--compile", "--check"])
def test_the_tree_stays_and_make_sees_it_patched(
    tree: Path, make: Make, option: str, cohort: Callable[..., Outcome]
) -> None:
    before = snapshot(tree)
    done = cohort("kernel", "patch", "--tree", tree, option, "--config", "x86_64")
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "compiles: 1 files and mm/cohort (x86_64)"
    assert snapshot(tree) == before
    assert [call[-1] for call in make.calls[-2:]] == ["prepare", "mm/cohort/"]
    assert "mm/alloc.o" in make.calls[-1]
    assert "cohort_alloc(order);" in make.seen["mm/alloc.c"]
    assert make.seen["mm/cohort/core.c"] == "int cohort;\n"
    assert (make.seen["mm/other.c"], make.seen["include/linux"]) == ("link", "link")
    assert make.seen["arch/x86/include/asm"] == "link"
    left = {".config", "include/config", "arch/x86/include/generated"}
    assert left.isdisjoint(make.seen)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("mm/alloc.o", "the patches fit, but what they call is not what this tree has"),
        ("prepare", "make cannot begin: the lines above tell what this machine lacks for it"),
    ],
)
def test_what_does_not_compile_is_told(
    tree: Path, make: Make, target: str, hint: str, cohort: Callable[..., Outcome]
) -> None:
    make.fails = target
    before = snapshot(tree)
    done = cohort("kernel", "patch", "--tree", tree, "--compile", "--config", "x86_64")
    assert done.code == BuildError.exit_code
    assert "mm/alloc.c:3:1: error: no" in done.stderr
    assert hint in done.stderr
    assert snapshot(tree) == before


@pytest.mark.parametrize("name", ["my linux", "linux:6.12"])
@pytest.mark.parametrize("words", ["patch --compile", "build --config base,x86_64,lab"])
def test_a_tree_that_make_would_look_for_elsewhere(
    name: str,
    words: str,
    tree: Path,
    make: Make,
    cohort: Callable[..., Outcome],
) -> None:
    odd = tree.rename(tree.with_name(name))
    done = cohort("kernel", *words.split(), "--tree", odd)
    assert (done.code, make.calls) == (2, []), done.stderr
    assert "make takes a path apart at a blank or a colon" in done.stderr
    told = json.loads(cohort("kernel", "patch", "--tree", odd, "--dry-run", "--json").stdout)
    assert (told["action"], told["refused"], told["tree"]) == ("would apply", [], str(odd))
    assert {"file", "line", "where", "patch", "offset"} == set(told["hunks"][0])
    done = cohort("kernel", "patch", "--tree", odd, "--frozen", "--json")
    assert "structures" in json.loads(done.stdout)
    assert cohort("kernel", "patch", "--tree", odd).code == 0


def test_a_configuration_of_the_users_own(
    tree: Path, make: Make, tmp_path: Path, cohort: Callable[..., Outcome]
) -> None:
    own = tmp_path / "phone.config"
    own.write_text("CONFIG_ARM64=y\nCONFIG_PHONE=y\n")
    done = cohort("kernel", "patch", "--tree", tree, "--compile", "--config", own)
    assert done.code == 0, done.stderr
    assert make.calls[-3][-1] == "olddefconfig"
    out = next(word for word in make.calls[-1] if word.startswith("O=")).removeprefix("O=")
    written = (Path(out) / ".config").read_text()
    assert "CONFIG_PHONE=y\n" in written
    assert "CONFIG_COHORT=y\n" in written


def test_a_configuration_for_no_machine(
    tree: Path, tmp_path: Path, cohort: Callable[..., Outcome]
) -> None:
    own = tmp_path / "phone.config"
    own.write_text("CONFIG_RISCV=y\n")
    done = cohort("kernel", "patch", "--tree", tree, "--compile", "--config", own)
    assert done.code == 2
    assert "is for none of: x86_64, arm64" in done.stderr


@pytest.mark.parametrize(
    ("name", "on", "is_built"),
    [
        ("alloc", set(), True),
        ("unknown", set(), True),
        ("a", {"CONFIG_A"}, True),
        ("a", set(), False),
        ("b", {"CONFIG_A"}, False),
        ("c", {"CONFIG_C"}, True),
        ("c", set(), False),
        ("no-c", set(), True),
        ("d", {"CONFIG_D"}, False),
        ("d", {"CONFIG_A", "CONFIG_D"}, True),
    ],
)
def test_the_makefile_tells_what_is_built(
    tmp_path: Path, name: str, on: set[str], is_built: bool
) -> None:
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/Makefile").write_text(MAKEFILE)
    assert check._is_built(tmp_path, f"mm/{name}.c", on) == is_built
