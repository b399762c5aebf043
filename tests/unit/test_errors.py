"""Bad input and a bad host: a clear message and its own exit code, through the whole command."""

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from cohort import __main__, cli, errors, host, paths
from cohort.kernel import deb, overlay, source
from cohort.results.rundir import RunDir
from cohort.suites import selftests
from cohort.verbs import doctor
from cohort.verbs.options import make_room
from made_runs import make_run
from tests_support import Outcome, snapshot

Cohort = Callable[..., Outcome]
MakeTree = Callable[..., Path]
OTHERS = (cli.EXIT_DEFECT, cli.EXIT_INTERRUPTED, cli.EXIT_TERMINATED)
"""Exit codes that no error of the lab has."""


def test_every_error_has_its_own_code() -> None:
    kinds = [
        *(errors.Failed, errors.UsageError, errors.MissingTool, errors.Skipped),
        *(errors.BuildError, errors.PatchError, errors.GuestError, errors.HostError),
    ]
    assert [kind.exit_code for kind in kinds] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("code", [*range(9), *OTHERS])
def test_every_code_is_told(code: int) -> None:
    """In the help, in the reference and beside the errors."""
    files = ("docs/reference/commands.md", "CONTRIBUTING.md")
    texts = [(paths.ROOT / name).read_text(encoding="utf-8") for name in files]
    for text in (*texts, cli.cohort.help or ""):
        assert re.search(rf"[,:|]\s+{code} ", text)


def test_an_unknown_policy(own_out: Path, cohort: Cohort) -> None:
    done = cohort("run", "regoin")
    assert done.code == 2
    assert "no policy named 'regoin'" in done.stderr
    assert "did you mean region?" in done.stderr


def test_bad_toml_names_file_line_and_key(own_out: Path, tmp_path: Path, cohort: Cohort) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "mine"\n\n[sysctl]\n"vm.swappiness" = []\n')
    done = cohort("run", file)
    assert done.code == 2
    assert f"{file}:4:" in done.stderr
    assert "vm.swappiness" in done.stderr


def test_an_unknown_scheme_in_a_policy(own_out: Path, tmp_path: Path, cohort: Cohort) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "mine"\ncmdline = ["cohort=region,regoin"]\n')
    done = cohort("run", file)
    assert done.code == 2
    for word in ("mine", "cmdline", "'regoin'"):
        assert word in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "none", "--launches", "0"), "at least 1"),
        (("run", "none", "--launches", "20001"), "launches: 20001: not between 1 and 20000"),
        (("run", "cma", "--workload", "camera", "--launches", "9999"), "with those between the"),
        (("run", "none", "--memory", "0"), "memory must be 1 to"),
        (("compare", "none", "--memory", "9999999"), "memory must be 1 to"),
        (("run", "none", "--memory", "64"), "64 MiB are too little"),
        (("suite", "fio", "--policies", ""), "--policies names none"),
        (("suite", "fio", "--policies", "none, regoin"), "no policy named 'regoin'"),
        (("suite", "scale"), "cohort scale"),
        (("study", "cpb-fig3a", "--run", "cbp"), "did you mean cpb?"),
        (("run", "none", "--timeout", "-1"), "more than 0 seconds"),
        (("compare", "none", "--timeout", "nan"), "more than 0 seconds"),
        (("run", "none", "--jobs", "0"), "--jobs"),
        (("tune", "pcpa", "--jobs", "-1"), "--jobs"),
        (("run", "none", "--seed", "18446744073709551616"), "2^64"),
        (("compare", "none", "--seeds", "1", "--seed", "-2"), "not negative"),
        (("study", "region-fig2", "--seed", "x"), "not numbers"),
        (("run", "none", "--seed", "one"), "not numbers"),
        (("run", "none", "--workload", "phone-9g"), "phone-9g"),
        (("kernel", "build", "--config", "base,x86_64,gone"), "no configuration fragment gone"),
        (("kernel", "build", "--config", "base"), "among them: such as base,x86_64,lab,cohort"),
        (("run", "none", "--kernel", "stock"), "among them: stock is base,x86_64,lab\n"),
        (("run", "none", "--kernel", "gcma"), "GCMA needs a tree that has it"),
        (("suite", str(paths.SUITES)), f"hint: cohort suite NAME --dir {paths.SUITES}"),
        (("run", "none", "--append", "cohort=regoin"), "cohort=regoin: no scheme 'regoin'"),
        (("run", "none", "--append", "cohort.region_order=10"), "not a number from 5 to 9"),
        (("run", "none", "--append", "cohort.pcpa=261M"), "not a multiple of a pageblock, 2M"),
        (("run", "pcpa", "--append", "cohort.pcpa=64M"), "cohort.pcpa=64M: given twice"),
        (("run", "vnode", "--memory", "512"), "policy vnode on phone-2g: cmdline: cohort.vnode="),
        (("run", "pcpa", "--memory", "256"), "larger than the machine's 256M"),
        (("run", "vnode-case2"), "3 nodes, and the machine has 2 CPUs"),
        (("compare", "none", "vnode-case2"), "3 nodes, and the machine has 2 CPUs"),
        (("run", "none", "--append", "cohort.order=6"), "no such parameter"),
        (("run", "none-stock", "--append", "cohort=cpb"), "none-stock, base,x86_64,lab, has no"),
        (("run", "none", "--append", "quiet nosmt"), "hint: name each by itself: --append ONE"),
        (("run", "none", "--append", ""), "'': must be one boot parameter a string"),
        (("run", "none", "--append", "quiet\n"), "'quiet\\n': must be one boot parameter"),
        (("compare", "none", "--report", "."), "is a directory"),
        (("run", "none", "--perfetto", "."), "is a directory"),
        (("report", "--last", "-o", "."), "is a directory"),
        (("study", "region-fig2", "--launches", "0"), "at least 1, not 0"),
        (("kernel", "build", "--stock", "--config", "base,x86_64"), "--stock does not go with"),
        (("kernel", "patch", "--config", "base,x86_64"), "--config is what --compile compiles"),
        (("kernel", "test", "--timeout", "nan"), "more than 0 seconds"),
        (("kernel", "test", "--timeout", "0"), "more than 0 seconds"),
        (("kernel", "test", "--timeout", "-5"), "more than 0 seconds"),
        (("scale", "--free-running", "none", "region"), "is of one policy, not of none, region"),
        (("scale", "--free-running", "--workload", "scale"), "scale.turns is 0"),
        (("scale", "--workload", "scale-free"), "scale.turns is"),
        (("scale", "--workload", "phone-2g"), "phone-2g has no table scale"),
        (("scale", "none", "none"), "policies of the same name: none, none"),
        (("tune", "pcpa", "--policy", "cma"), "from heap reserved, and not from the page-cache"),
        (("tune", "pcpa", "--policy", "none"), "from heap system, and not from the page-cache"),
        (("fly",), "No such command"),
        (("run", "none", "--fast"), "No such option"),
    ],
)
def test_bad_options(words: tuple[str, ...], message: str, own_out: Path, cohort: Cohort) -> None:
    done = cohort(*words)
    assert done.code == 2, done.stderr
    assert message in done.stderr
    assert not (own_out / "kernel").exists(), "before anything is built"


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "none", "--report"),
        ("compare", "none", "--perfetto"),
        ("run", "none", "--perfetto"),
        ("suite", "two", "--dir", "tests/suites/two", "--rootfs", "initramfs", "--junit"),
        ("suite", "two", "--dir", "tests/suites/two", "--rootfs", "initramfs", "--ktap"),
    ],
)
def test_a_file_without_a_place_is_told_before_anything_is_run(
    words: tuple[str, ...],
    own_out: Path,
    tmp_path: Path,
    cohort: Cohort,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def build(*_: object) -> None:
        raise errors.BuildError("there is no kernel")

    monkeypatch.chdir(paths.ROOT)
    monkeypatch.setattr("cohort.runs.build", build)
    monkeypatch.setattr("cohort.kernel.build.build", build)
    (tmp_path / "a file").touch()
    done = cohort(*words, tmp_path / "a file" / "there" / "x")
    assert (done.code, "a file" in done.stderr) == (2, True), done.stderr
    assert cohort(*words, tmp_path / "new" / "there" / "x").code == 5
    assert list((tmp_path / "new" / "there").iterdir()) == []
    done = cohort(*words, "/proc/x")  # a place in which nothing can be made, also by root
    assert (done.code, "/proc/x" in done.stderr, ".part" in done.stderr) == (8, True, False)


def test_a_missing_tool(
    own_out: Path, cohort: Cohort, make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(host, "find", lambda program: shutil.which(program, path="/nowhere"))
    done = cohort("kernel", "build", "--config", "base,x86_64", "--tree", make_tree())
    assert done.code == 3
    assert "make, gcc, ld, flex, bison, bc, perl are not installed" in done.stderr
    assert "apt-get install make gcc binutils flex bison bc perl\n" in done.stderr


def test_doctor_names_the_package(
    own_out: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = host.find
    gone = {"qemu-system-x86_64", "flex"}
    monkeypatch.setattr(host, "find", lambda program: None if program in gone else real(program))
    done = cohort("doctor", "--json")
    assert done.code == 3
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["flex"]["install"] == "flex"
    assert found["qemu-system-x86_64"]["install"] == "qemu-system-x86"
    assert "qemu-system-x86" in done.stderr


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_are_left_out_where_they_are_not_wanted(
    own_out: Path, monkeypatch: pytest.MonkeyPatch, no_color: str
) -> None:
    """On a terminal, which click asks its stream for."""
    monkeypatch.setenv("NO_COLOR", no_color)
    said = io.StringIO()
    monkeypatch.setattr(said, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", said)
    monkeypatch.setattr(doctor, "checks", lambda: [doctor.Check("cpus", "2")])
    with pytest.raises(SystemExit):
        cli.main(["doctor"])
    assert ("\x1b[32m" in said.getvalue()) == (not no_color)


def test_doctor_tells_what_arm64_needs_and_that_nothing_else_does(
    own_out: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, there = host.find, Path(sys.executable)
    missing = "qemu-system-aarch64"
    monkeypatch.setattr(host, "find", lambda x: None if x == missing else real(x) or there)
    found = {x["name"]: x for x in json.loads(cohort("doctor", "--json").stdout)["checks"]}
    assert found["arm64"]["ok"]
    assert "apt-get install qemu-system-arm" in found["arm64"]["found"]


def test_doctor_tells_what_only_some_commands_need(
    own_out: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONTRIBUTING.md says that it tells what a machine lacks."""
    gone = {"dh", "rsync", "debootstrap", "adb"}
    monkeypatch.setattr(host, "find", lambda x: None if x in gone else Path("/usr/bin", x))
    monkeypatch.setattr(deb, "CONFIGS", own_out / "linux-config-6.12")
    monkeypatch.setattr(deb.flavours, "__defaults__", (own_out / "linux-config-6.12",))
    monkeypatch.setattr(selftests, "HEADERS", {"mm": {"no/such.h": "libno-dev"}})
    checks = {check.name: check for check in doctor.checks()}
    wanted = {
        "packages": ("cohort kernel deb", "debhelper rsync linux-config-6.12"),
        "suites": ("cohort suite", "debootstrap rsync libno-dev"),
        "devices": ("cohort status --on", "adb"),
    }
    for name, (command, packages) in wanted.items():
        check = checks[name]
        assert (check.ok, check.install) == (True, packages)
        assert check.found == f"for {command}: apt-get install {packages}"
    assert checks["gcma"].install is None
    monkeypatch.setattr(doctor, "checks", lambda: [checks["devices"]])
    assert cohort("doctor").stdout.startswith("-   devices  for cohort status --on: ")


def test_doctor_wants_the_disk_and_the_memory_of_the_tutorial(
    own_out: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had said ok of too little disk, and had not looked at memory."""
    text = (paths.ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    asked = re.search(r"(\d+) GB of memory and (\d+) GB of disk", text)
    assert asked is not None
    assert asked.groups() == (str(doctor.MEMORY_GB), str(doctor.DISK_GB))
    free = 14 * doctor.GB
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1 << 20, "SC_PAGE_SIZE": 4096}.get)
    monkeypatch.setattr(doctor, "checks", lambda: [doctor._disk(), doctor._memory()])
    done = cohort("doctor")
    assert done.code == 3
    assert done.stderr == "cohort: missing, or too little: disk, memory\n"
    assert f"14 GB free for {own_out}; 15 GB are needed: set COHORT_OUT" in done.stdout
    assert "no  memory  4.3 GB; 8 GB are needed" in done.stdout
    monkeypatch.setattr(doctor, "_held_gb", lambda directory: 2.0)
    assert doctor._disk().ok, "with what the lab has made already"


def test_a_kernel_of_another_machine_than_is_asked_for(own_out: Path, cohort: Cohort) -> None:
    done = cohort("run", "none", "--arch", "arm64", "--config", "base,x86_64,lab,cohort")
    assert done.code == 2
    assert "is for x86_64, not for arm64" in done.stderr
    assert "--config base,arm64,lab,cohort" in done.stderr


@pytest.mark.parametrize("verb", [("run", "none"), ("compare", "none"), ("study", "region-fig3")])
def test_pages_of_16_kib_on_the_pc(verb: tuple[str, str], own_out: Path, cohort: Cohort) -> None:
    done = cohort(*verb, "--page-size", "16k")
    assert done.code == 2
    assert "pages of x86_64 have 4096 bytes" in done.stderr
    assert "--arch arm64 --page-size 16k" in done.stderr


def test_a_kernel_with_other_pages_than_are_asked_for(own_out: Path, cohort: Cohort) -> None:
    fragments = "base,arm64,lab,cohort"
    done = cohort("run", "none", "--page-size", "16k", "--config", fragments)
    assert done.code == 2
    assert "has pages of 4096 bytes, not of 16384" in done.stderr
    assert f"--config {fragments},pages16k" in done.stderr


def test_the_source_is_not_installed(
    own_out: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source.fetch, "__defaults__", (Path("/usr/src/gone.tar.xz"),))
    done = cohort("kernel", "fetch")
    assert done.code == 3
    assert "apt-get install linux-source-6.12" in done.stderr


def test_a_patch_that_does_not_fit(
    own_out: Path,
    cohort: Cohort,
    make_tree: MakeTree,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patches = tmp_path / "patches" / "6.12"
    patches.mkdir(parents=True)
    (patches / "series").write_text("0001-x.patch\n")
    hunk = "--- a/mm/alloc.c\n+++ b/mm/alloc.c\n@@ -2 +2 @@ int f(void)\n-gone\n+new\n"
    (patches / "0001-x.patch").write_text(hunk)
    monkeypatch.setattr(paths, "PATCHES", patches.parent)
    tree = make_tree()
    before = snapshot(tree)
    done = cohort("kernel", "patch", "--tree", tree)
    assert done.code == 6
    assert "mm/alloc.c:2: in int f(void): 0001-x.patch" in done.stderr
    assert snapshot(tree) == before


@contextmanager
def nobody() -> Iterator[None]:
    """Another user than root, which can read everything, for the time of the block."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_unreadable_tree(
    own_out: Path,
    cohort: Cohort,
    make_tree: MakeTree,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # This repository, and the modules imported only now, may be below /root.
    for name, where in (("OVERLAY", "overlay"), ("PATCHES", "patches")):
        (tmp_path / where / source.SERIES).mkdir(parents=True)
        monkeypatch.setattr(paths, name, tmp_path / where)
    (tmp_path / "patches" / source.SERIES / "series").write_text("")
    cohort("kernel", "patch", "--help")
    tree = make_tree()
    (tree / "Makefile").chmod(0)
    for parent in [tree, *tree.parents]:
        if parent.owner() == tree.owner() and parent.is_relative_to("/tmp"):
            parent.chmod(0o755)
    with nobody():
        done = cohort("kernel", "patch", "--tree", tree)
    assert done.code == 8
    assert f"permission denied: {tree / 'Makefile'}" in done.stderr


@pytest.mark.parametrize(
    "words", [("doctor",), ("report", "--last"), ("results", "--sql", "SELECT 1 FROM runs")]
)
def test_a_checkout_that_cannot_be_written(
    own_out: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    make = Path.mkdir

    def refuse(
        self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False
    ) -> None:
        if self.is_relative_to(own_out):
            raise OSError(errno.EROFS, "Read-only file system", str(self))
        make(self, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = cohort(*words)
    assert done.code == 8
    assert "Read-only file system" in done.stderr
    assert "hint: set COHORT_OUT to a directory that can be written" in done.stderr


def test_what_another_user_made_and_may_not_be_written(
    own_out: Path, cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`out/` is there, and what is in it cannot be written."""

    def refuse(path: Path) -> Callable[..., None]:
        def lock(*_: object, **__: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        return lock

    hint = "hint: set COHORT_OUT to a directory that can be written"
    for path, hinted in ((own_out / "kernel" / "fetch.lock", True), (tmp_path / "tree", False)):
        monkeypatch.setattr(host, "lock", refuse(path))
        done = cohort("kernel", "fetch")
        assert (done.code, f"permission denied: {path}" in done.stderr) == (8, True), done.stderr
        assert (hint in done.stderr) == hinted


@pytest.mark.parametrize(
    ("name", "hint"),
    [("/sys/kernel/mm/cohort/pcpa/state", "call it as root, or with sudo"), ("/x/state", None)],
)
def test_what_only_root_may_read_of_this_machine_has_a_hint(name: str, hint: str | None) -> None:
    refused = errors.from_oserror(PermissionError(errno.EACCES, "Permission denied", name))
    assert (refused.message, refused.hint) == (f"permission denied: {name}", hint)


def test_a_full_disk(make_tree: MakeTree, tmp_path: Path) -> None:
    """On a disk with no room for the overlay the command fails and the tree is as it was."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    tree, disk = make_tree(), tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "overlay" / "mm").mkdir(parents=True)
    (tmp_path / "overlay" / "mm" / "big.c").write_text("x" * (1 << 20))
    code = f"""
from pathlib import Path
from cohort import cli, paths
paths.OVERLAY, paths.PATCHES = Path("{tmp_path}/overlay"), Path("{tmp_path}/patches")
cli.main(["kernel", "patch", "--tree", "{disk}/linux"])
"""
    script = f"""
mount -t tmpfs -o size=256k none {disk} || exit 77
cp -r {tree} {disk}/linux
"{sys.executable}" -c '{code}'
code=$?
diff -r {tree} {disk}/linux || exit 99
exit $code
"""
    flags = ["-m"] if os.geteuid() == 0 else ["-rm"]
    done = subprocess.run(["unshare", *flags, "sh", "-c", script], text=True, capture_output=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("cannot mount here")
    assert done.returncode == 8, done.stderr + done.stdout
    assert "the disk is full" in done.stderr


def test_a_closed_pipe_is_no_traceback() -> None:
    """The reader is gone before there is anything to read."""
    line = f"(sleep 2; {sys.executable} -m cohort --help; echo $? >&2) | true"
    done = subprocess.run(["sh", "-c", line], text=True, capture_output=True, check=False)
    assert done.stderr == "1\n"


def test_output_that_cannot_be_written_is_no_success() -> None:
    """The last of it was written when Python ended, which has no exit code of its own."""
    line = f"{sys.executable} -m cohort --help > /dev/full"
    done = subprocess.run(["sh", "-c", line], text=True, capture_output=True, check=False)
    assert done.returncode == 8
    assert "the disk is full" in done.stderr
    assert "Exception ignored" not in done.stderr


def test_no_output_at_all_is_no_defect() -> None:
    line = f"{sys.executable} -m cohort --version >&-"
    done = subprocess.run(["sh", "-c", line], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("verb", ["compare", "run"])
def test_files_are_written_though_the_reader_is_gone(
    verb: str, own_out: Path, tmp_path: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise BrokenPipeError

    run = RunDir(make_run(tmp_path / "runs", "none"))
    monkeypatch.setattr("cohort.runs.execute_matrix", lambda *_: [run])
    monkeypatch.setattr(f"cohort.verbs.{verb}.show", gone)
    reports = ("--report", tmp_path / "page.html") if verb == "compare" else ()
    done = cohort(verb, "none", "--perfetto", tmp_path / "trace", *reports)
    assert (done.code, (tmp_path / "trace").is_file()) == (1, True), done.stderr
    assert (tmp_path / "page.html").is_file() == bool(reports)


def test_ctrl_c_while_the_lab_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupts:
        """An import that Ctrl-C ends."""

        def find_spec(self, *_: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "cohort.cli")
    monkeypatch.delattr("cohort.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupts()])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "cohort: interrupted\n")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("compare", "none", "--report", "x", "--perfetto", "x"), "two files to be written are x"),
        (("compare", "none", "--report", "x", "--perfetto", "./x"), "two files to be written"),
        (("suite", "stress-ng-vm", "--junit", "x", "--ktap", "x"), "two files to be written are x"),
        (("compare", "none", "--report", ""), "a file to be written has no name"),
        (("run", "none", "--perfetto", ""), "a file to be written has no name"),
        (("report", "run", "-o", ""), "a file to be written has no name"),
    ],
)
def test_a_file_that_would_be_lost_is_told_before_anything_is_run(
    words: tuple[str, ...],
    what: str,
    own_out: Path,
    tmp_path: Path,
    cohort: Cohort,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cohort.suites.root.check", lambda *_: None)
    done = cohort(*words)
    assert (done.code, what in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.glob("x*")) == []


def test_two_files_may_be_one_device() -> None:
    make_room(Path("/dev/null"), Path("/dev/null"))


def test_a_defect_of_the_lab_is_no_answer(
    own_out: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had ended with 1, as a test that fails does."""

    def checks() -> None:
        raise ValueError("not foreseen")

    monkeypatch.setattr(doctor, "checks", checks)
    done = cohort("doctor")
    assert done.code == 70
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-2] == "ValueError: not foreseen"
    assert done.stderr.splitlines()[-1].startswith("cohort: this is a defect of the lab: ")


def test_a_locale_without_a_sign_is_no_traceback(tmp_path: Path) -> None:
    """Tables have signs that ASCII and Latin-1 have not; the figures are there all the same."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COHORT_OUT": str(tmp_path / "out")}
    words = [sys.executable, "-m", "cohort", "results", "--sql", "SELECT '\u00b5s \u2713' AS x"]
    (tmp_path / "out" / "runs" / "r").mkdir(parents=True)
    done = subprocess.run(words, text=True, capture_output=True, check=False, env=environment)
    assert (done.returncode, "?s ?" in done.stdout) == (0, True), done.stderr


def test_verbs_are_there() -> None:
    context = cli.cohort.make_context("cohort", ["doctor"])
    for verb in cli.VERBS:
        assert cli.cohort.get_command(context, verb) is not None
    assert overlay.STATE.startswith(".")


@pytest.mark.parametrize("sign", [" ", ":", ","])
def test_a_path_that_programs_take_apart(
    sign: str, tmp_path: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a blank make said: overriding recipe for target."""
    odd = tmp_path / f"my{sign}out"
    monkeypatch.setenv("COHORT_OUT", str(odd))
    done = cohort("doctor")
    assert (done.code, "set COHORT_OUT to" in done.stderr, odd.exists()) == (2, True, False)
    odd.mkdir()
    (tmp_path / "link").symlink_to(odd)
    monkeypatch.setenv("COHORT_OUT", str(tmp_path / "link"))
    assert cohort("doctor").code == 2


def test_doctor_wants_the_source_that_fetch_wants(
    own_out: Path, cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "TARBALL", tmp_path / "gone.tar.xz")
    source.default_tree().mkdir()
    done = cohort("doctor", "--json")
    assert done.code == 3
    checks = {check["name"]: check["ok"] for check in json.loads(done.stdout)["checks"]}
    assert checks["kernel source"] is False


def test_two_policies_of_one_name_have_no_suite(
    own_out: Path, cohort: Cohort, tmp_path: Path
) -> None:
    """They would share a directory."""
    (tmp_path / "none.toml").write_text('title = "mine"\n')
    done = cohort("suite", "adversaries", "--policies", f"none,{tmp_path}/none.toml")
    assert done.code == 2
    assert "policies of the same name: none, " in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "none", "--workload", "a" * 300], "no workload named 'aaa"),
        (["results", "add", "s", "--study", "gone.json"], "gone.json: No such file"),
        (["run", "none", "--workload", "long.toml"], "1: name: must be up to 15 lower-case"),
        (
            ["run", "none", "--workload", "orders.toml"],
            "heap_orders: must be three orders, the last one 0",
        ),
        (["run", "words.toml"], "cmdline.2: 'two words': must be one boot parameter"),
    ],
)
def test_what_is_wrong_is_told_in_words(
    own_out: Path,
    cohort: Cohort,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("long.toml").write_text(f'name = "{"a" * 40}"\nextends = "phone-2g"\n')
    Path("words.toml").write_text(
        'title = "t"\nextends = "region"\ncmdline = ["two words"]\n', encoding="utf-8"
    )
    Path("orders.toml").write_text(
        'name = "o"\nextends = "phone-2g"\n[machine]\nheap_orders = "9,4"\n', encoding="utf-8"
    )
    done = cohort(*words)
    assert (done.code, said in done.stderr) == (2, True), done.stderr
