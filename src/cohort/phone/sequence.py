"""What is launched when.

The sequence comes from the seed and the workload alone, so all policies replay the same launches.
"""

from collections.abc import Iterator
from itertools import count, cycle, islice

from cohort.errors import UsageError
from cohort.phone.schema import Rounds, Use, Workload

MASK = (1 << 64) - 1


def _splitmix(state: int) -> Iterator[int]:
    """splitmix64: 64-bit numbers, the same on every machine and Python version."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def launch_weights(workload: Workload) -> dict[str, float]:
    """Each launched app's share of the launches (they add up to 1), the camera left out. A draw may
    wait for one without a share for ever, so it has none of those."""
    camera = workload.camera.app if workload.camera is not None else None
    apps = {name: app for name, app in workload.app.items() if name != camera}
    sums: dict[str, float] = {}
    for app in apps.values():
        sums[app.category] = sums.get(app.category, 0) + app.weight.value
    weights = {
        name: workload.category[app.category].share_pct.value
        * app.weight.value
        / sums[app.category]
        for name, app in apps.items()
        if app.weight.value and workload.category[app.category].share_pct.value
    }
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def all_launches(workload: Workload, launches: int) -> int:
    """How many apps a run launches. With a camera `launches` counts its starts alone."""
    camera = workload.camera
    if camera is None:
        return launches
    return camera.first.value + launches * (camera.between.value + 1)


def most_launches(workload: Workload, total: int) -> int:
    """The most launches of a run, starts of a camera if it has one, that are no more than `total`
    in all."""
    camera = workload.camera
    if camera is None:
        return total
    return (total - camera.first.value) // (camera.between.value + 1)


def launch_sequence(workload: Workload, *, seed: int, launches: int) -> list[str]:
    """App names in launch order; the same app never twice in a row (if there is another).

    With a camera there are ordinary apps first, and then some between its `launches` starts.
    """
    camera = workload.camera
    if camera is None:
        return _ordinary(workload, seed, launches)
    between, first = camera.between.value, camera.first.value
    apps = _ordinary(workload, seed, first + launches * between)
    sequence = apps[:first]
    for start in range(launches):
        at = first + start * between
        sequence += [*apps[at : at + between], camera.app]
    return sequence


def _ordinary(workload: Workload, seed: int, launches: int) -> list[str]:
    """App names in launch order; the same app never twice in a row (if there is another)."""
    if workload.use is not None:
        return _use_sequence(workload, workload.use, launches)
    if workload.rounds is not None:
        return list(islice(_in_rounds(workload, workload.rounds, seed), launches))
    return list(islice(_drawn(launch_weights(workload), _splitmix(seed)), launches))


def _drawn(weights: dict[str, float], draws: Iterator[int], last: str = "") -> Iterator[str]:
    """Apps by their weights, without end; `last` came before them."""
    while True:
        app = _at(weights, next(draws) / 2**64)
        if len(weights) == 1 or last != app:
            yield app
            last = app


def _in_rounds(workload: Workload, rounds: Rounds, seed: int) -> Iterator[str]:
    """All apps in the file's order, some favourites by their weights, now and then the camera."""
    draws, everything = _splitmix(seed), workload.in_rounds
    weights = launch_weights(workload)
    total = sum(weights[name] for name in rounds.favourites)
    shares = {name: weights[name] / total for name in rounds.favourites}
    for number in count(1):
        yield from everything
        yield from islice(_drawn(shares, draws, everything[-1]), rounds.turns.value)
        if number % rounds.camera_every.value == 0:
            yield rounds.camera


def rounds_end(workload: Workload, launches: int) -> set[int]:
    """The launches, from 1, with which all apps had their turn in a round."""
    rounds, at = workload.rounds, 0
    ends: set[int] = set()
    if rounds is None:
        return set()
    for number in count(1):
        at += len(workload.in_rounds)
        if at > launches:
            return ends
        ends.add(at)
        at += rounds.turns.value + (number % rounds.camera_every.value == 0)
    return ends


def _use_sequence(workload: Workload, use: Use, launches: int) -> list[str]:
    """Those in the background, then those in use in turn."""
    first = [*(use.chosen if use.again.value else []), *workload.others[: use.background.value]]
    if launches <= len(first):
        raise UsageError(f"launches: {launches} are over before an app is used after {len(first)}")
    return [*first, *islice(cycle(use.chosen), launches - len(first))]


def _at(weights: dict[str, float], point: float) -> str:
    for name, weight in weights.items():
        point -= weight
        if point < 0:
            return name
    return name
