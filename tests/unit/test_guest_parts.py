"""Parts of the guest's program, each in a small program of this host."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import host, paths
from cohort.phone.workload import load_workload, render_conf, workload_names

DATA = Path(__file__).parent / "data"
WORDS = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter")

pytestmark = pytest.mark.skipif(not host.find("gcc"), reason="needs gcc")


def compiled(where: Path, name: str, *parts: str) -> Path:
    """The program NAME.c of the test's data with these files of the guest."""
    sources = [DATA / f"{name}.c", *(paths.GUEST / part for part in parts)]
    program = where / name
    done = host.run(["gcc", *WORDS, "-Werror", f"-I{paths.GUEST}", "-o", program, *sources])
    assert done.returncode == 0, done.stderr
    return program


Read = Callable[[str], str]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """What the guest says of a configuration."""
    where = tmp_path_factory.mktemp("guest")
    program = compiled(where, "read_conf", "base/conf.c", "base/json.c")

    def call(text: str) -> str:
        (where / "phone.conf").write_text(text)
        return host.run([program, where / "phone.conf"]).stdout

    return call


def rendered(name: str) -> str:
    return render_conf(load_workload(name), seed=1, launches=30, writes=[], time="virtual")


@pytest.mark.parametrize("name", workload_names())
def test_the_guest_takes_every_workload(name: str, read: Read) -> None:
    launches = rendered(name).count("\nlaunch ")
    assert read(rendered(name)).endswith(f" roles, {launches} launches\n")


@pytest.mark.parametrize("number", ["-5", "18446744073709551616", "5x", "x"])
def test_the_guest_refuses_what_is_no_number(number: str, read: Read) -> None:
    text = rendered("vnode-pressure")
    assert "role trusted none" in text
    text = text.replace("role trusted none", f"role trusted cgroup 1 {number} 0", 1)
    assert read(text) == f"phone.conf: trusted: not a number: {number}"


def test_a_case_that_prints_much_keeps_its_results(tmp_path: Path) -> None:
    """Its checks, costs and figures stand at the end as often as not."""
    program = compiled(tmp_path, "keep_lines", "suite/output.c", "base/json.c")

    def kept(text: str) -> tuple[list[str], int]:
        done = subprocess.run([program], input=text, text=True, capture_output=True, check=True)
        *records, lines = done.stdout.splitlines()
        return [json.loads(x)["line"] for x in records], int(lines)

    results = ["ok 1 - one", "  not ok 2", "# cost us 1.5", "# figure s 2 s", f"# {'x' * 900}"]
    text = "\n".join(["chatter", f"{'y' * 301}", *results])
    assert kept(text) == (["chatter", "y" * 300, *results], 7)
    found, lines = kept("okay\r\n" * 5000 + text)
    assert found[:4000] == ["okay"] * 4000
    assert found[4000:] == ["# suite: 4000 lines without a result are kept, and no more", *results]
    assert lines == 5000 + 7 + 1
    found, lines = kept("ok 1\n" * 40_001 + text)
    assert found[40_000] == "# suite: 40000 lines of results are kept, and no more"
    assert (found[40_001:], lines) == (["chatter", "y" * 300], 40_001 + 7 + 1)


def test_a_burst_of_one_page_waits_after_each(tmp_path: Path) -> None:
    program = compiled(tmp_path, "count_waits", "apps/heap.c", "base/rng.c")

    def waits(burst_pages: int) -> int:
        return int(host.run([program, "1000", str(burst_pages)]).stdout)

    assert waits(1) == 1000
    assert 480 < waits(2) < 520
    assert 28 < waits(32) < 36
