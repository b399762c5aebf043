"""Programs of suites: made of their C files or of the kernel's selftests, and what they do."""

import re
import shutil
from pathlib import Path

import pytest

from cohort import host, paths
from cohort.errors import BuildError, MissingTool, UsageError
from cohort.suites import programs, selftests
from cohort.suites.schema import load_suite


def test_sources_become_static_programs(own_out: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no C file"):
        programs.build(tmp_path)
    (tmp_path / "hello.c").write_text("int main(void) { return 3; }\n")
    made = programs.build(tmp_path)
    assert host.run([made / "hello"]).returncode == 3
    assert programs.build(tmp_path) == made
    (tmp_path / "step.sh").write_text("#!/bin/sh\nexit 4\n")
    (tmp_path / "step.sh").chmod(0o755)
    made = programs.build(tmp_path)
    assert host.run([made / "step.sh"]).returncode == 4
    (tmp_path / "hello.c").write_text("int main(void) { return; }\n")
    with pytest.raises(BuildError, match="does not compile"):
        programs.build(tmp_path)


def test_a_header_beside_a_program_is_part_of_it(own_out: Path, tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#define CODE 3\n")
    (tmp_path / "a.c").write_text('#include "a.h"\nint main(void) { return CODE; }\n')
    assert host.run([programs.build(tmp_path) / "a"]).returncode == 3
    (tmp_path / "a.h").write_text("#define CODE 4\n")
    assert host.run([programs.build(tmp_path) / "a"]).returncode == 4


def test_programs_are_made_again_for_another_name_and_other_flags(
    own_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that was renamed was there by its old name alone."""
    (tmp_path / "old.c").write_text("int main(void) { return CODE; }\n")
    monkeypatch.setattr(programs, "FLAGS", (*programs.FLAGS, "-DCODE=3"))
    assert host.run([programs.build(tmp_path) / "old"]).returncode == 3
    (tmp_path / "old.c").rename(tmp_path / "new.c")
    assert host.run([programs.build(tmp_path) / "new"]).returncode == 3
    monkeypatch.setattr(programs, "FLAGS", (*programs.FLAGS[:-1], "-DCODE=4"))
    assert host.run([programs.build(tmp_path) / "new"]).returncode == 4


def test_an_unknown_adversary_is_refused(own_out: Path) -> None:
    program = programs.build(paths.SUITES / "adversaries") / "adversary"
    assert host.run([program, "nothing", "1"]).returncode == 2
    source = (paths.SUITES / "adversaries/adversary.c").read_text()
    known = re.findall(r'\{ \.name = "(\w+)", \.run = ', source)
    suites = [load_suite("adversaries"), load_suite("changes")]
    named = {command.split()[1] for suite in suites for command in suite.case.values()}
    assert (named, len(known)) == (set(known), len(named))


def test_each_program_of_integrity_is_tried() -> None:
    """And its first comment says what it does, with its own name."""
    commands = load_suite("integrity").case.values()
    named = {word for command in commands for word in re.findall(r"\./(\w+)", command)}
    files = {file.stem: file.read_text() for file in (paths.SUITES / "integrity").glob("*.c")}
    assert named == files.keys()
    for name, text in files.items():
        assert text.splitlines()[2].split()[1] == name


def test_a_program_of_integrity_leaves_a_host_alone(own_out: Path, tmp_path: Path) -> None:
    """It turns sysctls, takes CPUs and swap away, and has files go bad: as root in a guest."""
    shared = sorted((paths.SUITES / "integrity").glob("*.h"))
    for file in [*shared, paths.SUITES / "integrity" / "sysctls.c"]:
        shutil.copy(file, tmp_path)
    done = host.run([programs.build(tmp_path) / "sysctls", "1"])
    assert (done.returncode, done.stdout) == (2, "")
    assert "only in the guest's /suite" in done.stderr
    for file in (paths.SUITES / "integrity").glob("*.c"):
        main = file.read_text().split("int main(", 1)[1]
        assert not re.search(r"\b(put|mkdir|open)\(", main.split("begin(", 1)[0]), file


def test_what_is_missing_on_the_host_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_out: Path
) -> None:
    with pytest.raises(UsageError, match="has no tools/testing/selftests/mm"):
        selftests.install(["mm"], tmp_path, "id")
    makefile = tmp_path / selftests.WHERE / "mm" / "Makefile"
    makefile.parent.mkdir(parents=True)
    makefile.write_text("all:\n")
    monkeypatch.setattr(selftests, "HEADERS", {"mm": {"no/such.h": "libno-dev"}})
    with pytest.raises(MissingTool, match=re.escape("no/such.h is not installed")) as missing:
        selftests.install(["mm"], tmp_path, "id")
    assert missing.value.hint == "apt-get install libno-dev"


def test_the_mail_keeps_its_texts(own_out: Path, tmp_path: Path) -> None:
    program = programs.build(paths.SUITES / "userland") / "mail"
    assert host.run([program, tmp_path]).returncode == 2
    assert host.run([program, tmp_path, "1600"]).returncode == 0
    assert len(list(tmp_path.glob("*/*.day"))) == 1500
    assert host.run([program, tmp_path, "10"]).returncode == 1  # there is one


def test_every_step_of_the_day_is_a_function() -> None:
    script = (paths.SUITES / "userland" / "day.sh").read_text()
    commands = load_suite("userland").case.values()
    named = {word for command in commands for word in re.findall(r"day\.sh (\w+)", command)}
    assert named == set(re.findall(r"^step_(\w+)\(\)", script, re.MULTILINE))
