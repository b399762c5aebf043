"""What all tests share: a fake kernel tree, an `out/` of their own, the command in-process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from cohort import cli, host, kept, paths, runs
from cohort.errors import Failed
from cohort.kernel import overlay, source
from cohort.kernel.build import Kernel, KernelSpec, build, held_tree
from cohort.log import Update, line_writer
from cohort.results.metrics import compute_metrics
from cohort.results.rundir import RunDir
from cohort.run_spec import RunSpec
from made_runs import make_run
from tests_support import ALLOC_C, Outcome

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = {patch}\nEXTRAVERSION =\n"


@pytest.fixture
def own_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty output directory for this test alone."""
    out = tmp_path / "out"
    monkeypatch.setenv("COHORT_OUT", str(out))
    return out


@pytest.fixture(autouse=True)
def nothing_is_held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A session of tests is one process, with an output directory for each of hundreds."""
    yield
    kept.let_go(tmp_path_factory.getbasetemp())


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


@pytest.fixture
def patched(tmp_path: Path, own_out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands for the fetched tree, with an overlay on it that is up to date."""
    tree = tmp_path / "fetched"
    (tree / "mm" / "cohort").mkdir(parents=True)
    monkeypatch.setattr(source, "fetch", lambda update: tree)
    monkeypatch.setattr(source, "read_release", lambda at: "6.12.117")
    monkeypatch.setattr(overlay, "load_series", lambda: SimpleNamespace(id="now"))
    monkeypatch.setattr(overlay, "applied_id", lambda at: "now")
    return tree


@pytest.fixture
def make_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make an overlay and a series in place of the repository's, of texts by name; return where."""

    def make(texts: Mapping[str, str]) -> Path:
        root = tmp_path / "repo"
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        monkeypatch.setattr(paths, "OVERLAY", root / "kernel")
        monkeypatch.setattr(paths, "PATCHES", root / "patches")
        return root

    return make


@pytest.fixture
def no_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are made by hand instead of by QEMU."""

    def made(specs: Sequence[RunSpec], *_: object) -> list[RunDir]:
        done = [
            RunDir(make_run(tmp_path / "runs", s.policy.name, s.seed, 1 / (1 + i)))
            for i, s in enumerate(specs)
        ]
        for run in done:
            host.write_json(run.path / "metrics.json", compute_metrics(run.records()))
        return done

    monkeypatch.setattr(runs, "execute_matrix", made)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RunSpec]:
    """The runs that a command asks for; it ends with 1 before any is made."""
    specs: list[RunSpec] = []

    def execute(wanted: Sequence[RunSpec], *_: object) -> list[RunDir]:
        specs.extend(wanted)
        raise Failed("seen")

    monkeypatch.setattr(runs, "execute_matrix", execute)
    return specs


@pytest.fixture(scope="session")
def announce(pytestconfig: pytest.Config) -> Callable[[str], Update]:
    """Progress of long preparations, past pytest's capture: a build takes minutes."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def task(title: str) -> Update:
        line = line_writer(title)

        def update(done: int, total: int) -> None:
            with capture.global_and_fixture_disabled():
                line(done, total)

        return update

    return task


@pytest.fixture(scope="session")
def tree(announce: Callable[[str], Update]) -> Path:
    """The fetched kernel source with Cohort on it, as the builds use it."""
    found = source.fetch(announce("unpacking the kernel source, MiB"))
    # Another worker of pytest has the same tree, and a build may.
    with held_tree(found, own=False, shared=False):
        overlay.apply(found)
    return found


@pytest.fixture(scope="session")
def kernel(announce: Callable[[str], Update]) -> Callable[..., Kernel]:
    """Build a kernel variant, "stock", "cohort" or "debug", for x86_64 or another machine."""

    def make(variant: str, arch: str = "x86_64", page_size: int = 4096) -> Kernel:
        spec = KernelSpec.variant(variant, arch, page_size=page_size)
        return build(spec, announce(f"building kernel {spec.name}"))

    return make


ORDER = {"gate": 0, "unit": 1, "kernel": 2, "integration": 3}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick ones first: a misplaced blank should not be found after half an hour of guests."""

    def rank(item: pytest.Item) -> int:
        return max([ORDER[m.name] for m in item.iter_markers() if m.name in ORDER] or [1])

    items.sort(key=rank)
