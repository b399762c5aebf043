"""Are the schemes on that a run asks for? The booted kernel says so itself.

`cohort.switches` refuses what no kernel would take. The rest depends on the machine: whether an
area's memory could be emptied, whether Cohort is compiled in at all. A kernel with a scheme that
stays off goes on booting, so the guest's first record tells what Cohort's control files say, and
the run ends here if that is not what its command line asks for.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort import switches
from cohort.errors import WrongPolicy
from cohort.vm import guest

SCHEMES = ("region", "cpb", "rightsize")
FILES = {
    "cohort.region_order": "region/order",
    "cohort.cpb_order": "cpb/order",
    "cohort.cpb_refill": "cpb/refill",
    "cohort.pcpa_min_order": "pcpa/min_order",
    "cohort.pcpa_timer_ms": "pcpa/timer_ms",
    "cohort.vnode": "vnode/layout",
    "cohort.vnode_default": "vnode/default",
}
"""Parameters whose value the kernel shows again, below /sys/kernel/mm/cohort."""
OFF = "0"
_LOG_LINES = 6
_NO_NEWS = ("ommand line: ", "Linux version ")
"""Lines of the kernel's log that have the name in them and tell nothing."""


class Switched:
    """Watches a guest's records for what its kernel says of the switches in `words`.

    `policy` is what messages call the run; `console` has the kernel's log.
    """

    def __init__(self, policy: str, words: Sequence[str], console: Path) -> None:
        self._policy = policy
        self._words = words
        self._console = console
        self._heard = False

    def watch(self, line: str) -> None:
        """Take one record line. WrongPolicy if the kernel says that a scheme is not as asked."""
        if not line.startswith('{"r":"switches"'):
            return
        self._heard = True
        if wrong := differences(self._words, json.loads(line)):
            raise self._error(f"{', '.join(wrong)}, after a boot with {self._asked()}")

    def finish(self) -> None:
        """WrongPolicy if the guest has ended without a word of its kernel."""
        if not self._heard:
            raise self._error("the guest did not tell what the kernel made of its switches")

    def _asked(self) -> str:
        given = [word for word in self._words if switches.is_cohorts(word)]
        return " ".join(given) or "no switch of Cohort's"

    def _error(self, what: str) -> WrongPolicy:
        console = guest.console_lines(self._console)
        log = [x for x in console if "cohort" in x and not any(word in x for word in _NO_NEWS)]
        said = "; ".join(log[:_LOG_LINES]) or "nothing about Cohort"
        return WrongPolicy(
            f"this is no run of policy {self._policy}: {what}\nthe kernel's log says: {said}"
        )


def wanted(words: Sequence[str]) -> dict[str, str]:
    """What Cohort's files must say after a boot with these words."""
    given = switches.values(words)
    on = given.get("cohort", "off").split(",")
    files = {f"{scheme}/enabled": "1" if scheme in on else OFF for scheme in SCHEMES}
    size, base = switches.area(given.get("cohort.pcpa", "")) or (0, None)
    files["pcpa/size"] = str(size)
    if base is not None:
        files["pcpa/base"] = str(base)
    size, _ = switches.area(given.get("cohort.pcpa_contig", "")) or (0, None)
    files["pcpa/contig_size"] = str(size)
    if below := switches.area(given.get(switches.BELOW, "")):
        files["pcpa/below"] = str(below[0])
    return files | {file: given[name] for name, file in FILES.items() if name in given}


def differences(words: Sequence[str], record: Mapping[str, Any]) -> list[str]:
    """What the kernel, by the guest's record, says otherwise than these words ask for."""
    said: dict[str, str] = record["files"]
    wrong = [
        f"{file} is {said.get(file, 'absent')}, not {value}"
        for file, value in wanted(words).items()
        if said.get(file, OFF) != value
    ]
    if "vnode/layout" in said and "cohort.vnode" not in switches.values(words):
        wrong.append(f"vnode/layout is {said['vnode/layout']}, not absent")
    if record["sra"] != ("cohort.sra" in switches.values(words)):
        wrong.append(f"a static reserve is {'there' if record['sra'] else 'not there'}")
    return wrong
