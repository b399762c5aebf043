"""Camera workloads: what the file says, what the guest is told, what the records mean."""

from pathlib import Path
from typing import Any

import pytest

from cohort import paths
from cohort.errors import UsageError
from cohort.phone.workload import all_launches, launch_sequence, load_workload, render_conf
from cohort.policy import load_policy
from cohort.results.catalogue import BY_NAME
from cohort.results.metrics import compute_metrics
from cohort.results.series import compute_series
from cohort.run_check import check_run
from cohort.run_spec import RunSpec
from cohort.switches import AREA_FILES
from cohort.units import MIB

Record = dict[str, Any]

AREA = AREA_FILES["cohort.pcpa"]

VM = {
    "nr_file_pages": (0, 1024, 1536, 2048),
    "nr_shmem": (0, 256, 256, 256),
    "pgpgin": (0, 2048, 4096, 10240),
    "pgpgout": (0, 0, 0, 1024),
    "cohort_pcpa_reclaimed": (0, 0, 900, 1000),
    "cohort_pcpa_refault": (0, 0, 7, 9),
}


def test_ordinary_apps_come_before_and_between_the_starts() -> None:
    phone = load_workload("camera")
    assert phone.camera is not None
    first, between = phone.camera.first.value, phone.camera.between.value
    sequence = launch_sequence(phone, seed=1, launches=3)
    assert len(sequence) == all_launches(phone, 3) == first + 3 * (between + 1)
    at = [i for i, app in enumerate(sequence) if app == "camera"]
    assert at == [first + between, first + 2 * between + 1, first + 3 * between + 2]
    assert sequence[: at[0] + 1] == launch_sequence(phone, seed=1, launches=1)
    assert all_launches(load_workload("phone-2g"), 3) == 3


def test_the_guest_is_told_of_heap_and_sizes() -> None:
    phone = load_workload("camera", {"camera.between": 0, "camera.first": 1})
    conf = render_conf(phone, seed=1, launches=2, writes=[], time="virtual", heap="pcpa")
    lines = conf.splitlines()
    assert "camera camera pcpa 266240 20480 8" in lines
    assert "launches 3" in lines and lines.count("launch camera") == 2
    assert max(map(lines.index, ["camera camera pcpa 266240 20480 8"])) > max(
        i for i, line in enumerate(lines) if line.startswith("app ")
    )
    told = render_conf(
        phone, seed=1, launches=2, writes=[], time="virtual", heap="pcpa", announce=True
    )
    assert "camera camera pcpa 266240 20480 8 announce" in told.splitlines()
    assert "entitled" not in told.splitlines()
    told = render_conf(phone, seed=1, launches=2, writes=[], time="virtual", entitled=True)
    assert "camera camera system 266240 20480 8" in told.splitlines()
    assert "entitled" in told.splitlines()
    plain = load_workload("phone-2g")
    conf = render_conf(plain, seed=1, launches=2, writes=[], time="virtual", heap="pcpa")
    assert "pcpa" not in conf


def test_too_many_starts() -> None:
    with pytest.raises(UsageError, match=r"launches: 9000 \(27024 with those between"):
        render_conf(load_workload("camera"), seed=1, launches=9000, writes=[], time="virtual")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('[camera]\napp = "nikon"', "bad.toml:4: camera.app: there is no app 'nikon'"),
        ('[camera]\napp = "launcher"', "camera.app: there is no app 'launcher' to launch"),
        ("[camera]\nlens = 1", "bad.toml:4: camera.lens"),
    ],
)
def test_a_camera_that_cannot_be(text: str, where: str, tmp_path: Path) -> None:
    for name in ("phone-2g", "phone-3g", "camera"):
        (tmp_path / f"{name}.toml").write_text((paths.WORKLOADS / f"{name}.toml").read_text())
    path = tmp_path / "bad.toml"
    path.write_text(f'name = "bad"\nextends = "camera"\n{text}\n')
    with pytest.raises(UsageError) as caught:
        load_workload(path)
    assert where in caught.value.message


def test_the_policies_and_their_heaps() -> None:
    heaps = {name: load_policy(name).camera_heap for name in ("none", "sra", "cma", "pcpa")}
    assert heaps == {"none": "system", "sra": "sra", "cma": "reserved", "pcpa": "pcpa"}
    assert load_policy("pcpa-contig").camera_heap == "pcpa-contig"
    assert load_policy("pcpa-contig").digest != load_policy("pcpa").digest


def checked(text: str, tmp_path: Path, *words: str, workload: str = "camera") -> None:
    """Check a run of a policy that says so."""
    path = tmp_path / "mine.toml"
    path.write_text(f'title = "mine"\n{text}\n')
    check_run(RunSpec(load_policy(path), workload, 2, cmdline=words))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('extends = "pcpa-sized"', "camera_heap pcpa: there is no area"),
        ('camera_heap = "pcpa-contig"', "no cohort.pcpa= or cohort.pcpa_contig="),
        ('camera_heap = "sra"\ncmdline = ["cohort.pcpa=64M"]', "line has no cohort.sra="),
        ("camera_announce = true", "camera_announce: there is no area"),
        (f'camera_heap = "pcpa"\n[sysfs]\n"{AREA}" = "0"', "camera_heap pcpa: there is no area"),
    ],
)
def test_a_heap_of_an_area_that_is_not_there_is_refused(
    text: str, what: str, tmp_path: Path
) -> None:
    """The heap would be there all the same, with ordinary memory."""
    with pytest.raises(UsageError, match=f"policy mine on camera: .*{what}") as caught:
        checked(text, tmp_path)
    assert caught.value.hint is not None
    checked(text, tmp_path, workload="phone-2g")


def test_an_area_may_come_from_the_run_or_from_a_knob(tmp_path: Path) -> None:
    checked('extends = "pcpa-sized"', tmp_path, "cohort.pcpa=64M")
    knob = f'[sysfs]\n"{AREA}" = "64M"'
    checked(f'camera_heap = "pcpa"\nentitled = true\n{knob}', tmp_path)
    checked('camera_heap = "pcpa-contig"\ncmdline = ["cohort.pcpa_contig=64M"]', tmp_path)


def test_a_heap_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text('title = "odd"\ncamera_heap = "../mem"\n')
    with pytest.raises(UsageError, match="odd.toml:2: camera_heap: is not a name"):
        load_policy(path)


def piece(n: int, find_us: float, **more: Any) -> Record:
    record = {"r": "camera", "n": n, "app": "camera", "heap": "x", "bytes": MIB, "ok": True}
    record |= {"ns": (find_us + 50) * 1000, "zero_ns": 50_000, "busy": 0, "whole": False}
    return record | {"o8": 0, "o4": 0, "o0": 0, "other": 0} | more


def launch(n: int, app: str, ms: float) -> Record:
    return {"r": "launch", "n": n, "app": app, "kind": "resume", "ns": ms * 1e6, "majflt": 0}


def cost(n: int, app: str, stalls: int, own: int, **more: Any) -> Record:
    record = {"r": "cost", "n": n, "app": app, "stalls": stalls, "own_stalls": own}
    record |= {"file_before": 512, "file_after": 256, "free_before": 256}
    return record | {"in_kb": 1024, "out_kb": 512, "measured": False} | more


def sample(n: int) -> Record:
    zones = [["Normal", 1, *[0] * 10]]
    vm = [values[n] for values in VM.values()]
    more = {"alive": 1, "cached": 0, "cpu": []}
    return {"r": "sample", "t": n, "n": n, "buddy": zones, "vm": vm, **more}


def area(n: int, when: str, cache: int, client: int) -> Record:
    sizes = {"size_kb": 1024, "free_kb": 1024 - cache - client - 4, "cache_kb": cache}
    return {"r": "area", "n": n, "when": when, **sizes, "client_kb": client, "other_kb": 4}


def camera_run() -> list[Record]:
    """An ordinary launch, a start of two pieces, an ordinary launch, a start with a refusal."""
    return [
        {"r": "hello", "t": 0, "version": 1, "vm_names": list(VM)},
        sample(0),
        launch(1, "mail", 5000),
        cost(1, "mail", 9, 0),
        sample(1),
        piece(2, 100, o8=1),
        piece(2, 300, o4=15, o0=16),
        launch(2, "camera", 100),
        cost(2, "camera", 10, 8),
        area(2, "start", 0, 1000),
        {"r": "left", "n": 2, "base_pfn": 64, "pages": 256, "runs": [[0, 1]]},
        area(2, "use", 0, 1000),
        sample(2),
        launch(3, "mail", 50),
        cost(3, "mail", 5, 0),
        area(3, "use", 768, 0),
        piece(4, 600, ok=False, busy=3),
        piece(4, 200, whole=True),
        piece(4, 0, whole=True),
        launch(4, "camera", 300),
        cost(4, "camera", 1, 0, file_before=1024),
        area(4, "start", 8, 1000),
        sample(3) | {"n": 4},
    ]


def test_every_metric_of_a_small_camera_run() -> None:
    metrics = compute_metrics(camera_run())
    expected = {
        "buffer_find_us_p50": 600,  # 400, and 800 with the refusal's
        "buffer_find_us_max": 800,
        "buffer_zero_us_p50": 125,
        "buffer_n_alloc_mean": (32 + 2) / 2,
        "buffer_fail": 1,
        "buffer_order8_share": 3 / 4,
        "buffer_order4_share": 15 * 16 / 1024,
        "buffer_order0_share": 16 / 1024,
        "launch_ms_p50": 200,
        "launch_ms_mean": 200,
        "app_launch_ms_p50": 50,  # that before the first start is ageing
        "camera_stalls": 3,
        "camera_own_stalls": 8,
        "camera_busy": 3,
        "camera_file_mb_before": 3,
        "camera_free_mb_before": 1,
        "app_file_mb_before": 2,
        "app_file_mb_after": 1,
        "app_flash_read_mb": 1,
        "app_flash_write_mb": 0.5,
        "page_cache_mb_mean": (3 + 5 + 7) / 3,
        "flash_read_mb": 8,
        "flash_write_mb": 1,
        "area_cache_share": 0.75,
        "area_cache_mean_share": 0.75,
        "area_other_share": 4 / 1024,
        "area_client_mb": 1000 / 1024,
        "area_left_pages": (1 + 3) / 2,
        "area_reclaimed": 1000,
        "area_refault": 9,
        "area_migrated": None,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)


def test_marked_apps_alone_are_ordinary() -> None:
    more = [launch(5, "game", 900), cost(5, "game", 0, 0), launch(6, "sms", 30)]
    more += [cost(6, "sms", 0, 0, measured=True, in_kb=4096)]
    metrics = compute_metrics([*camera_run(), *more])
    assert metrics["app_launch_ms_p95"] == 30
    assert metrics["app_flash_read_mb"] == 4


def test_a_run_without_a_camera_has_none_of_it() -> None:
    metrics = compute_metrics([launch(1, "camera", 5)])
    names = [x for x in BY_NAME if x.startswith(("camera_", "app_", "area_", "flash_"))]
    assert {metrics[name] for name in names} == {None}
    assert metrics["launch_ms_p50"] == 5


def test_a_kernel_that_does_not_time_zeroing() -> None:
    unknown = [
        piece(1, 5, zero_ns=None, whole=True),
        launch(1, "camera", 1),
        cost(1, "camera", 0, 0),
    ]
    metrics = compute_metrics(unknown)
    assert metrics["buffer_find_us_p50"] is None
    assert metrics["buffer_n_alloc_mean"] == 1


def test_what_was_left_is_a_series() -> None:
    series = compute_series(camera_run())
    assert (series["left_n"], series["left_runs"]) == ([2], [[[0, 1]]])
