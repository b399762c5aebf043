"""`cohort clean`: what out/ holds, and that nothing goes but what is old and not in use."""

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from fcntl import LOCK_SH
from pathlib import Path

import pytest

from cohort import clean, kept
from tests_support import Outcome, locked

Cohort = Callable[..., Outcome]

DAY_S = 86400
KEY, OTHER = "0123456789abcdef", "89abcdef01234567"
RUN = "phone-2g-none-s1-01234567"
OLD = (
    *("kernel/base-x86_64-lab/vmlinux", "kernel/base-x86_64-lab/build.lock"),
    *("kernel/images/0123/bzImage", "kernel/deb/amd64/x.deb"),
    *(f"storage/{KEY}.img", f"storage/{KEY}.pci", f"storage/{KEY}.lock"),
    *(f"guest/{KEY}/phone", f"programs/{KEY}/bin/fio", f"programs/{KEY}.lock"),
    *(f"suites/roots/bookworm-{KEY}/bin/sh", f"suites/images/{KEY}.img", "suites/runs/fio/none/x"),
    *(f"runs/{RUN}/meta.json", f"runs/.locks/{RUN}"),
    *("runs/phone-2g-none-s2-456789ab.failed/console.log", "kunit/6.12.117-01234567/console.log"),
    *(f"cache/steady-{KEY}.so", f"cache/steady-{KEY}.lock"),
    *("tests/runs/x/meta.json", "gw0/runs/y/x"),
)
NEW = (
    *("kernel/images/4567/bzImage", f"storage/{OTHER}.img"),
    *("runs/phone-2g-region-s1-89abcdef/meta.json", f"suites/programs/{OTHER}/mine"),
)
NEVER = (
    *("kernel/linux-6.12/Makefile", "kernel/linux-6.12.json", "kernel/tree.lock"),
    *("kernel/vendor/mm/slub.c", "kernel/notes/build.lock.txt"),
    *("studies/cpb-fig3a.md", "tune/pcpa-camera.svg", "report.html", "last-compare.json", "notes"),
    *("runs/phone-2g-none-s1-before-the-move/meta.json", "runs/notes.txt", "guest/base/time.c"),
    *("programs/mine/bin/x", "storage/photos.img", "cache/other/x", "builds/mine/x"),
)
COUNTS = {
    **{"kernels": (4, 3), "storage": (2, 1), "guests": (1, 1), "programs": (1, 1)},
    **{"suites": (4, 3), "runs": (3, 2), "kunit": (1, 1), "cache": (1, 1), "tests": (2, 2)},
}
"""By kind how many entries there are, and how many of them are old."""


def age(path: Path, days: float) -> None:
    then = time.time() - days * DAY_S
    os.utime(path, (then, then), follow_symlinks=False)


def put(top: Path, name: str, days: float) -> Path:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 4096)
    age(path, days)
    return path


def files(top: Path) -> set[str]:
    return {str(x.relative_to(top)) for x in top.rglob("*") if x.is_file()}


@pytest.fixture
def full(own_out: Path) -> Path:
    """An output directory with something of each kind."""
    for names, days in ((OLD, 40), (NEVER, 400)):
        for name in names:
            put(own_out, name, days)
    for home in ("tests", "gw0"):
        for name in ("kernel", "storage"):
            (own_out / home / name).symlink_to(own_out / name)
            age(own_out / home / name, 40)
    for path in own_out.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            age(path, 40)
    for name in NEW:
        put(own_out, name, 3)
    return own_out


def kinds(done: Outcome) -> dict[str, tuple[int, int]]:
    found = json.loads(done.stdout)["kinds"]
    return {x["kind"]: (x["entries"], len(x["older"])) for x in found}


def test_what_is_there_is_shown_and_stays(full: Path, cohort: Cohort) -> None:
    done = cohort("clean")
    assert done.code == 0
    head, *lines = done.stdout.splitlines()
    assert head == "kind       entries       MiB  last used"
    shown = {line.split()[0]: line.split()[1] for line in lines}
    assert {kind: int(shown[kind]) for kind in COUNTS} == {k: n for k, (n, _) in COUNTS.items()}
    assert lines[-1].startswith("other") and "never removed" in lines[-1]
    assert files(full) == {*OLD, *NEW, *NEVER}
    told = json.loads(cohort("clean", "--json").stdout)
    assert (told["older_days"], told["other_bytes"] > 0) == (None, True)
    [runs] = [x for x in told["kinds"] if x["kind"] == "runs"]
    assert runs["bytes"] >= 4 * 4096
    assert runs["last_used"] > time.strftime("%Y-%m-%d", time.gmtime(time.time() - 4 * DAY_S))


def test_an_empty_output_directory_holds_nothing(own_out: Path, cohort: Cohort) -> None:
    done = cohort("clean", "--older", "0", "--json")
    assert (done.code, set(kinds(done).values())) == (0, {(0, 0)})


def test_what_is_old_is_removed(full: Path, cohort: Cohort) -> None:
    done = cohort("clean", "--older", "30", "--json")
    assert done.code == 0, done.stderr
    assert kinds(done) == COUNTS
    states = {y["state"] for x in json.loads(done.stdout)["kinds"] for y in x["older"]}
    assert states == {"removed"}
    assert files(full) == {*NEW, *NEVER}
    assert list(full.rglob(f"{kept.GONE}*")) == []
    done = cohort("clean", "--older", "30")
    assert done.stdout.splitlines()[-1] == "removed: 0 entries, 0.0 MiB"


def test_a_dry_run_removes_nothing(full: Path, cohort: Cohort) -> None:
    done = cohort("clean", "--older", "30", "--dry-run")
    assert done.code == 0
    would = [line for line in done.stdout.splitlines() if line.startswith("would go: ")]
    assert len(would) == sum(old for _, old in COUNTS.values())
    assert f"would go: {full.resolve()}/storage/{KEY}.img (0.0 MiB, " in done.stdout
    assert files(full) == {*OLD, *NEW, *NEVER}
    done = cohort("clean", "--dry-run")
    assert (done.code, "hint: --older 30" in done.stderr) == (2, True)


def test_of_other_kinds_nothing_is_removed(full: Path, cohort: Cohort) -> None:
    done = cohort("clean", "--older", "30", "--kind", "storage", "--kind", "runs")
    assert [x.split()[0] for x in done.stdout.splitlines()[1:-1]] == ["storage", "runs"]
    gone = {name for name in OLD if name.startswith(("storage/", "runs/"))}
    assert files(full) == {*OLD, *NEW, *NEVER} - gone
    assert cohort("clean", "--kind", "kernel").code == 2


@pytest.mark.parametrize("days", ["-1", "nan", "soon"])
def test_days_that_are_none_are_refused(days: str, full: Path, cohort: Cohort) -> None:
    assert cohort("clean", "--older", days).code == 2
    assert files(full) == {*OLD, *NEW, *NEVER}


@pytest.mark.parametrize(("held", "kind"), [("runs", "runs"), ("gw0/runs", "tests")])
def test_what_another_command_uses_stays(held: str, kind: str, full: Path, cohort: Cohort) -> None:
    with locked(full / held, LOCK_SH):
        done = cohort("clean", "--older", "30")
    assert done.code == 4
    assert f"as another cohort uses out/: {kind}\n" in done.stderr
    assert "hint: call it again when that has ended" in done.stderr
    stay = {x for x in OLD if x.startswith(f"{held}/")}
    assert stay <= files(full)
    assert not any(name.startswith(f"storage/{KEY}") for name in files(full))
    assert cohort("clean", "--older", "30").code == 0
    assert files(full) == {*NEW, *NEVER}


def test_what_was_used_meanwhile_stays(full: Path) -> None:
    found = clean.holdings(time.time(), ["guests", "kunit"])
    clean.choose(found, time.time() - 30 * DAY_S)
    kept.used(full / "guest" / KEY / "phone")
    clean.remove_old(found)
    assert [len(x.removed) for x in found] == [0, 1]
    assert (full / f"guest/{KEY}/phone").is_file()


def test_use_is_that_of_the_newest_part(full: Path) -> None:
    """A suite under one policy alone leaves the directories of the others as they were."""
    put(full, "suites/runs/fio/region/x", 1)
    [suites] = clean.holdings(time.time(), ["suites"])
    clean.choose([suites], time.time() - 30 * DAY_S)
    assert full.resolve() / "suites/runs/fio" not in {entry.path for entry in suites.old}


def test_what_an_interrupted_removal_left_goes_next_time(
    full: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        assert cohort("clean", "--older", "30", "--kind", "runs").code == 130
    [left] = full.rglob(f"{kept.GONE}*")
    assert left.parent == full / "runs"
    assert len(list(full.glob("runs/phone-2g-*/*"))) == 3
    assert cohort("clean", "--older", "300", "--kind", "runs").code == 0
    assert not left.exists()


def test_what_a_directory_of_tests_shares_is_not_its_own(full: Path, cohort: Cohort) -> None:
    assert cohort("clean", "--older", "30", "--kind", "tests").code == 0
    assert not (full / "gw0").exists()
    assert (full / f"storage/{KEY}.img").is_file()


def test_directories_that_are_links_are_of_another_output_directory(
    full: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("storage", "kernel", "suites"):
        (other / name).symlink_to(full / name)
    monkeypatch.setenv("COHORT_OUT", str(other))
    assert set(kinds(cohort("clean", "--older", "0", "--json")).values()) == {(0, 0)}
    assert files(full) == {*OLD, *NEW, *NEVER}


def test_nothing_is_removed_through_a_mount(
    full: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """debootstrap that was killed may leave the host's /proc in a root."""
    proc = full.resolve() / f"suites/roots/bookworm-{KEY}/proc"
    table = tmp_path / "mounts"
    table.write_text(f"proc {proc} proc rw 0 0\n")
    monkeypatch.setattr(kept, "MOUNTS", table)
    done = cohort("clean", "--older", "30", "--json")
    assert done.code == 8
    assert f"{proc} is still mounted\nhint: umount {proc}" in done.stderr
    states = {y["path"]: y["state"] for x in json.loads(done.stdout)["kinds"] for y in x["older"]}
    assert [path for path, state in states.items() if state == "failed"] == [str(proc.parent)]
    assert f"suites/roots/bookworm-{KEY}/bin/sh" in files(full)
    assert not (full / f"storage/{KEY}.img").exists()


def test_what_cannot_be_removed_is_told_last(
    full: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = kept.remove

    def refuse(path: Path) -> None:
        if path == full.resolve() / "guest" / KEY:
            raise PermissionError(13, "Permission denied", str(path / "phone"))
        remove(path)

    monkeypatch.setattr(clean, "remove", refuse)
    done = cohort("clean", "--older", "30")
    assert done.code == 8
    assert f"guest/{KEY}/phone cannot be removed: Permission denied" in done.stderr
    assert "hint: call cohort clean as the user that made it" in done.stderr
    assert files(full) == {*NEW, *NEVER, f"guest/{KEY}/phone"}


def test_all_that_stays_is_told(
    full: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"proc {full.resolve()}/suites/roots/bookworm-{KEY}/proc proc rw 0 0\n")
    monkeypatch.setattr(kept, "MOUNTS", table)

    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(clean, "remove", refuse)
    with locked(full / "storage", LOCK_SH):
        done = cohort("clean", "--older", "30")
    said = " ".join(done.stderr.split())
    assert done.code == 8
    assert "1 old entry stays, as another cohort uses out/: storage hint: call it again" in said
    assert "is still mounted hint: umount" in said
    for name in ("kernel/base-x86_64-lab", f"guest/{KEY}", f"runs/{RUN}", "gw0"):
        assert f"{full.resolve()}/{name} cannot be removed: Read-only file system" in said
        assert f"hint: rm -r {full.resolve()}/{name}, while no cohort uses it" in said


def test_a_link_in_place_of_an_entry_is_none(full: Path, cohort: Cohort, tmp_path: Path) -> None:
    """A use changes the time of what it leads to: the link looks old for ever."""
    moved = tmp_path / "large disk"
    moved.mkdir()
    image = full / f"storage/{KEY}.img"
    (moved / "image").write_bytes(b"x")
    image.unlink()
    image.symlink_to(moved / "image")
    age(image, 40)
    assert cohort("clean", "--older", "30").code == 0
    assert image.is_symlink()


def test_what_may_not_be_read_is_left_out(
    full: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's root, made by root, has such directories."""
    scan = os.scandir

    def refuse(path: str | Path) -> "Iterator[os.DirEntry[str]]":
        if str(path).endswith("bin"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert kinds(cohort("clean", "--json")) == {kind: (n, 0) for kind, (n, _) in COUNTS.items()}


@pytest.mark.parametrize("days", [-400, -3_000_000])
def test_a_time_to_come_counts_as_now(days: int, full: Path, cohort: Cohort) -> None:
    """Of a clock that was wrong; a year of five digits is no date at all."""
    found = full / f"guest/{KEY}/phone"
    age(found, days)
    [guests] = json.loads(cohort("clean", "--older", "0", "--dry-run", "--json").stdout)["kinds"][
        2:3
    ]
    assert guests["last_used"][:10] == time.strftime("%Y-%m-%d", time.gmtime())
    assert cohort("clean", "--older", "30").code == 0
    assert found.is_file()
    assert cohort("clean", "--older", "0").code == 0
    assert not found.exists()


def test_what_another_process_removed_is_no_failure(
    full: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = clean.choose

    def later(found: Sequence[clean.Holding], before: float) -> None:
        choose(found, before)
        shutil.rmtree(full / "kunit")

    monkeypatch.setattr(clean, "choose", later)
    done = cohort("clean", "--older", "30", "--json")
    assert done.code == 0, done.stderr
    [kunit] = [x for x in json.loads(done.stdout)["kinds"] if x["kind"] == "kunit"]
    assert [x["state"] for x in kunit["older"]] == ["gone"]


def test_all_paths_in_json_are_of_one_name(
    full: Path, cohort: Cohort, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(full)
    monkeypatch.setenv("COHORT_OUT", str(tmp_path / "link"))
    told = json.loads(cohort("clean", "--older", "30", "--dry-run", "--json").stdout)
    assert all(y["path"].startswith(f"{told['out']}/") for x in told["kinds"] for y in x["older"])


def test_in_a_directory_of_the_users_nothing_of_theirs_goes(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """COHORT_OUT may be a checkout, or a home, with directories of the same names."""
    theirs = tmp_path / "repository"
    names = {
        *("kernel/mm/cohort/core.c", "kernel/images.c/x", "guest/base/time.c", "suites/ltp.toml"),
        *("tests/unit/test_x.py", "builds/app/x", "gw0/x", "runs/marathon/x", "cache/fonts/x"),
        *("programs/editor/x", "storage/box/x", "kunit/notes/x", "suites/images/logo.img"),
    }
    for name in names:
        put(theirs, name, 400)
    monkeypatch.setenv("COHORT_OUT", str(theirs))
    done = cohort("clean", "--older", "0", "--json")
    assert (done.code, set(kinds(done).values())) == (0, {(0, 0)})
    assert files(theirs) == names
