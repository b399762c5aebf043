"""What a workload file may hold.

Every number is a table {value, source, note}: `source` is "measured" or "cited", which say in the
note on what or from where, or "assumed". Units are in the keys: mb, kb, ms, us, pages, pct.
"""

import re
from collections.abc import Sequence
from itertools import combinations, islice
from math import comb
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from cohort import named
from cohort.phone import limits
from cohort.policy import MOST_MEMORY_MB

NAME = re.compile(r"[a-z][a-z0-9_-]{0,14}")
RULE = "up to 15 lower-case letters, digits, dashes and underscores, a letter first"


def _name(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError(f"must be {RULE}")
    return value


def _heap_orders(value: str) -> str:
    if not re.fullmatch(r"[1-9],[1-9],0", value):
        raise ValueError("must be three orders, the last one 0, as in 9,4,0")
    return value


Name = Annotated[str, AfterValidator(_name)]
HeapOrders = Annotated[str, AfterValidator(_heap_orders)]
MOST_IMAGE_MB = 1 << 16
"""Twenty times the largest shipped one: above it is a slip of the finger that fills a disk."""
EXPERIMENTS = ("exit", "throughput", "bench", "orders", "scale")
ProcessClass = Literal["persistent", "service", "normal"]


class Strict(BaseModel):
    """No unknown keys, no conversions, no changes; no number that is none, or has no end."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Number(Strict):
    """A number and where it comes from."""

    value: int | float
    source: Literal["measured", "cited", "assumed"]
    note: str = ""

    @model_validator(mode="after")
    def _traceable(self) -> Self:
        if self.source != "assumed" and not self.note:
            raise ValueError(f"a {self.source} number needs a note that says on what or from where")
        return self


class Adj(Number):
    """An oom_score_adj."""

    value: Annotated[int, Field(ge=-limits.MAX_ADJ, le=limits.MAX_ADJ)]


class Count(Number):
    """A whole number, zero or more."""

    value: Annotated[int, Field(ge=0, le=limits.MAX_NUMBER)]


class Positive(Number):
    """A whole number, one or more."""

    value: Annotated[int, Field(ge=1, le=limits.MAX_NUMBER)]


class Memory(Number):
    """MiB of the machine's memory, in the bounds of --memory."""

    value: Annotated[int, Field(ge=1, le=MOST_MEMORY_MB)]


class Image(Number):
    """MiB of the phone's storage."""

    value: Annotated[int, Field(ge=1, le=MOST_IMAGE_MB)]


class Percent(Number):
    """A part of a whole in percent. What may be more than the whole, or is a weight, is none: a
    heap may churn twice in a use."""

    value: Annotated[int, Field(ge=0, le=100)]


class Cpus(Number):
    """Of the machine, as many as its kernel is built for at most."""

    value: Annotated[int, Field(ge=1, le=limits.MAX_CPUS)]


class Programs(Number):
    """Programs that are started together and exit."""

    value: Annotated[int, Field(ge=1, le=limits.MAX_PROGRAMS)]


class Cell(Number):
    """Pages of a cell in a map of memory: a row of cells is 32 MiB at least."""

    value: Annotated[int, Field(ge=1, le=8192)]


class Pool(Number):
    """Kernel objects that are kept alive."""

    value: Annotated[int, Field(ge=1, le=limits.MAX_POOL)]


class Share(Number):
    """A share or a weight, zero or more, possibly with a fraction."""

    value: Annotated[int | float, Field(ge=0, le=limits.MAX_NUMBER)]


class Machine(Strict):
    """The phone's hardware, and the page orders of the pieces its buffers are made of: three that
    fall to 0, of 9 at most; without them the kernel's own."""

    memory_mb: Memory
    cpus: Cpus
    image_mb: Image
    heap_orders: HeapOrders | None = None


class Storage(Strict):
    """What a request to the flash costs: a fixed latency and its size over the bandwidth."""

    read_us: Count
    write_us: Count
    mb_per_s: Positive


class Time(Strict):
    """The rhythm of use."""

    foreground_ms: Count
    home_ms: Count
    real_scale: Positive
    launch_timeout_ms: Positive


class Faults(Strict):
    """How processes touch memory."""

    burst_pages: Positive
    think_us: Count
    extent_pages: Positive
    run_pages: Positive
    bench_mb: Positive


class Zygote(Strict):
    """The process all others are forked from."""

    heap_mb: Count
    cow_mb: Count


class System(Strict):
    """What runs besides the app in the foreground."""

    framework_mb: Positive
    services_woken: Count
    service_churn_kb: Count
    service_file_kb: Count
    service_db_writes: Count
    cached_woken: Count
    cached_churn_kb: Count
    normal_restart: Positive
    gpu_piece_kb: Positive


class KernelChurn(Strict):
    """Kernel objects that come and go with each launch."""

    forks: Count
    threads: Count
    pipes: Count
    files: Count
    pool: Pool


class Level(Strict):
    """One minfree level: below `kb` of free memory and of file cache, `adj` and above may die."""

    adj: Count
    kb: Count


class Lmkd(Strict):
    """The low memory killer."""

    mode: Literal["minfree", "psi"]
    poll_ms: Positive
    idle_ms: Positive
    psi_partial_ms: Positive
    psi_complete_ms: Positive
    thrashing_pct: Count
    level: Annotated[list[Level], Field(min_length=6, max_length=6)]


class Maps(Strict):
    """Maps of physical memory taken during a run."""

    count: Count
    cell_pages: Cell


class Process(Strict):
    """One process started at boot."""

    process_class: Annotated[ProcessClass, Field(alias="class")]
    adj: Adj
    heap_mb: Positive
    role: Name | None = None
    flood_mb: Positive | None = None
    zero_mb: Positive | None = None
    zero_every: Positive | None = None
    burn_ms: Positive | None = None

    @model_validator(mode="after")
    def _paced(self) -> Self:
        if (self.zero_mb is None) != (self.zero_every is None):
            raise ValueError("zero_mb and zero_every go together")
        return self


class Group(Process):
    """Several alike; their heaps spread from half to one and a half times `heap_mb`."""

    count: Positive


class Category(Strict):
    """What the apps of a category do in one launch."""

    share_pct: Share
    heap_mb: Positive
    heap_max_mb: Positive
    grow_mb: Count
    churn_pct: Count
    trim_pct: Percent
    code_mb: Positive
    res_mb: Positive
    cold_file_mb: Count
    warm_file_mb: Count
    buf_min_mb: Count
    buf_max_mb: Count
    piece_min_mb: Positive
    piece_max_mb: Positive
    piece_align_kb: Positive
    gpu_mb: Count
    db_writes: Count
    stream_mb: Count
    threads: Count

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for low, high in (("heap", "heap_max"), ("buf_min", "buf_max"), ("piece_min", "piece_max")):
            if getattr(self, f"{low}_mb").value > getattr(self, f"{high}_mb").value:
                raise ValueError(f"{low}_mb is greater than {high}_mb")
        if self.piece_align_kb.value > self.piece_min_mb.value * 1024:
            raise ValueError("piece_align_kb is greater than piece_min_mb")
        return self


class App(Strict):
    """An app: a category, and where it differs from it.

    Beside a camera, the `measured` apps are those that count as ordinary; without any, all do.
    """

    category: Name
    weight: Share
    heap_pct: Positive
    home: bool = False
    measured: bool = False
    role: Name | None = None
    messages: Positive | None = None
    buf_min_mb: Count | None = None
    buf_max_mb: Count | None = None
    piece_max_mb: Positive | None = None


class Swap(Strict):
    """Swap to compressed memory: a zram device of `zram_mb` (before compression).

    `noise_bytes` of each page of a heap cannot be compressed; `page_cluster` is the power of two of
    pages read at once.
    """

    zram_mb: Positive
    algorithm: Literal["lz4"]
    swappiness: Count
    page_cluster: Count
    noise_bytes: Positive

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.swappiness.value > 200:
            raise ValueError("swappiness: is more than 200")
        if self.noise_bytes.value > 4088:
            raise ValueError("noise_bytes: is more than a page less its first word")
        return self


class Pressure(Strict):
    """Memory pressure by processes with `flood_mb` or `zero_mb`, CPU time by such with `burn_ms`.

    It begins after the first `calm_pct` percent of the launches. The file that is read over and
    over is `file_mb` large. The threads that make the pressure run at `nice`, and on the last
    `cpus` CPUs only.
    """

    calm_pct: Percent
    file_mb: Positive
    nice: Count
    cpus: Positive | None = None


class Media(Strict):
    """Content that is looked at once: it fills the page cache and is not missed there.

    `scan_mb` are read after boot, `watch_mb` in each use of an app. No flash is read for it.
    """

    scan_mb: Count
    watch_mb: Count


class Camera(Strict):
    """An app whose starts are what the run is about; a launch of the run is a start of it.

    It builds `buffers_mb` in pieces of `piece_mb` from the heap the policy names, while `woken`
    other processes are at work. `first` ordinary launches age the phone before the first start,
    `between` more before each of them.
    """

    app: Name
    buffers_mb: Positive
    piece_mb: Positive
    woken: Count
    first: Count
    between: Count


class ExitExperiment(Strict):
    """Programs that touch memory side by side, then one exits. `mb` is each one's."""

    programs: Programs
    mb: Positive
    period_us: Positive
    cpus: Positive
    quiet_ms: Count


class ThroughputExperiment(Strict):
    """A worker a CPU touches `mb` and gives it back, `rounds` times."""

    mb: Positive
    rounds: Positive
    quiet_ms: Count


class OrdersExperiment(Strict):
    """A process touches `mb` in blocks of order 0, 4 and 8, each after `fill_mb` of media."""

    mb: Positive
    fill_mb: Count
    quiet_ms: Count


class ScaleExperiment(Strict):
    """1, `step`, ... up to `tasks` workers go `rounds` times through each operation on `mb`.

    With `turns`, region, cpb and neither are on in turn so often; with 0, what was booted is.
    """

    mb: Positive
    rounds: Positive
    turns: Count
    tasks: Positive
    step: Positive
    quiet_ms: Count


class Bench(Strict):
    """Programs of the distribution that run one after the other, the launches done.

    `hold_mb` of memory are taken meanwhile. Before a test that starts afresh the page cache is
    emptied and `fill_mb` of media are read. sysbench's files and fio's have `total_mb`,
    requests `block_kb`; `memory_*` are of sysbench's memory test.
    """

    tests: Annotated[list[Literal["seqrd", "rndrd", "seqwr", "memory", "fio"]], Field(min_length=1)]
    hold_mb: Count
    fill_mb: Count
    quiet_ms: Count
    total_mb: Positive
    block_kb: Positive
    read_ahead_kb: Positive
    memory_block_kb: Positive
    memory_total_mb: Positive


class Use(Strict):
    """A fixed sequence in place of drawn launches.

    First `background` apps are launched once each, then `in_use` of `apps` in turn to the end.
    Which of them is the `combination`: a number that counts all choices in the order of `apps`,
    from 0. With `drop_caches` the caches are dropped before the first of those in use, with
    `again` every app in use is launched once before all others as well.
    """

    apps: list[Name]
    in_use: Positive
    background: Count
    combination: Count
    drop_caches: Count
    again: Count

    @model_validator(mode="after")
    def _there_are_so_many(self) -> Self:
        if self.in_use.value > len(self.apps):
            raise ValueError(f"in_use: there are only {len(self.apps)} apps")
        if self.combination.value >= comb(len(self.apps), self.in_use.value):
            raise ValueError("combination: there are not so many")
        return self

    @property
    def chosen(self) -> list[str]:
        """The names of the apps in use."""
        choices = combinations(self.apps, self.in_use.value)
        return list(next(islice(choices, self.combination.value, None)))


class Rounds(Strict):
    """Launches in rounds, as device makers test: all apps in the file's order, then favourites.

    Of `favourites` there are `turns` launches, drawn by the apps' weights. The app `camera` has no
    turn of its own; it follows every `camera_every` rounds.
    """

    favourites: Annotated[list[Name], Field(min_length=2)]
    turns: Count
    camera: Name
    camera_every: Positive


class Judge(Strict):
    """Scrolling in each use of an app: `frames`, one each `frame_us`.

    A frame touches `heap_pages` of the app's heap and `file_pages` of its code and resources. With
    it are recorded available memory and major faults by the work they were met in.
    """

    frames: Positive
    frame_us: Positive
    heap_pages: Count
    file_pages: Count


class Workload(Strict):
    """A phone and how it is used. One file in `workloads/`.

    `launches` is how many a run has if the command does not say; with a camera they are its
    starts. Of the experiments, which follow the launches, there is one at most.
    """

    name: Name
    title: str
    kind: Literal["phone"]
    launches: Positive
    machine: Machine
    storage: Storage
    time: Time
    faults: Faults
    zygote: Zygote
    system: System
    kernel_churn: KernelChurn
    lmkd: Lmkd
    maps: Maps
    process: dict[Name, Process]
    group: dict[Name, Group]
    category: dict[Name, Category]
    app: dict[Name, App]
    swap: Swap | None = None
    roles: Annotated[list[Name], Field(max_length=limits.MAX_ROLES)] = []
    native_role: Name | None = None
    pressure: Pressure | None = None
    media: Media | None = None
    camera: Camera | None = None
    use: Use | None = None
    rounds: Rounds | None = None
    judge: Judge | None = None
    exit: ExitExperiment | None = None
    throughput: ThroughputExperiment | None = None
    bench: Bench | None = None
    orders: OrdersExperiment | None = None
    scale: ScaleExperiment | None = None

    @property
    def memory_mb(self) -> int:
        """RAM of the phone in MiB."""
        return self.machine.memory_mb.value

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
        return self.machine.cpus.value

    @property
    def boot_words(self) -> tuple[str, ...]:
        """What the machine adds to the kernel's command line."""
        orders = self.machine.heap_orders
        return (f"cohort.heap_orders={orders}",) if orders else ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name, app in self.app.items():
            if app.category not in self.category:
                raise ValueError(f"app.{name}: there is no category {app.category!r}")
            _check_sizes(name, app, self.category[app.category])
        if sum(app.home for app in self.app.values()) != 1:
            raise ValueError("app: exactly one app must have home = true")
        if not any(self._is_drawn(name) for name in self.app):
            raise ValueError("app: no app is ever launched")
        self._check_slots()
        self._check_roles()
        self._check_camera()
        kinds = [x for x in EXPERIMENTS if getattr(self, x) is not None]
        if len(kinds) > 1:
            raise ValueError(f"{kinds[1]}: there is experiment {kinds[0]} already")
        self._check_use()
        self._check_rounds()
        if self.exit is not None and self.exit.cpus.value > self.cpus:
            raise ValueError(f"exit.cpus: the machine has {self.cpus}")
        if self.scale is not None and self.scale.tasks.value > self.cpus:
            raise ValueError(f"scale.tasks: the machine has {self.cpus}")
        if self.scale is not None and self.scale.step.value < 2:
            raise ValueError("scale.step: is less than 2")
        return self

    def _is_drawn(self, name: str) -> bool:
        """Whether a drawn launch may be of that app."""
        app = self.app[name]
        return bool(app.weight.value and self.category[app.category].share_pct.value)

    def _check_slots(self) -> None:
        processes = len(self.process) + sum(group.count.value for group in self.group.values())
        slots = processes + len(self.app)
        if slots > limits.MAX_SLOTS:
            raise ValueError(
                f"group: {processes} processes and {len(self.app)} apps, and the guest has room"
                f" for {limits.MAX_SLOTS}"
            )

    def _check_camera(self) -> None:
        if self.camera is None:
            return
        self._check_launched("camera.app", [self.camera.app])
        if not any(self._is_drawn(name) for name in self.app if name != self.camera.app):
            raise ValueError("app: no app but the camera is ever launched")

    def _check_launched(self, key: str, names: Sequence[Name]) -> None:
        """ValueError for the first of these names that is no app's, or only the launcher's."""
        known = [x for x, app in self.app.items() if not app.home]
        if unknown := [name for name in names if name not in known]:
            near = named.near(unknown[0], known)
            hint = f"; {near}" if near else ""
            raise ValueError(f"{key}: there is no app {unknown[0]!r} to launch{hint}")

    def _check_use(self) -> None:
        if self.use is None:
            return
        self._check_launched("use.apps", self.use.apps)
        if self.use.background.value > len(self.others):
            raise ValueError(f"use.background: there are only {len(self.others)} other apps")

    def _check_rounds(self) -> None:
        if self.rounds is None:
            return
        other = "use" if self.use is not None else "camera" if self.camera is not None else None
        if other is not None:
            raise ValueError(f"rounds: there is a table {other} already")
        self._check_launched("rounds.camera", [self.rounds.camera])
        self._check_launched("rounds.favourites", self.rounds.favourites)
        if not set(self.rounds.favourites) <= set(self.in_rounds):
            raise ValueError("rounds.favourites: each needs a weight and a turn in the round")
        if missed := [x for x in self.rounds.favourites if not self._is_drawn(x)]:
            raise ValueError(f"rounds.favourites: the share of {missed[0]}'s category is 0")

    @property
    def in_rounds(self) -> list[str]:
        """The apps that have a turn in each round, in the file's order: all with a weight."""
        camera = self.rounds.camera if self.rounds is not None else None
        return [x for x, app in self.app.items() if app.weight.value and x != camera]

    @property
    def others(self) -> list[str]:
        """The apps that are not in use but may stay in the background, in the file's order."""
        chosen = self.use.chosen if self.use is not None else []
        return [name for name, app in self.app.items() if not app.home and name not in chosen]

    def _check_roles(self) -> None:
        processes = {
            **{f"process.{name}": x.role for name, x in self.process.items()},
            **{f"group.{name}": x.role for name, x in self.group.items()},
            **{f"app.{name}": x.role for name, x in self.app.items()},
        }
        if self.roles:
            processes["native_role"] = self.native_role
        for where, role in processes.items():
            if (role is not None or self.roles) and role not in self.roles:
                near = named.near(str(role), self.roles)
                hint = f"; {near}" if near else ""
                raise ValueError(f"{where}: {role!r} is not one of the roles {self.roles}{hint}")


def _check_sizes(name: str, app: App, cat: Category) -> None:
    """ValueError if what an app has of its own does not go with what its category has."""
    least, most = app.buf_min_mb or cat.buf_min_mb, app.buf_max_mb or cat.buf_max_mb
    if least.value > most.value:
        raise ValueError(f"app.{name}: buf_min_mb is greater than buf_max_mb")
    if app.piece_max_mb is not None and app.piece_max_mb.value < cat.piece_min_mb.value:
        raise ValueError(f"app.{name}: piece_max_mb is less than the category's piece_min_mb")
