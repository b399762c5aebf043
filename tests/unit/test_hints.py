"""What is mistyped is told with the one name that may be meant, in a command or in a file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort import named, tomlfile
from cohort.errors import Failed, UsageError
from cohort.phone.schema import Workload
from cohort.phone.workload import load_workload
from cohort.policy import Policy, load_policy
from cohort.results import bounds, catalogue
from cohort.results.sheet import Sheet
from cohort.study.schema import load_study
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
    ],
)
def test_a_command_with_a_slip(
    words: str, meant: str, own_out: Path, cohort: Callable[..., Outcome]
) -> None:
    done = cohort(*words.split())
    assert done.code == 2
    _, _, hint = done.stderr.lower().partition("did you mean ")
    assert hint.strip(" ?.)'\n") == meant, done.stderr


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
