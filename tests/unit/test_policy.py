"""Policies: what the shipped ones say, and what a bad file is told."""

import itertools
import re
from pathlib import Path

import pytest

from cohort import paths, policy_page, switches
from cohort.errors import UsageError
from cohort.policy import Policy, load_policy, policy_names
from cohort.policy_page import group_of


def write(tmp_path: Path, text: str, name: str = "mine") -> Path:
    path = tmp_path / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_shipped_policy_loads_under_its_own_name() -> None:
    names = policy_names()
    assert {"none", "tuned", "mthp", "mglru", "region", "tuned-mglru", "region-mglru"} <= set(names)
    for name in names:
        assert load_policy(name).name == name


def test_none_is_the_kernel_as_shipped() -> None:
    none = load_policy("none")
    assert (none.cmdline, none.writes(), none.kernel) == ([], [], "cohort")


def test_region_leaves_the_marks_of_the_zones_and_all_other_knobs_as_stock_has_them() -> None:
    assert load_policy("region").writes() == load_policy("none").writes()
    wide = load_policy("tuned-wsf150").sysctl
    assert {**wide, "vm.watermark_scale_factor": "100"} == load_policy("tuned").sysctl


def test_the_rival_for_large_pieces_has_every_knob_that_region_sets() -> None:
    region = load_policy("region")
    for name in ("tuned-compact", "tuned-compact-mglru"):
        rival = load_policy(name)
        own = [word for word in region.cmdline if not word.startswith("cohort=")]
        assert rival.cmdline == own == ["slab_max_order=0"]
        assert rival.sysctl == {
            **region.sysctl,
            "vm.watermark_scale_factor": "150",
            "vm.compaction_proactiveness": "100",
        }
        assert rival.sysfs["/sys/block/dm-0/queue/read_ahead_kb"] == "64"
    assert load_policy("tuned-compact").sysfs == load_policy("tuned").sysfs
    assert load_policy("tuned-compact-mglru").sysfs == load_policy("tuned-mglru").sysfs


def test_a_rival_has_the_knobs_of_what_it_is_compared_with() -> None:
    slabs = "slab_max_order=0"
    assert slabs in load_policy("vnode").cmdline
    assert [x for x in ("tuned", "memcg") if slabs not in load_policy(x).cmdline] == []
    assert load_policy("tuned-compact-heap").sysfs == {
        **load_policy("tuned-compact").sysfs,
        "/sys/kernel/mm/cohort/buffer/compact": "1",
    }


def test_right_sized_reclaim_has_rivals_that_read_less_ahead() -> None:
    for base, kib in itertools.product(("boost0", "mglru-boost0"), (64, 32)):
        rival, stock = load_policy(f"{base}-ra{kib}"), load_policy(base)
        assert (rival.sysctl, rival.cmdline) == (stock.sysctl, stock.cmdline)
        assert rival.sysfs == {**stock.sysfs, "/sys/block/dm-0/queue/read_ahead_kb": f"{kib}"}


def test_no_policy_of_stock_has_a_switch_of_cohort() -> None:
    """Nor an area, of which a camera may be a client whatever its heap is."""
    stock = [x for x in map(load_policy, policy_names()) if group_of(x) == "stock"]
    assert "none" in [x.name for x in stock]
    switched = [x for x in stock if switches.values(x.cmdline) or x.areas(x.cmdline)]
    assert [x.name for x in switched] == []


def test_every_policy_is_on_the_reference_page() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", policy_page.markdown(), re.MULTILINE)
    assert sorted(rows) == policy_names()
    assert {group_of(load_policy(x)) for x in policy_names()} == set(policy_page.GROUPS)
    text = policy_page.markdown()
    assert "| `mglru-boost0` | multi-gen LRU, no boost of the watermarks. | as `mglru`; " in text


def test_region_orders_extend_region() -> None:
    for order in (5, 6, 7, 8):
        policy = load_policy(f"region{order}")
        assert policy.cmdline == [
            "cohort=region,rightsize",
            "slab_max_order=0",
            f"cohort.region_order={order}",
        ]
        assert policy.sysctl == load_policy("region").sysctl


def test_writes_maps_sysctl_names_to_files_and_keeps_the_order(tmp_path: Path) -> None:
    policy = load_policy(
        write(
            tmp_path,
            'title = "t"\n[sysctl]\n"vm.swappiness" = 10\n"net.ipv4.tcp_sack" = "1"\n'
            '[sysfs]\n"/sys/kernel/mm/lru_gen/enabled" = "7"\n',
        )
    )
    assert policy.writes() == [
        ("/proc/sys/vm/swappiness", "10"),
        ("/proc/sys/net/ipv4/tcp_sack", "1"),
        ("/sys/kernel/mm/lru_gen/enabled", "7"),
    ]


def test_digest_follows_the_effect_not_the_words(tmp_path: Path) -> None:
    one = load_policy(write(tmp_path, 'title = "one"\ncmdline = ["a=1"]', "one"))
    two = load_policy(write(tmp_path, 'title = "two"\ncmdline = ["a=1"]', "two"))
    other = load_policy(write(tmp_path, 'title = "two"\ncmdline = ["a=2"]', "other"))
    assert one.digest == two.digest != other.digest


def test_a_file_that_is_not_called_as_a_policy_needs_a_name(tmp_path: Path) -> None:
    path = write(tmp_path, 'title = "t"\n', "My policy")
    with pytest.raises(UsageError, match="My policy.toml: the file is not called as") as caught:
        load_policy(path)
    assert caught.value.hint == "give it a line: name = ..."
    assert load_policy(write(tmp_path, 'name = "mine"\ntitle = "t"\n', "My policy")).name == "mine"


def test_extends_appends_switches_and_replaces_knobs(tmp_path: Path) -> None:
    write(tmp_path, 'title = "base"\ncmdline = ["a"]\n[sysctl]\n"x.y" = 1\n"x.z" = 1\n', "base")
    child = write(tmp_path, 'extends = "base"\ncmdline = ["b"]\n[sysctl]\n"x.y" = 2\n')
    policy = load_policy(child)
    assert policy == Policy(
        name="mine", title="base", cmdline=["a", "b"], sysctl={"x.y": "2", "x.z": "1"}
    )


def test_a_switch_of_cohorts_replaces_the_one_of_its_name(tmp_path: Path) -> None:
    """The kernel refuses an area that is given twice, and takes the last of the others."""
    assert load_policy("pcpa192").cmdline == ["cohort.pcpa=192M"]
    assert load_policy("region-alone").cmdline == ["slab_max_order=0", "cohort=region"]
    write(tmp_path, 'title = "t"\ncmdline = ["loglevel=1", "cohort=cpb"]', "base")
    child = write(tmp_path, 'extends = "base"\ncmdline = ["loglevel=2", "cohort=region"]')
    assert load_policy(child).cmdline == ["loglevel=1", "loglevel=2", "cohort=region"]


@pytest.mark.parametrize(
    ("text", "line", "key", "what"),
    [
        ('title = "t"\ncmdlime = []', 2, "cmdlime", "Extra inputs"),
        ('title = "t"\n\ncmdline = "quiet"', 3, "cmdline", "valid list"),
        ('title = "t"\ncmdline = ["a b"]', 2, "cmdline.0", "without blanks"),
        ('title = "t"\ncmdline = ["cohort=regoin"]', 2, "cmdline.0", "no scheme 'regoin'"),
        ('title = "t"\ncmdline = ["cohort.pcpa=261M"]', 2, "cmdline.0", "of a pageblock, 2M"),
        ('title = "t"\ncmdline = ["cohort.pcpa_min_order=9"]', 2, "cmdline.0", "from 0 to 8"),
        (
            'title = "t"\ncmdline = ["cohort.vnode=a:99%,b:99%,c:rest"]',
            *(2, "cmdline.0", "198 % leave nothing for the rest"),
        ),
        (
            'title = "t"\ncmdline = ["cohort.pcpa=2M", "cohort.pcpa=4M"]',
            *(2, "cmdline.1", "given twice"),
        ),
        (
            'title = "t"\ncmdline = ["cohort=cpb"]\nkernel = "stock"',
            *(3, "kernel", "stock has no Cohort"),
        ),
        (
            'title = "t"\nkernel = "stock"\n[sysfs]\n"/sys/kernel/mm/cohort/buffer/compact" = 1',
            *(2, "kernel", "has no Cohort, and sysfs has /sys/kernel/mm/cohort/buffer/compact"),
        ),
        ('extends = "base"\ncmdline = "quiet"', 2, "cmdline", "valid list"),
        ('title = "t"\n[sysctl]\nvm = 1', 3, "sysctl.vm", "not a sysctl name"),
        ('title = "t"\n[sysctl]\n"vm.x" = 1.5', 3, 'sysctl."vm.x"', "valid string"),
        ('title = "t"\n[sysfs]\n"/proc/x" = "1"', 3, "sysfs./proc/x", "below /sys"),
        ('title = "t"\n[sysfs]\n"/sys/../x" = "1"', 3, 'sysfs."/sys/../x"', "below /sys"),
        ('title = "t"\n[sysfs]\n"/sys/x" = "1\\n2"', 3, "sysfs./sys/x", "one line"),
        ('title = "t"\nentitled = true', 2, "entitled", "there is no area"),
        ('title = "t"\nkernel = "mine"', 2, "kernel", "'cohort', 'order9', 'gcma' or 'stock'"),
        ('title = "t"\nguaranteed_mb = 9', 2, "guaranteed_mb", "the kernel has no GCMA"),
        (
            'title = "t"\n[role.a]\nmemory_min_mb = -5',
            3,
            "role.a.memory_min_mb",
            "than or equal to 0",
        ),
        (
            'title = "t"\n[role.a]\nmemory_low_mb = 99999999999',
            *(3, "role.a.memory_low_mb", "less than or equal to 1048576"),
        ),
        (
            'title = "t"\n[role.a]\nvnode = "a"\nmemory_max_mb = 5',
            *(2, "role.a", "vnode does not go with memory_max_mb"),
        ),
        ('extends = "base"\nsysctl = 5', 2, "sysctl", "valid dictionary"),
        ('extends = "base"\nsysfs = ["/sys/x"]', 2, "sysfs", "valid dictionary"),
        ('extends = "base"\nrole = "a"', 2, "role", "valid dictionary"),
        ('extends = "memcg"\nrole.trusted = 1', 2, "role.trusted", "valid dictionary"),
        ('cmdline = ["a"]', 1, "title", "required"),
        ('extends = "nobody"', 1, "extends", "no policy 'nobody'"),
        ('# me\nextends = "mine"', 2, "extends", "circle"),
    ],
)
def test_a_bad_file_is_named_with_line_and_key(
    tmp_path: Path, text: str, line: int, key: str, what: str
) -> None:
    write(tmp_path, 'title = "b"', "base")
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_policy(path)
    assert caught.value.message.startswith(f"{path}:{line}: {key}: ")
    assert what in caught.value.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('extend = "tuned"', "did you mean extends?"),
        ('title = "t"\ncmdlin = []', "did you mean cmdline?"),
        ('title = "t"\nkernel = "stok"', "did you mean stock?"),
        ('title = "t"\nkernel = "mine"', None),
    ],
)
def test_the_nearest_key_or_word_is_named(text: str, hint: str | None, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_policy(write(tmp_path, text))
    assert caught.value.hint == hint


def test_a_bad_parent_is_the_one_named(tmp_path: Path) -> None:
    base = write(tmp_path, 'title = "t"\nkernel = 1', "base")
    with pytest.raises(UsageError, match=f"{base}:2: kernel"):
        load_policy(write(tmp_path, 'extends = "base"'))


def test_broken_toml_names_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path, 'title = "t"\ncmdline = [')
    with pytest.raises(UsageError, match=rf"{path}: not TOML: .*(line 2|end of document)"):
        load_policy(path)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean region"):
        load_policy("regoin")


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such policy file"):
        load_policy(tmp_path / "absent.toml")


def test_a_file_elsewhere_extends_a_shipped_one(tmp_path: Path) -> None:
    mine = load_policy(write(tmp_path, 'title = "mine"\nextends = "mglru"\n'))
    assert (mine.name, mine.sysfs) == ("mine", load_policy("mglru").sysfs)
    same = write(tmp_path, 'title = "other"\nextends = "boost0"\n', "boost0")
    assert load_policy(same).sysctl == load_policy("boost0").sysctl
    nearer = write(tmp_path, 'title = "third"\nextends = "boost0"\n', "third")
    write(tmp_path, 'title = "nearer"\n', "boost0")
    assert load_policy(nearer).sysctl == {}
    with pytest.raises(UsageError, match="no policy 'nowhere' beside this file or in "):
        load_policy(write(tmp_path, 'title = "mine"\nextends = "nowhere"\n'))


def test_a_key_that_is_none_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean sysctl") as caught:
        load_policy(write(tmp_path, 'title = "mine"\n[sysctrl]\n'))
    assert ":2: sysctrl: " in str(caught.value)
    with pytest.raises(UsageError) as caught:
        load_policy(write(tmp_path, 'title = "mine"\nxyz = 1\n'))
    assert caught.value.hint is None


def test_of_fifty_names_only_the_nearest_is_told() -> None:
    with pytest.raises(UsageError) as caught:
        load_policy("regio")
    assert caught.value.hint == "did you mean region?"
    with pytest.raises(UsageError, match="'zzzzzz'") as caught:
        load_policy("zzzzzz")
    assert caught.value.hint == f"all {len(policy_names())}: ls {paths.POLICIES}"
    with pytest.raises(UsageError, match="'bootzero'") as caught:
        load_policy("bootzero")
    assert str(caught.value.hint).endswith("; the nearest is boost0")


def test_a_child_has_its_parents_roles_key_by_key(tmp_path: Path) -> None:
    text = 'extends = "memcg"\n[role.trusted]\nmemory_low_mb = 640\n[role.store]\nvnode = "a"\n'
    roles = load_policy(write(tmp_path, text)).role
    assert {name: role.line for name, role in roles.items()} == {
        "trusted": f"cgroup {384 * 1024} {640 * 1024} 0",
        "untrusted": "cgroup 0 0 0",
        "store": "vnode a",
    }
