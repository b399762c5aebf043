"""What all tests share: a fake kernel tree, an `out/` of their own, the command in-process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cohort import cli

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = {patch}\nEXTRAVERSION =\n"
ALLOC_C = """\
#include <linux/mm.h>

static int alloc_fast(int order)
{
\treturn order;
}

int alloc_slow(int order)
{
\tint page = 0;

\tif (order > 3)
\t\tpage = 1;
\treturn page;
}
"""


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def own_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty output directory for this test alone."""
    out = tmp_path / "out"
    monkeypatch.setenv("COHORT_OUT", str(out))
    return out


@pytest.fixture
def cohort(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Call the command in this process: `cohort("kernel", "patch", ...)`."""

    def call(*words: str | Path) -> Outcome:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        said = capfd.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Outcome(code, said.out, said.err)

    return call


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[..., Path]:
    """Make a directory that looks like a kernel tree."""

    def make(patch: int = 117, alloc_c: str = ALLOC_C, name: str = "linux") -> Path:
        tree = tmp_path / name
        (tree / "mm").mkdir(parents=True)
        (tree / "Makefile").write_text(MAKEFILE.format(patch=patch))
        (tree / "mm" / "alloc.c").write_text(alloc_c)
        (tree / "mm" / "Makefile").write_text("obj-y += alloc.o\n")
        return tree

    return make
