"""Workload files: the shipped one, and errors that name file, line and key."""

import json
import re
from pathlib import Path

import pytest

from cohort import paths
from cohort.errors import UsageError
from cohort.phone import limits
from cohort.phone.schema import MOST_IMAGE_MB
from cohort.phone.workload import (
    launch_sequence,
    launch_weights,
    load_workload,
    render_conf,
    workload_names,
)
from cohort.policy import MOST_MEMORY_MB, load_policy
from cohort.run_check import check_run
from cohort.run_spec import RunSpec

TEXT = (paths.WORKLOADS / "phone-2g.toml").read_text()


def _broken(tmp_path: Path, old: str, new: str) -> str:
    assert old in TEXT
    path = tmp_path / "bad.toml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        load_workload(path)
    assert str(path) in caught.value.message
    return caught.value.message


def _line(text: str, path: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if line.startswith(path))


def test_the_papers_phone() -> None:
    phone = load_workload("phone-2g")
    assert (phone.memory_mb, phone.cpus) == (2048, 2)
    # 25 persistent, 21 service, 9 normal; five persistent ones are the guest's own, and
    # one normal one is the launcher (region paper, 4.1.2)
    classes = [p.process_class for p in phone.process.values()]
    counts = {g.process_class: g.count.value for g in phone.group.values()}
    assert classes.count("persistent") + counts["persistent"] + 5 == 25
    assert counts["service"] == 21
    assert counts["normal"] + 1 == 9
    assert sum(not app.home for app in phone.app.values()) == 22


@pytest.mark.parametrize("name", workload_names())
def test_every_number_says_where_it_comes_from(name: str) -> None:
    text = (paths.WORKLOADS / f"{name}.toml").read_text()
    for line in text.splitlines():
        if re.search(r"=\s*-?\d", line) and not line.startswith("#"):
            assert 'source = "' in line, line
    load_workload(name)


def test_unknown_name_suggests() -> None:
    with pytest.raises(UsageError) as caught:
        load_workload("phone-2gb")
    assert "phone-2g" in str(caught.value.hint)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none.toml"):
        load_workload(tmp_path / "none.toml")


def test_not_toml(tmp_path: Path) -> None:
    assert "not TOML" in _broken(tmp_path, "[machine]", "[machine")


def test_unknown_key_has_its_line(tmp_path: Path) -> None:
    message = _broken(tmp_path, "[zygote]\nheap_mb", "[zygote]\nheap_mib")
    line = _line(TEXT, "[zygote]") + 1
    # the missing key is reported at its table, the unknown one at its own line
    assert f":{line}: zygote.heap_mib" in message or f":{line - 1}: zygote.heap_mb" in message


def test_number_without_a_source(tmp_path: Path) -> None:
    old = next(x for x in TEXT.splitlines() if x.startswith("cow_mb"))
    message = _broken(tmp_path, old, "cow_mb = 3")
    assert f":{_line(TEXT, 'cow_mb')}: zygote.cow_mb" in message


def test_cited_needs_a_note(tmp_path: Path) -> None:
    old = next(x for x in TEXT.splitlines() if x.startswith("home_ms"))
    message = _broken(tmp_path, old, 'home_ms = { value = 5000, source = "cited" }')
    assert f":{_line(TEXT, 'home_ms')}: time.home_ms" in message
    assert "needs a note" in message


def test_negative_size(tmp_path: Path) -> None:
    old = next(x for x in TEXT.splitlines() if x.startswith("think_us"))
    message = _broken(tmp_path, old, 'think_us = { value = -1, source = "assumed" }')
    assert "faults.think_us.value" in message


def test_key_of_the_right_table(tmp_path: Path) -> None:
    """heap_mb stands in many tables: the line must be the one of the table at fault."""
    start = TEXT.index("[category.browser]")
    head, tail = TEXT[:start], TEXT[start:]
    path = tmp_path / "bad.toml"
    path.write_text(head + re.sub(r"heap_mb = .*", 'heap_mb = "big"', tail, count=1))
    with pytest.raises(UsageError) as caught:
        load_workload(path)
    line = (
        head.count("\n")
        + 1
        + tail.splitlines().index(next(x for x in tail.splitlines() if x.startswith("heap_mb")))
    )
    assert f":{line}: category.browser.heap_mb" in caught.value.message


def test_unknown_category(tmp_path: Path) -> None:
    message = _broken(tmp_path, 'category = "browser"', 'category = "browsing"')
    assert "no category 'browsing'" in message
    assert f":{_line(TEXT, '[app.browser]')}: app.browser" in message


def test_two_launchers(tmp_path: Path) -> None:
    assert "home = true" in _broken(tmp_path, "[app.cnn]\n", "[app.cnn]\nhome = true\n")


def test_sequence_follows_the_weights() -> None:
    phone = load_workload("phone-2g")
    weights = launch_weights(phone)
    assert sum(weights.values()) == pytest.approx(1)
    sequence = launch_sequence(phone, seed=3, launches=10000)
    games = sum(phone.app[x].category == "games" for x in sequence) / len(sequence)
    assert games == pytest.approx(0.185, abs=0.02)  # table 2
    assert all(a != b for a, b in zip(sequence, sequence[1:], strict=False))
    top = sorted(weights.values(), reverse=True)
    assert sum(top[:5]) > 0.4 and top[-1] < 0.02  # few favourites and a long tail


def test_an_app_without_a_share_is_not_waited_for(tmp_path: Path) -> None:
    """It was drawn for ever when an app may not come twice in a row."""
    text = re.sub(r"share_pct = \{ value = [\d.]+", "share_pct = { value = 0", TEXT)
    path = tmp_path / "none.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="none.toml.*: app: no app is ever launched"):
        load_workload(path)
    path.write_text(text.replace("share_pct = { value = 0", "share_pct = { value = 100", 1))
    one = load_workload(path)
    category = next(name for name, x in one.category.items() if x.share_pct.value)
    apps = {name for name, app in one.app.items() if app.category == category}
    change = {f"app.{name}.weight": 0 for name in sorted(apps)[1:]}
    alone = load_workload(path, change)
    assert list(launch_weights(alone)) == sorted(apps)[:1]
    assert launch_sequence(alone, seed=1, launches=3) == sorted(apps)[:1] * 3


@pytest.mark.parametrize("share", ["inf", "nan"])
def test_a_share_is_a_number(share: str, tmp_path: Path) -> None:
    old = next(x for x in TEXT.splitlines() if x.startswith("share_pct"))
    new = re.sub(r"value = [\d.]+", f"value = {share}", old)
    assert "share_pct.value: " in _broken(tmp_path, old, new)


def test_favourites_have_shares(tmp_path: Path) -> None:
    rounds = load_workload("phone-8g").rounds
    assert rounds is not None
    category = load_workload("phone-8g").app[rounds.favourites[0]].category
    with pytest.raises(UsageError, match=r"rounds\.favourites: the share of .*'s category is 0"):
        load_workload("phone-8g", {f"category.{category}.share_pct": 0})


def test_sequence_is_the_seeds() -> None:
    phone = load_workload("phone-2g")
    first = launch_sequence(phone, seed=1, launches=50)
    assert first == launch_sequence(phone, seed=1, launches=50)
    assert first == launch_sequence(phone, seed=1, launches=100)[:50]
    assert first != launch_sequence(phone, seed=2, launches=50)


def _conf(**changes: object) -> str:
    arguments = {"seed": 1, "launches": 5, "writes": [], "time": "virtual"} | changes
    return render_conf(load_workload("phone-2g"), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", workload_names())
def test_names_fit_into_the_guest(name: str) -> None:
    """It refuses one that is too long, or that JSON would have otherwise."""
    header = (paths.GUEST / "base" / "conf.h").read_text()
    rooms = re.findall(r"^struct (profile|role|program) \{\n\tchar name\[(\d+)\]", header, re.M)
    room = {kind: int(size) for kind, size in rooms}
    rooms_of = {"proc": "profile", "app": "profile", "role": "role", "program": "program"}
    workload = load_workload(name)
    launches = workload.launches.value
    text = render_conf(workload, seed=1, launches=launches, writes=[], time="virtual")
    named = [line.split(" ")[:2] for line in text.splitlines() if " " in line]
    wrong = [
        word
        for verb, word in named
        if verb in rooms_of
        and (len(word) >= room[rooms_of[verb]] or json.dumps(word) != f'"{word}"')
    ]
    assert wrong == []


def test_conf_has_all_the_guest_wants() -> None:
    """Every key of the guest's own table, no more: they must not drift apart."""
    source = (paths.GUEST / "base" / "conf.c").read_text()
    wanted = set(re.findall(r"\bSET\((\w+)\)", source)) - {"field"}
    conf = _conf(writes=[("/proc/sys/vm/swappiness", "60")])
    assert {line.split()[1] for line in conf.splitlines() if line.startswith("set ")} == wanted
    known = set(re.findall(r"\bPROF\((\w+)\)", source)) | {"home"}
    app = next(line for line in conf.splitlines() if line.startswith("app launcher"))
    assert {word.split("=")[0] for word in app.split()[2:]} <= known
    assert "write /proc/sys/vm/swappiness 60" in conf.splitlines()
    assert conf.count("\nlaunch ") == 5


def _child(tmp_path: Path, text: str, name: str = "child") -> Path:
    (tmp_path / "base.toml").write_text(TEXT)
    path = tmp_path / f"{name}.toml"
    path.write_text(f'name = "{name}"\n{text}')
    return path


def test_extends_merges_tables_key_by_key(tmp_path: Path) -> None:
    text = 'extends = "base"\n[time]\nhome_ms = { value = 7, source = "assumed" }\n'
    base, child = load_workload("phone-2g"), load_workload(_child(tmp_path, text))
    assert (child.name, child.title) == ("child", base.title)
    assert (child.time.home_ms.value, child.time.home_ms.note) == (7, "")
    assert child.time.foreground_ms == base.time.foreground_ms
    assert child.app == base.app


def test_a_child_does_not_inherit_the_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "phone-2g"\n')
    assert load_workload(path).name == "mine"
    other = path.rename(tmp_path / "a-name-that-is-too-long.toml")
    with pytest.raises(UsageError, match="the file is not called as a workload is") as error:
        load_workload(other)
    assert error.value.hint == "give it a line: name = ..."


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('extends = "nobody"', ":2: extends: no workload 'nobody'"),
        ('extends = "child"', ":2: extends: goes round in a circle"),
        ('extends = "base"\n[exit]\nprograms = 2', ":4: exit.programs"),
        ('extends = "base"\n[zygote]\ncow_kb = 2', ":4: zygote.cow_kb"),
    ],
)
def test_mistakes_of_a_child_have_its_lines(tmp_path: Path, text: str, where: str) -> None:
    path = _child(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_workload(path)
    assert f"{path}{where}" in caught.value.message


def test_a_circle_by_another_path_is_one(tmp_path: Path) -> None:
    path = _child(tmp_path, f'extends = "../{tmp_path.name}/child"')
    with pytest.raises(UsageError, match="goes round in a circle"):
        load_workload(path)


def test_numbers_can_be_changed_for_a_run() -> None:
    phone = load_workload("cpb-fig3a", {"exit.programs": 8, "machine.cpus": 4})
    assert phone.exit is not None
    assert (phone.exit.programs.value, phone.cpus) == (8, 4)
    for key in ("exit.program", "exits.programs", "title", "app.cnn"):
        with pytest.raises(UsageError, match=f"{key}: there is no such number"):
            load_workload("cpb-fig3a", {key: 1})
    with pytest.raises(UsageError, match=r"exit\.cpus: the machine has 2"):
        load_workload("cpb-fig3a", {"exit.cpus": 3})
    with pytest.raises(UsageError, match=r"scale\.tasks: the machine has 8"):
        load_workload("scale", {"scale.tasks": 9})
    with pytest.raises(UsageError, match=r"scale\.step: is less than 2"):
        load_workload("scale", {"scale.step": 1})


@pytest.mark.parametrize(
    ("workload", "key", "most"),
    [
        ("phone-2g", "machine.memory_mb", MOST_MEMORY_MB),
        ("phone-2g", "machine.image_mb", MOST_IMAGE_MB),
        ("vnode-pressure", "pressure.calm_pct", 100),
        ("phone-2g", "category.browser.trim_pct", 100),
    ],
)
def test_numbers_of_a_machine_and_parts_of_a_whole_end_somewhere(
    workload: str, key: str, most: int
) -> None:
    assert load_workload(workload, {key: most}).name == workload
    with pytest.raises(UsageError, match=f"{key}.value: .* less than or equal to {most}$"):
        load_workload(workload, {key: most + 1})


@pytest.mark.parametrize("key", ["lmkd.thrashing_pct", "category.browser.share_pct"])
def test_what_may_be_more_than_the_whole_has_no_such_end(key: str) -> None:
    """Refaults may be more than the file cache, and shares are weights."""
    assert load_workload("phone-2g", {key: 150}).name == "phone-2g"


@pytest.mark.parametrize("kind", ["exit", "throughput", "bench", "orders", "scale"])
def test_the_experiment_has_the_keys_the_guest_wants(kind: str) -> None:
    names = {"exit": "cpb-fig3a", "throughput": "cpb-throughput", "bench": "pcpa-io"}
    names |= {"scale": "scale"}
    workload = load_workload(names.get(kind, f"pcpa-{kind}"))
    conf = render_conf(workload, seed=1, launches=1, writes=[], time="virtual")
    line = next(x for x in conf.splitlines() if x.startswith("experiment "))
    source = (paths.GUEST / "base" / "conf.c").read_text()
    table = source[source.index(f"{kind}_keys[]") :].split("};")[0]
    assert line.split()[1] == kind
    assert [x.split("=")[0] for x in line.split()[2:]] == re.findall(r"EXP\((\w+)\)", table)
    assert "experiment" not in _conf()


def test_two_experiments_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "cpb-fig3a.toml").write_text((paths.WORKLOADS / "cpb-fig3a.toml").read_text())
    (tmp_path / "phone-2g.toml").write_text(TEXT)
    number = '{ value = 1, source = "assumed" }'
    path = tmp_path / "both.toml"
    path.write_text(
        'name = "both"\nextends = "cpb-fig3a"\n[throughput]\n'
        f"mb = {number}\nrounds = {number}\nquiet_ms = {number}\n"
    )
    with pytest.raises(UsageError, match="both.toml:3: throughput: there is experiment exit"):
        load_workload(path)


def test_conf_fits_the_guests_buffers() -> None:
    assert max(len(line) for line in _conf().splitlines()) < 1000


def test_real_time_waits_less() -> None:
    assert "set time_scale 1\n" in _conf()
    assert "set time_scale 1\n" not in _conf(time="real")


@pytest.mark.parametrize(
    "changes",
    [
        {"launches": 0},
        {"launches": 10**6},
        {"seed": -1},
        {"writes": [("proc/sys", "1")]},
        {"writes": [("/proc/a b", "1")]},
        {"writes": [("/proc/a", "")]},
        {"writes": [("/proc/a", "1\n2")]},
        {"writes": [("/proc/a", "x" * 200)]},
    ],
)
def test_what_the_guest_cannot_take(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        _conf(**changes)


def test_a_phone_that_swaps() -> None:
    phone = load_workload("phone-2g-zram", {"swap.zram_mb": 512})
    own = ("/proc/sys/vm/swappiness", "60")
    conf = render_conf(phone, seed=1, launches=1, writes=[own], time="virtual").splitlines()
    assert "write /sys/block/zram0/disksize 512M" in conf
    assert "swap /dev/zram0 1360" in conf
    knobs = [line for line in conf if "swappiness" in line]
    assert knobs[-1] == "write /proc/sys/vm/swappiness 60", "the policy has the last word"
    plain = render_conf(load_workload("phone-2g"), seed=1, launches=1, writes=[], time="virtual")
    assert "zram" not in plain


def test_a_phone_with_a_heap_of_other_orders() -> None:
    assert load_workload("phone-2g-order9").boot_words == ("cohort.heap_orders=9,4,0",)
    assert load_workload("phone-2g").boot_words == ()


@pytest.mark.parametrize(("old", "new"), [("100,", "201,"), ("1360,", "4090,")])
def test_a_swap_that_cannot_be(old: str, new: str, tmp_path: Path) -> None:
    text = (paths.WORKLOADS / "phone-2g-zram.toml").read_text()
    (tmp_path / "phone-2g.toml").write_text(TEXT)
    (tmp_path / "bad.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match="swap"):
        load_workload(tmp_path / "bad.toml")


def test_a_fixed_sequence_of_some_in_use_after_others_in_the_background() -> None:
    heavy = load_workload("refault-heavy")
    sequence = launch_sequence(heavy, seed=1, launches=26)
    assert sequence[20:] == ["facebook", "earth", "maps"] * 2
    assert len(set(sequence[:20])) == 20 and not set(sequence[:20]) & set(sequence[20:])
    choices = {
        tuple(load_workload("refault-heavy", {"use.combination": n}).use.chosen)  # type: ignore[union-attr]
        for n in range(35)
    }
    assert len(choices) == 35
    with pytest.raises(UsageError, match="20 are over before an app is used"):
        launch_sequence(heavy, seed=1, launches=20)
    with pytest.raises(UsageError, match="combination: there are not so many"):
        load_workload("refault-heavy", {"use.combination": 35})


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("launcher", "there is no app 'launcher' to launch"),
        ("mapz", "there is no app 'mapz' to launch; did you mean maps?"),
    ],
)
def test_an_app_in_use_is_one_that_is_launched(name: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(f'extends = "refault-heavy"\nuse.apps = ["{name}", "earth", "maps", "cnn"]\n')
    with pytest.raises(UsageError) as caught:
        load_workload(path)
    assert f"use.apps: {what}" in f"{caught.value.message}; {caught.value.hint}"


def test_caches_are_dropped_before_the_first_in_use() -> None:
    changed = {"use.drop_caches": 1, "use.again": 1, "use.background": 2, "use.in_use": 1}
    workload = load_workload("refault-heavy", changed)
    text = render_conf(workload, seed=1, launches=4, writes=[], time="virtual")
    launches = [line for line in text.splitlines() if line.startswith("launch ")]
    assert launches[0] == launches[3] == "launch earth"
    assert "set drop_caches_at 4" in text
    plain = render_conf(load_workload("phone-2g"), seed=1, launches=4, writes=[], time="virtual")
    assert "set drop_caches_at 0" in plain


def test_larger_pages_are_fewer() -> None:
    """A guest with pages of 16 KiB touches the same bytes; a page is the least of them."""
    phone = load_workload("phone-2g")

    def lines(page_size: int) -> list[str]:
        text = render_conf(
            phone, seed=1, launches=3, writes=(), time="virtual", page_size=page_size
        )
        return text.splitlines()

    small, large = lines(4096), lines(16384)
    changed = dict(zip(small, large, strict=True))
    changed = {a: b for a, b in changed.items() if a != b}
    assert changed == {
        "set burst_pages 32": "set burst_pages 8",
        "set extent_pages 4": "set extent_pages 1",
        "set gpu_piece_kb 60": "set gpu_piece_kb 48",
        "set run_pages 8": "set run_pages 2",
        "set map_cell_pages 64": "set map_cell_pages 16",
    }


@pytest.mark.parametrize(
    ("name", "key", "value", "what"),
    [
        ("phone-2g", "group.persistent.count", 250, "group: .* apps, and the guest has room for"),
        ("cpb-fig3a", "exit.programs", 17, r"exit\.programs\.value: .*less than or equal to 16"),
        ("phone-2g", "kernel_churn.pool", 100000, "pool.value: .*less than or equal to 4096"),
        ("phone-2g", "machine.cpus", 1000, "cpus.value: .*less than or equal to 8"),
        ("phone-2g", "process.systemui.adj", 99999999999, "adj.value: .*or equal to 1000"),
        ("phone-2g", "time.home_ms", 1 << 60, "home_ms.value: .*less than or equal to"),
        ("phone-2g", "category.games.piece_align_kb", 1 << 20, "align_kb is greater than piece_m"),
        ("camera", "app.camera.buf_min_mb", 5000, "app.camera: buf_min_mb is greater"),
    ],
)
def test_what_the_guest_has_no_room_for(name: str, key: str, value: int, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        load_workload(name, {key: value})


def test_the_image_has_room_for_its_files() -> None:
    spec = RunSpec(load_policy("none"), "phone-2g", change=(("machine.image_mb", 1),))
    with pytest.raises(UsageError, match=r"phone-2g: machine\.image_mb: 1 MiB are too little"):
        check_run(spec)


def test_roles_and_rounds_and_programs_are_bounded(tmp_path: Path) -> None:
    roles = [f"r{n}" for n in range(limits.MAX_ROLES + 1)]
    with pytest.raises(UsageError, match="roles: .*at most 8 items"):
        load_workload(_child(tmp_path, f'extends = "base"\nroles = {roles}\n'))
    phone = load_workload("phone-8g")
    assert phone.rounds is not None
    others = {f"app.{x}.weight": 0 for x in phone.in_rounds if x not in phone.rounds.favourites}
    phone = load_workload("phone-8g", {**others, "rounds.turns": 0})
    with pytest.raises(UsageError, match="rounds, and the guest takes 1000"):
        render_conf(phone, seed=1, launches=20000, writes=[], time="virtual")
    with pytest.raises(UsageError, match="129 writes, and the guest takes 128"):
        _conf(writes=[("/proc/a", "1")] * 129)
    bench = tmp_path / "bench.toml"
    bench.write_text(
        'name = "b"\nextends = "pcpa-io"\n[bench]\ntests = ["memory"' + ', "memory"' * 32 + "]\n"
    )
    with pytest.raises(UsageError, match="33 programs, and the guest takes 32"):
        render_conf(load_workload(bench), seed=1, launches=1, writes=[], time="virtual")


def test_the_bounds_are_the_guests() -> None:
    texts = [*paths.GUEST.rglob("*.[ch]"), paths.CONFIGS / "base.config"]
    defined = re.findall(r"^#define (MAX_\w+) (\d+)", "".join(x.read_text() for x in texts), re.M)
    ours = {name: value for name, value in vars(limits).items() if name.startswith("MAX_")}
    theirs = {name: int(value) for name, value in defined if name in ours}
    assert theirs == {x: ours[x] for x in ours if x not in ("MAX_CPUS", "MAX_ADJ", "MAX_NUMBER")}
    assert f"CONFIG_NR_CPUS={limits.MAX_CPUS}\n" in texts[-1].read_text()
