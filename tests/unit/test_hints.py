"""What is mistyped is told with the one name that may be meant, in a command or in a file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import named, paths, runs, tomlfile
from cohort.errors import Failed, UsageError
from cohort.kernel import build
from cohort.phone import limits
from cohort.phone.schema import Workload
from cohort.phone.sequence import all_launches, most_launches
from cohort.phone.workload import load_workload
from cohort.policy import Policy, load_policy, policy_names
from cohort.results import bounds, catalogue
from cohort.results.sheet import Sheet
from cohort.study.schema import load_study, study_names
from cohort.suites.schema import load_suite
from tests_support import Outcome


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("comapre none", "compare"),
        ("kernel bild", "build"),
        ("results histroy", "history"),
        ("compare none --sed 2", "--seed"),
        ("compare none --lanches 2", "--launches"),
        ("compare nnone region", "none"),
        ("run none --workload phone2g", "phone-2g"),
        ("study region-fgi2", "region-fig2"),
        ("suite selftest-mm", "selftests-mm"),
        ("suite fio --case psync-req", "psync-seq"),
        ("run none --config base,x86_64,lap", "lab"),
        ("run none --append cohort.regoin_order=6", "cohort.region_order"),
        ("run none --append cohort=cpb,regoin", "region"),
        ("run none --append cohort.pcpa=261M", "262m"),
        ("run none --append cohort.pcpa=64M@0x40000001", "1026m"),
        ("tune pcpa --sizes 181", "182m"),
        ("run none --change maps.cout=5", "maps.count"),
        ("run none --workload ./phone-2g.tml", "phone-2g"),
    ],
)
def test_a_command_with_a_slip(
    words: str, meant: str, own_out: Path, cohort: Callable[..., Outcome]
) -> None:
    done = cohort(*words.split())
    assert done.code == 2
    _, _, hint = done.stderr.lower().partition("did you mean ")
    assert hint.strip(" ?.)'\n") == meant, done.stderr


CAMERA = most_launches(load_workload("camera"), limits.MAX_LAUNCHES)
PHONE, TRUSTED = "run none --workload camera", "cohort.vnode=a:64M,b:64M,c:rest"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("run none --seed x", "like --seed 1,2,3"),
        ("run none --seed -1", "like --seed 1,2,3"),
        ("run none --seed 99999999999999999999", "like --seed 1,2,3"),
        ("tune pcpa --sizes 1,a", "like --sizes 180,200,260"),
        ("tune pcpa --sizes 0", "like --sizes 180,200,260"),
        ("run none --launches 0", "without --launches there are as many as the workload says"),
        ("run none --launches 99999", f"--launches {limits.MAX_LAUNCHES} is the most here"),
        (f"{PHONE} --launches 99999", f"--launches {CAMERA} is the most here"),
        (f"{PHONE} --memory 0", "--memory 2048 is a phone of 2 GiB"),
        (f"run none --append {TRUSTED}", "a workload with machine.cpus = 3"),
        ("suite fio --policies none,vnode --cpus 1", "--cpus 2"),
        ("suite fio --memory 0", "without --memory it is what the suite says"),
        ("report", "cohort report --last"),
        ("study", "cohort study cpb-fig3a"),
        ("run none --cluster foo", "like --cluster tcp://HOST:8786"),
        ("study nosuch", f"all {len(study_names())}: cohort study --list; the nearest is "),
        ("scale nosuch", f"all {len(policy_names())}: ls {paths.POLICIES}; the nearest is none-"),
        ("run none --workload nosuch", f"ls {paths.WORKLOADS}"),
        ("run none --workload nosuch.toml", f"ls {paths.WORKLOADS}"),
        ("run nosuch.toml", f"ls {paths.POLICIES}"),
        ("study nosuch.toml", f"ls {paths.STUDIES}"),
        ("run none --change =5", "like --change maps.count=200"),
        ("results add foo", "cohort results add foo --last"),
    ],
)
@pytest.mark.usefixtures("own_out")
def test_what_is_refused_says_what_to_type_instead(
    words: str, hint: str, cohort: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "build", lambda *_: pytest.fail("a kernel is built"))
    monkeypatch.setattr(runs, "build", lambda *_: pytest.fail("a kernel is built"))
    done = cohort(*words.split())
    assert done.code == 2
    assert hint in done.stderr.partition("\nhint: ")[2], done.stderr


def test_the_most_launches_of_a_camera_fit() -> None:
    phone = load_workload("camera")
    assert all_launches(phone, CAMERA) <= limits.MAX_LAUNCHES < all_launches(phone, CAMERA + 1)


Load = Callable[[str], object]


def rule(path: str) -> object:
    """The one of the history's bounds."""
    return bounds.read_rule(Path(path))


@pytest.mark.parametrize(
    ("load", "text", "where", "meant"),
    [
        (load_policy, 'title = "t"\ncmdlien = []\n', "2: cmdlien", "cmdline"),
        (load_policy, 'title = "t"\nextends = "regoin"\n', "2: extends", "region"),
        (load_policy, 'title = "t"\ncmdline = ["cohort=regoin"]\n', "2: cmdline.0", "region"),
        (
            load_policy,
            'title = "t"\n[role.x]\nmemory_mim_mb = 1\n',
            *("3: role.x.memory_mim_mb", "memory_min_mb"),
        ),
        (
            load_workload,
            'extends = "phone-2g"\n[process.framework]\nheap = 1\n',
            *("3: process.framework.heap", "heap_mb"),
        ),
        (
            load_workload,
            'extends = "camera"\n[camera]\napp = "camra"\n',
            *("3: camera.app", "camera"),
        ),
        (
            load_study,
            'title = "t"\nsource = "s"\nworkload = "w"\nseeds = [1]\n[[run]]\nlabel = "a"\n'
            'policy = "none"\n[[measure]]\nmetric = "kils"\n',
            *("9: measure.0.metric", "kills"),
        ),
        (load_suite, 'title = "t"\n[longer]\nwriet = 2\n[case]\nwrite = "x"\n', "longer", "write"),
        (rule, "set = 's'\nlabel = 'l'\nfactor = 2.0\nmetrics = ['kils']\n", "4: metrics", "kills"),
        (rule, "set = 's'\nlabel = 'l'\nfacotr = 2.0\nmetrics = []\n", "3: facotr", "factor"),
    ],
)
def test_a_file_with_a_slip(load: Load, text: str, where: str, meant: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(str(path))
    assert caught.value.message.startswith(f"{path}:{where}") or where in caught.value.message
    assert caught.value.hint == f"did you mean {meant}?"


def test_a_path_with_a_slip_is_told_with_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "my-phone.toml").write_text('extends = "phone-2g"\n')
    with pytest.raises(UsageError, match="no such workload file") as caught:
        load_workload(str(tmp_path / "my-phnoe.toml"))
    assert caught.value.hint == f"did you mean {tmp_path / 'my-phone.toml'}?"
    with pytest.raises(UsageError, match="no such workload file") as caught:
        load_workload(str(tmp_path / "gone" / "phone-2g.toml"))
    assert caught.value.hint == "did you mean phone-2g?"
    for name in ("camera.toml", "abc.toml"):
        (tmp_path / "abcd.toml").write_text("")
        with pytest.raises(UsageError, match="no such workload file") as caught:
            load_workload(str(tmp_path / name))
        meant = "camera" if name == "camera.toml" else tmp_path / "abcd.toml"
        assert caught.value.hint == f"did you mean {meant}?"
    (tmp_path / "abcd.toml").rename(tmp_path / "xyz.toml")
    with pytest.raises(UsageError) as caught:
        load_workload(str(tmp_path / "nope.toml"))
    assert "xyz" not in str(caught.value.hint), "a suffix is no likeness"


@pytest.mark.parametrize(
    ("load", "text", "said"),
    [
        (
            load_workload,
            'extends = "phone-2g"\n[time]\nhome_ms = 5\n',
            '3: time.home_ms: a number is `{ value = 5, source = "assumed" }`',
        ),
        (
            load_workload,
            'extends = "phone-2g"\n[time]\nhome_ms = "7"\n',
            '3: time.home_ms: a number is `{ value = 5, source = "assumed" }`',
        ),
        (
            load_workload,
            'extends = "phone-2g"\ntime = 5\n',
            "2: time: not a valid dictionary, which is a table, as `{ foreground_ms = ... }`",
        ),
        (
            load_policy,
            'title = "t"\nsysctl = 5\n',
            "2: sysctl: not a valid dictionary, which is a table, as `{ NAME = ... }`",
        ),
        (
            load_policy,
            'title = "t"\ncmdline = "cohort=region"\n',
            '2: cmdline: not a valid list, as `["cohort=region"]`',
        ),
        (
            load_policy,
            'title = "t"\ncmdline = { a = 1 }\n',
            "2: cmdline: not a valid list, as `[...]`",
        ),
    ],
)
def test_what_is_no_number_no_table_or_no_list_is_told_with_how_it_is_written(
    load: Load, text: str, said: str, tmp_path: Path
) -> None:
    """Pydantic's words are of Python's types, which none of these files has."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(str(path))
    assert caught.value.message == f"{path}:{said}"


def test_the_nearest_key_is_one_of_the_same_table() -> None:
    """`mb` is in many tables of a workload, and what is near to a key of another is no help."""
    at = tomlfile._keys_at
    schema = Workload.model_json_schema()
    assert set(at(schema, ("zygote",))) == {"heap_mb", "cow_mb"}
    assert "heap_mb" in at(schema, ("process", "framework"))
    assert {"value", "source", "note"} <= set(at(schema, ("process", "framework", "heap_mb")))
    assert at(schema, ("no", "such", "table")) == []
    assert "memory_min_mb" in at(Policy.model_json_schema(), ("role", "x"))
    assert "cmdline" in at(Policy.model_json_schema(), ())


def test_where_no_name_is_near_all_are_told() -> None:
    assert named.hint("zzz", ["a", "b"]) == "known: a, b"
    assert named.near("zzz", ["a", "b"]) is None
    assert named.with_hint("x: no y; did you mean z?") == ("x: no y", "did you mean z?")
    assert named.with_hint("x: no y") == ("x: no y", None)


def test_a_template_with_a_slip(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"there is no metric kils; did you mean kills\?"):
        Sheet("page.md", tmp_path)._metric("table", "kils")
    assert catalogue.meant("zzzzzz") == "docs/reference/metrics.md lists them"
