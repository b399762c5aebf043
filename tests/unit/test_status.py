"""`cohort status` on a made-up machine."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cohort.errors import HostError, Skipped
from cohort.verbs.status import command
from tests_support import Outcome

Cohort = Callable[..., Outcome]

NODE = {
    "nodes": "0",
    "cpus": "0-1",
    "oom_kills": "2",
    "size_kb": "524288",
    "free_kb": "102400",
    "parked_kb": "0",
    "lent_kb": "2048",
    "anon_kb": "204800",
    "file_kb": "51200",
}

VMSTAT = """\
pgsteal_kswapd 300
pgsteal_direct 100
pgsteal_anon 80
pgsteal_file 320
workingset_refault_anon 8
workingset_refault_file 160
pageoutrun 3
allocstall_normal 4
allocstall_movable 1"""
STAT = """\
pgsteal 50
workingset_refault_anon 1
workingset_refault_file 4"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    top = tmp_path / "sys/kernel/mm/cohort"
    write(top / "parked_kb", "4096")
    write(top / "region/enabled", "1")
    write(top / "buffer/enabled", "1")
    write(top / "vnode/layout", "zoo:512M,app:rest")
    write(top / "vnode/default", "app")
    write(top / "vnode/lend", "0")
    for name in ("app", "zoo"):
        for key, value in NODE.items():
            write(top / "vnode" / name / key, value)
    write(top / "reclaim/enabled", "1")
    write(top / "reclaim/kswapd_sizes", "0 2 1")
    write(top / "reclaim/alloc_orders", "9 1")
    write(tmp_path / "proc/vmstat", VMSTAT)
    write(tmp_path / "sys/fs/cgroup/memory.stat", "pgsteal 9")
    write(tmp_path / "sys/fs/cgroup/app/memory.stat", STAT)
    write(tmp_path / "sys/fs/cgroup/idle/memory.stat", "pgsteal 0")
    for pid, role, words in ((1, "zoo", "init"), (2, "app", ""), (3, "app", "sh"), (4, "app", "x")):
        write(tmp_path / f"proc/{pid}/vnode", role)
        (tmp_path / f"proc/{pid}/cmdline").write_bytes(words.encode())
    return tmp_path


def test_nodes_in_the_order_of_the_layout_with_their_processes(machine: Path) -> None:
    done = CliRunner().invoke(command, ["--root", str(machine), "--json"])
    found = json.loads(done.output)
    assert found["cohort"] == {"parked_kb": 4096, "schemes": {"region": True}}
    nodes = found["vnode"]["nodes"]
    assert [(x["name"], x["processes"]) for x in nodes] == [("zoo", 1), ("app", 2)]
    assert nodes[0]["size_kb"] == 524288 and nodes[0]["cpus"] == "0-1"


def test_text(machine: Path) -> None:
    text = CliRunner().invoke(command, ["--root", str(machine)]).output.splitlines()
    assert text[0] == "cohort: region on, 4 MiB parked"
    assert text[1] == "vnode: zoo:512M,app:rest, default app"
    assert text[3].split() == ["zoo", "0", "0-1", "512", "100", "200", "50", "2", "1", "2"]


def test_free_chunks_of_owned_blocks(machine: Path) -> None:
    write(machine / "sys/kernel/mm/cohort/owned_free", "12 0 3 0 0 0 0 0 1 0 0")
    done = CliRunner().invoke(command, ["--root", str(machine), "--json"])
    assert json.loads(done.output)["cohort"]["owned_free"] == [12, 0, 3, 0, 0, 0, 0, 0, 1, 0, 0]
    text = CliRunner().invoke(command, ["--root", str(machine)]).output.splitlines()
    assert text[0] == "cohort: region on, 4 MiB parked"
    assert text[1] == "  free in owned blocks: 12 of order 0, 3 of order 2, 1 of order 8"
    write(machine / "sys/kernel/mm/cohort/owned_free", " ".join("0" * 11))
    text = CliRunner().invoke(command, ["--root", str(machine)]).output.splitlines()
    assert text[1].startswith("vnode: ")


def test_the_area(machine: Path) -> None:
    top = machine / "sys/kernel/mm/cohort/pcpa"
    values = {"size": "272629760", "base": "0x40000000", "min_order": "4", "timer_ms": "500"}
    values |= {"free_kb": "1024", "cache_kb": "260096", "client_kb": "0", "lent_kb": "1024"}
    values |= {"other_kb": "5120", "state": "pcache_only", "stats": "reclaims 3\nrefaults 0"}
    for name, value in values.items():
        write(top / name, value)
    text = CliRunner().invoke(command, ["--root", str(machine)]).output.splitlines()
    area = next(i for i, line in enumerate(text) if line.startswith("pcpa: "))
    assert "pcpa: 260 MiB at 0x40000000, pcache_only; MiB: 1 free, 254 cache, " in text[area]
    assert text[area + 1].split() == ["reclaims", "3"]
    done = CliRunner().invoke(command, ["--root", str(machine), "--json"])
    assert json.loads(done.output)["pcpa"]["stats"] == {"reclaims": 3, "refaults": 0}
    write(top / "size", "0")
    assert "pcpa: off" in CliRunner().invoke(command, ["--root", str(machine)]).output


@pytest.mark.parametrize("name", ["parked_kb", "owned_free", "vnode/zoo/size_kb"])
def test_what_only_root_could_read_is_told(machine: Path, name: str) -> None:
    """A device that is asked as another user gives an empty file for it."""
    write(machine / "sys/kernel/mm/cohort" / name, "0 x" if name == "owned_free" else "")
    with pytest.raises(HostError, match=f"{name}: '.?' is no number") as caught:
        CliRunner().invoke(command, ["--root", str(machine)], catch_exceptions=False)
    assert "root" in (caught.value.hint or "")


def test_without_a_layout_or_without_cohort(tmp_path: Path) -> None:
    write(tmp_path / "sys/kernel/mm/cohort/parked_kb", "0")
    write(tmp_path / "proc/vmstat", VMSTAT)
    done = CliRunner().invoke(command, ["--root", str(tmp_path)])
    assert "vnode: off" in done.output
    (tmp_path / "empty").mkdir()
    with pytest.raises(Skipped) as caught:
        CliRunner().invoke(command, ["--root", str(tmp_path / "empty")], catch_exceptions=False)
    assert all(word in str(caught.value.hint) for word in ("cohort kernel deb", "--on", "--root"))


def test_what_came_back_of_whom_and_sizes(machine: Path) -> None:
    found = json.loads(CliRunner().invoke(command, ["--root", str(machine), "--json"]).output)
    reclaim = found["reclaim"]
    assert reclaim["evicted"] == {"anon": 80, "file": 320}
    assert reclaim["direct"] == {"pages": 100, "runs": 5}
    assert reclaim["groups"] == [{"name": "app", "evicted": 50, "refaulted": 5}]
    assert reclaim["sizes"] == {"kswapd_sizes": [0, 2, 1], "alloc_orders": [9, 1]}
    text = CliRunner().invoke(command, ["--root", str(machine)]).output
    assert "reclaim: 42.0 % came back: 10.0 % of 80 anon, 50.0 % of 320 file" in text
    assert "  direct: 25.0 % of it, 5 times, 20.0 pages each" in text
    assert "  app: 10.0 % of 50" in text
    assert "  kswapd_sizes: 0 2 1" in text


def test_what_right_sized_reclaim_decided(machine: Path) -> None:
    top = machine / "sys/kernel/mm/cohort/rightsize"
    values = {"enabled": 1, "scope": 1, "sizing": 1, "background_adj": 900, "gap": 384}
    values |= {"read_around_pages": 16, "direct_share": 3277}
    for name, value in values.items():
        write(top / name, str(value))
    text = CliRunner().invoke(command, ["--root", str(machine)]).output
    assert "rightsize: scope and sizing on, marks 1.50 of stock's apart" in text
    assert "direct 5.0 %, background" in text
    write(top / "enabled", "0")
    assert "rightsize: off" in CliRunner().invoke(command, ["--root", str(machine)]).output


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("sys/kernel/mm/cohort/parked_kb", b"\xff"),
        ("sys/kernel/mm/cohort/parked_kb", b"many"),
        ("proc/vmstat", b"pgsteal_file many"),
        ("proc/vmstat", b"pgsteal_file \xff"),
        ("sys/kernel/mm/cohort/vnode/zoo/oom_kills", None),
        ("sys/kernel/mm/cohort/rightsize/gap", None),
        ("sys/fs/cgroup/a/memory.stat", b"pgsteal \xff"),
    ],
)
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_file_that_says_nothing_is_named(
    machine: Path, cohort: Cohort, file: str, content: bytes | None, words: tuple[str, ...]
) -> None:
    """In a copy of a device, which may be in part, or of a kernel that has other files."""
    for name in ("enabled", "scope", "sizing", "background_adj", "read_around_pages", "gap"):
        write(machine / "sys/kernel/mm/cohort/rightsize" / name, "1")
    write(machine / "sys/kernel/mm/cohort/rightsize/direct_share", "1")
    assert cohort("status", "--root", machine, *words).code == 0
    (machine / file).unlink(missing_ok=True)
    if content is not None:
        (machine / file).parent.mkdir(parents=True, exist_ok=True)
        (machine / file).write_bytes(content)
    done = cohort("status", "--root", machine, *words)
    assert (done.code, file in done.stderr) == (8, True), done.stderr


@pytest.mark.parametrize("words", [(), ("--json",)])
@pytest.mark.parametrize(
    ("file", "watched"),
    [
        ("proc/vmstat", False),
        ("proc/vmstat", True),
        ("proc/buddyinfo", True),
        ("sys/kernel/mm/cohort/parked_kb", False),
        ("sys/kernel/mm/cohort/vnode/zoo/oom_kills", True),
    ],
)
@pytest.mark.parametrize("empty", [False, True])
def test_what_is_not_known_is_not_zero(
    machine: Path, cohort: Cohort, file: str, watched: bool, words: tuple[str, ...], empty: bool
) -> None:
    """A copy of a device without its /proc had no kills, no refaults and no free memory."""
    write(machine / "proc/buddyinfo", "Node 0, zone Normal 1 2")
    call = ("status", "--root", machine, *words, *(("--watch", "--times", "1") * watched))
    assert cohort(*call).code == 0
    (machine / file).write_text("") if empty else (machine / file).unlink()
    done = cohort(*call)
    assert (done.code, done.stdout) == (8, ""), done.stderr
    said, _, hint = done.stderr.partition("\nhint: ")
    assert file in said and "root" in hint


def test_a_root_with_nothing_below_is_told_with_a_hint(tmp_path: Path, cohort: Cohort) -> None:
    (tmp_path / "sys/kernel/mm/cohort").mkdir(parents=True)
    for words in ((), ("--json",), ("--watch", "--times", "1", "--json")):
        done = cohort("status", "--root", tmp_path, *words)
        assert (done.code, done.stdout) == (8, "")
        assert "is not there" in done.stderr and "\nhint: a copy of a machine" in done.stderr


@pytest.mark.parametrize("content", [b"\xff", b"Node 0, zone Normal 1 x"])
def test_a_live_screen_of_no_numbers_is_told(machine: Path, cohort: Cohort, content: bytes) -> None:
    (machine / "proc/buddyinfo").write_bytes(b"Node 0, zone Normal 1 2\nNode 0, zone DMA 3")
    words = ("status", "--root", machine, "--watch", "--times", "1", "--json")
    done = cohort(*words)
    assert json.loads(done.stdout)["free"] == [4, 2], done.stderr
    (machine / "proc/vmstat").write_bytes(content.replace(b"Node 0, zone Normal", b"oom_kill"))
    (machine / "proc/buddyinfo").write_bytes(content)
    done = cohort(*words)
    assert done.code in (0, 8), done.stderr
