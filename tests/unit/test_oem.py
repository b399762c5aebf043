"""The judge's workloads and metrics: launches in rounds, and scrolling."""

import re
from pathlib import Path
from typing import Any

import pytest

from cohort import paths
from cohort.errors import UsageError
from cohort.phone.sequence import rounds_end
from cohort.phone.workload import launch_sequence, load_workload, render_conf, workload_names
from cohort.results.catalogue import METRICS
from cohort.results.metrics import compute_metrics
from cohort.results.oem import GROUP, WARM_FAULTS

Record = dict[str, Any]

JUDGED = ("phone-8g", "phone-2g-zram", "phone-1g")
NAMES = [metric.name for metric in METRICS if metric.group == GROUP]


# ---- rounds ----
def test_rounds_of_all_apps_then_favourites_and_now_and_then_the_camera() -> None:
    phone = load_workload("phone-8g")
    assert phone.rounds is not None
    turns, every = phone.rounds.turns.value, phone.rounds.camera_every.value
    everything = phone.in_rounds
    assert len(everything) == 30
    sequence = launch_sequence(phone, seed=1, launches=every * (30 + turns) + 1 + 30)
    for number in range(every):
        start = number * (30 + turns)
        assert sequence[start : start + 30] == everything
        assert set(sequence[start + 30 : start + 30 + turns]) <= set(phone.rounds.favourites)
    assert sequence[every * (30 + turns)] == "camera"
    assert sequence.count("camera") == 1
    assert sequence[-30:] == everything
    assert all(a != b for a, b in zip(sequence, sequence[1:], strict=False))


def test_the_seed_draws_the_favourites() -> None:
    phone = load_workload("phone-8g")
    first = launch_sequence(phone, seed=1, launches=100)
    assert first == launch_sequence(phone, seed=1, launches=200)[:100]
    other = launch_sequence(phone, seed=2, launches=100)
    assert first[:30] == other[:30] and first != other


def test_the_guest_hears_where_all_apps_had_their_turn() -> None:
    phone = load_workload("phone-8g")
    assert rounds_end(phone, 29) == set()
    assert sorted(rounds_end(phone, 190)) == [30, 68, 106, 145, 183]
    lines = render_conf(phone, seed=1, launches=31, writes=[], time="virtual").splitlines()
    assert lines[-3:-1] == [f"launch {phone.in_rounds[-1]}", "round"]
    assert lines.count("round") == 1
    drawn = load_workload("phone-2g")
    assert rounds_end(drawn, 400) == set()


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('camera = "camera"', 'camera = "launcher"', "rounds.camera: there is no app 'launcher'"),
        ('["facebook"', '["nobody"', "rounds.favourites: there is no app 'nobody'"),
        ('["facebook"', '["camera"', "rounds.favourites: each needs a weight and a turn"),
        ("[rounds]", "[use]", "use."),
    ],
)
def test_rounds_that_cannot_be(old: str, new: str, what: str, tmp_path: Path) -> None:
    for name in ("phone-2g", "phone-2g-zram"):
        (tmp_path / f"{name}.toml").write_text((paths.WORKLOADS / f"{name}.toml").read_text())
    text = (paths.WORKLOADS / "phone-8g.toml").read_text()
    path = tmp_path / "phone-8g.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        load_workload(path)
    assert what in caught.value.message


def test_only_judged_phones_scroll() -> None:
    judged = {name for name in workload_names() if load_workload(name).judge is not None}
    assert judged == set(JUDGED)
    source = (paths.GUEST / "base" / "conf.c").read_text()
    fields = re.findall(r"&conf->judge\.(\w+)", source)
    phone = load_workload("phone-8g")
    conf = render_conf(phone, seed=1, launches=1, writes=[], time="virtual")
    line = next(x for x in conf.splitlines() if x.startswith("judge "))
    assert [int(x) for x in line.split()[1:]] == [getattr(phone.judge, x).value for x in fields]
    plain = render_conf(load_workload("phone-2g"), seed=1, launches=9, writes=[], time="virtual")
    assert not [x for x in plain.splitlines() if x.split()[0] in ("judge", "round")]


# ---- metrics ----
def sample(n: int, cached: int, faults: int, read_kb: int) -> Record:
    zones = [["DMA32", *[1] * 11]]
    record = {"r": "sample", "t": n, "n": n, "buddy": zones, "vm": [faults, read_kb], "cpu": []}
    return record | {"alive": 60, "cached": cached}


def judged(n: int, available_mb: int, *faults: int) -> Record:
    record = {"r": "judge", "n": n, "available_kb": available_mb * 1024}
    return record | dict(zip(("foreground", "background", "system"), faults, strict=True))


def launch(n: int, kind: str, ms: float, majflt: int) -> Record:
    record = {"r": "launch", "t": n, "n": n, "app": "a", "kind": kind, "ns": ms * 1e6}
    return record | {"majflt": majflt}


def scroll(n: int, late: int, ms: float) -> Record:
    return {"r": "scroll", "n": n, "app": "a", "frames": 60, "late": late, "worst_ns": ms * 1e6}


def records(rounds: bool = True) -> list[Record]:
    ends = [{"r": "round", "n": 2, "apps": 2}, {"r": "round", "n": 4, "apps": 3}]
    return [
        {"r": "hello", "t": 0, "version": 1, "vm_names": ["pgmajfault", "pgpgin"]},
        sample(0, 0, 100, 1024),
        judged(0, 400, 5, 6, 7),
        launch(1, "cold", 100, 9),
        scroll(1, 3, 20),
        sample(1, 0, 110, 1024),
        judged(1, 300, 10, 6, 7),
        launch(2, "cold", 300, 9),
        scroll(2, 0, 0),
        sample(2, 1, 120, 2048),
        judged(2, 200, 20, 6, 7),
        launch(3, "resume", 50, WARM_FAULTS),
        scroll(3, 6, 80),
        sample(3, 2, 130, 2048),
        judged(3, 200, 25, 8, 8),
        launch(4, "resume", 10, WARM_FAULTS - 1),
        scroll(4, 0, 0),
        sample(4, 1, 150, 6144),
        judged(4, 100, 30, 9, 17),
        *(ends if rounds else []),
    ]


def test_what_a_judge_sees() -> None:
    found = compute_metrics(records())
    expected = {
        "apps_alive_mean": 2.5,
        "mem_available_mb_mean": 240,
        "major_faults_foreground": 25,
        "major_faults_background": 3,
        "major_faults_system": 10,
        "major_faults_other": 12,
        "storage_read_mb": 5,
        "swap_in_pages": None,
        "launches_cold": 2,
        "launch_ms_p50_cold": 200,
        "launch_ms_p95_cold": 290,
        "launches_warm": 1,
        "launch_ms_p50_warm": 50,
        "launch_ms_p95_warm": 50,
        "launches_resumed": 1,
        "launch_ms_p50_resumed": 10,
        "launch_ms_p95_resumed": 10,
        "frames_late": 9,
        "frames_late_share": 9 / 240,
        "frame_late_ms_max": 80,
    }
    assert {name: found[name] for name in NAMES} == pytest.approx(expected)
    assert sum(found[f"major_faults_{x}"] or 0 for x in ("foreground", "background")) == 28
    assert found["major_faults"] == 50


def test_without_rounds_the_second_half_is_counted() -> None:
    assert compute_metrics(records(rounds=False))["apps_alive_mean"] == 2.5


def test_records_of_guests_that_judged_nothing_are_read_as_before() -> None:
    old = [x for x in records() if x["r"] not in ("round", "scroll", "judge")]
    found = compute_metrics(old)
    assert {name: found[name] for name in NAMES if found[name] is not None} == {
        "storage_read_mb": 5
    }
    assert found["major_faults"] == 50
    without_faults = [{k: v for k, v in x.items() if k != "majflt"} for x in records()]
    assert compute_metrics(without_faults)["launches_cold"] == 2


def test_what_was_swapped_in_is_not_read_from_storage() -> None:
    """The kernel counts a read from zram as one from any block device, 4 KiB a page here."""
    run = records()
    run[0]["vm_names"].append("pswpin")
    for record in run:
        if record["r"] == "sample":
            record["vm"].append(0 if record["n"] == 0 else 256)
    found = compute_metrics(run)
    assert (found["storage_read_mb"], found["swap_in_pages"]) == (4, 256)


def test_a_warm_launch_is_one_that_brought_back_a_mib() -> None:
    run = records()
    run[0]["page_size"] = 16384
    found = compute_metrics(run)
    assert (found["launches_warm"], found["launches_resumed"]) == (2, 0)
