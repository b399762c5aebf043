"""Suites as they are written: the lab's, the guide's and a user's, as files and as directories."""

import re
from pathlib import Path

import pytest

from cohort import host, paths
from cohort.errors import UsageError
from cohort.suites.schema import load_directory, load_suite, suite_names
from made_suites import TWO


def test_every_suite_of_the_lab_is_well_formed() -> None:
    assert {"fio", "selftests", "selftests-mm", "stress-ng-vm", "trinity"} <= set(suite_names())
    for name in suite_names():
        suite = load_suite(name)
        assert suite.case
        assert suite.debian
        assert set(suite.longer) <= set(suite.case)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('title = "t"\n[case]\n"a b" = "x"\n', ":3:.*is no name of a case"),
        ('title = "t"\nlimit_s = 0\n[case]\na = "x"\n', ":2: limit_s: must be at least a second"),
        ('title = "t"\n[case]\na = " "\n', ":3: case.a: must be a command"),
        ('title = "t"\n[case]\n', ":2: case: .*at least 1 item"),
        ('title = "t"\narchives = ["A b"]\n[case]\na = "x"\n', ":2: archives.*no name of a Debian"),
        ('title = "t"\n[longer]\nb = 9\n[case]\na = "x"\n', "longer: no case b"),
    ],
)
def test_a_bad_file_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_suite(str(path))
    assert re.search(said, str(error.value)), error.value


def test_a_directory_is_a_suite_of_its_programs(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a program\n")
    with pytest.raises(UsageError, match="neither suite.toml nor a program"):
        load_directory(tmp_path, "mine")
    for name in ("two", "one"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    suite = load_directory(tmp_path, "mine")
    assert suite.case == {"one": "./one", "two": "./two"}
    assert suite.files == tmp_path
    assert load_directory(TWO, "two").files == TWO


def test_suites_of_the_guides_are_well_formed(tmp_path: Path) -> None:
    """Their examples, each with the scripts that it shows for them."""
    pages = [paths.ROOT / "docs/how-to" / f"{x}-suite.md" for x in ("write-a", "run-a-public")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    found = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(found) > 4
    for written in found:
        (tmp_path / "suite.toml").write_text(written)
        assert load_directory(tmp_path, "mine").case
    for script in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        done = host.run(["sh", "-n", "-c", script])
        assert (done.returncode, done.stderr) == (0, ""), script


def test_what_cannot_be_called_by_its_name_is_told(tmp_path: Path) -> None:
    """It may lie in a directory of others, beside what can."""
    for name in ("good.sh", "a copy.sh"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(UsageError, match="a copy.sh: is no name of a case") as caught:
        load_directory(tmp_path, "mine")
    assert "suite.toml" in (caught.value.hint or "")
    for name in ("../mine", "my suite", ""):
        with pytest.raises(UsageError, match="is no name of a suite"):
            load_directory(tmp_path, name)


@pytest.mark.parametrize("word", ["", "two words"])
def test_a_word_of_the_command_line_is_one(tmp_path: Path, word: str) -> None:
    text = f'title = "t"\ncmdline = ["{word}"]\n[case]\na = "./a"\n'
    (tmp_path / "suite.toml").write_text(text)
    with pytest.raises(UsageError, match="one word"):
        load_directory(tmp_path, "s")
