"""The distribution's benchmarks: their command lines, their output, their packages."""

from pathlib import Path
from typing import Any

import pytest

from cohort import host
from cohort.errors import BuildError, CohortError, MissingTool, UsageError
from cohort.phone import programs
from cohort.phone.bench import PASSES
from cohort.phone.workload import load_workload, render_conf
from cohort.results.bench import seconds_of
from cohort.results.metrics import compute_metrics

SYSBENCH = "General statistics:\n    total time:                          1.2500s\n"


def terse(read_ms: int, write_ms: int) -> str:
    """A line as fio prints it: the run times at their places, the rest of no matter."""
    fields = ["3", "fio-3.33", "name", *["0"] * 100]
    fields[8], fields[49] = str(read_ms), str(write_ms)
    return "fio: a warning\n" + ";".join(fields) + "\n"


def conf(workload: str, **change: int) -> list[str]:
    changes = {f"bench.{key}": value for key, value in change.items()}
    phone = load_workload(workload, changes)
    return render_conf(phone, seed=1, launches=1, writes=[], time="virtual").splitlines()


def test_every_block_is_asked_for_once() -> None:
    lines = [line for line in conf("pcpa-io", block_kb=4) if line.startswith("program ")]
    assert lines[0].startswith("program prepare prepare sysbench ")
    assert all("--events=131072 " in x and "=4096 " in x for x in lines if " sysbench " in x)
    names = [line.split()[1] for line in lines]
    assert names == ["prepare", "seqrd", "rndrd", "seqwr", *(f"fio-{x}" for x in PASSES)]
    when = [line.split()[2] for line in lines]
    assert when == ["prepare", *["fresh"] * 4, *["next"] * 5]
    assert all("--invalidate=0" in x for x in lines if " fio " in x)


def test_the_memory_test_needs_no_files() -> None:
    lines = [x for x in conf("pcpa-memory", memory_block_kb=131072) if x.startswith("program ")]
    assert len(lines) == 1
    assert "--threads=32" in lines[0] and "--memory-block-size=131072K" in lines[0]


def test_one_experiment_a_workload(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "workloads"
    for name in ("phone-2g", "phone-3g", "pcpa-orders"):
        (tmp_path / f"{name}.toml").write_text((source / f"{name}.toml").read_text())
    path = tmp_path / "both.toml"
    bench = (source / "pcpa-io.toml").read_text()
    table = bench[bench.index("[bench]") : bench.index("# The paper switches the low")]
    path.write_text(f'name = "both"\nextends = "pcpa-orders"\n{table}')
    with pytest.raises(UsageError, match="orders: there is experiment bench already"):
        load_workload(path)


def test_the_programs_own_times() -> None:
    assert seconds_of("sysbench", SYSBENCH) == 1.25
    assert seconds_of("fio", terse(0, 2500)) == 2.5
    assert seconds_of("fio", terse(40, 0)) == 0.04
    for program in ("sysbench", "fio"):
        with pytest.raises(CohortError, match=f"{program} printed no run time: 'killed'"):
            seconds_of(program, "killed")


def test_metrics() -> None:
    def ran(name: str, output: str) -> dict[str, Any]:
        memory = {"free_before": 256, "free_after": 512, "file_before": 768, "file_after": 1024}
        return {"r": "bench", "name": name, "output": output, "in_kb": 0, "out_kb": 0, **memory}

    records = [ran("seqrd", SYSBENCH), ran("memory", SYSBENCH), ran("fio-write", terse(0, 500))]
    metrics = compute_metrics([*records, ran("fio-rndrd", terse(250, 0))])
    expected: dict[str, float | None] = {"sysbench_seqrd_s": 1.25, "sysbench_fileio_s": 1.25}
    expected |= {"sysbench_seqrd_cache_mb": 4}
    expected |= {"sysbench_memory_s": 1.25, "sysbench_memory_free_mb_before": 1}
    expected |= {"sysbench_memory_free_mb": 2, "sysbench_memory_cache_mb_before": 3}
    expected |= {"fio_write_s": 0.5, "fio_rndrd_s": 0.25, "fio_s": 0.75, "fio_read_s": None}
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def test_blocks_of_an_order() -> None:
    def took(order: int, path: str, blocks: int, ns: int) -> dict[str, Any]:
        tally = {"blocks": blocks, "ns": ns, "max_ns": ns}
        return {"r": "order", "order": order, "path": path, **tally}

    records = [took(8, "normal", 6, 600_000), took(8, "slow", 0, 0), took(8, "refused", 2, 9)]
    metrics = compute_metrics(records)
    assert metrics["order8_normal_us"] == 100
    assert metrics["order8_mib_us"] == 100
    assert metrics["order8_slow_us"] is None
    assert metrics["order8_refused_share"] == 0.25
    assert (metrics["order4_normal_us"], metrics["order4_mib_us"]) == (None, None)


def test_libraries_among_what_a_package_depends_on() -> None:
    field = "libaio1 (>= 0.3.93), libluajit2-5.1-2 (>= 2.0) | libluajit-5.1-2, python3, zlib1g:any"
    assert programs.dependencies(field) == ["libaio1", "libluajit2-5.1-2", "zlib1g:any"]
    assert programs.dependencies("") == []


def test_a_package_apt_does_not_know(
    own_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(argv: list[str], **more: object) -> Any:
        class Done:
            returncode, stdout, stderr = 100, "", "E: Unable to locate package pony\n"

        return Done

    monkeypatch.setattr(host, "need", lambda program: Path(program))
    monkeypatch.setattr(host, "run", run)
    with pytest.raises(MissingTool, match="does not know pony: E: Unable") as error:
        programs.fetch(["pony"])
    assert error.value.hint == "apt-get update"
    with pytest.raises(BuildError, match="apt-get download failed"):
        programs._unpack(["pony"], tmp_path, tmp_path, "x86_64")
