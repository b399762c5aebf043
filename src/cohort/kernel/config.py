"""Kernel configurations out of fragments: merged, and checked that every line landed."""

import re
from dataclasses import dataclass
from pathlib import Path

from cohort import named, paths
from cohort.errors import BuildError, UsageError

LINE = re.compile(r"^(?:(CONFIG_\w+)=(.+)|# (CONFIG_\w+) is not set)$")


@dataclass(frozen=True)
class Request:
    """One line of a fragment; value "n" for "is not set"."""

    value: str
    where: str


def read(path: Path) -> str:
    """A configuration of the user's own; UsageError for a file that is no text in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not UTF-8 text: {error}", "iconv -f latin1 -t utf-8 makes it such"
        ) from error


def parse(text: str, name: str) -> dict[str, Request]:
    """The symbols a fragment asks for; UsageError names the line that is no request."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = LINE.match(line.strip())
        if match:
            found[match[1] or match[3]] = Request(match[2] or "n", f"{name}:{number}")
        elif line.strip() and not line.lstrip().startswith("#"):
            raise UsageError(f"{name}:{number}: not a configuration line: {line.strip()}")
    return found


def merge(names: tuple[str, ...], where: Path = paths.CONFIGS) -> dict[str, Request]:
    """The named fragments together; a later one overrides an earlier one."""
    merged: dict[str, Request] = {}
    for name in names:
        path = where / f"{name}.config"
        if not path.is_file():
            known = sorted(x.stem for x in where.glob("*.config"))
            raise UsageError(
                f"no configuration fragment {name}", named.hint(name, known, "there are")
            )
        merged |= parse(path.read_text(), f"{where.name}/{path.name}")
    return merged


def render(requests: dict[str, Request]) -> str:
    """The merged fragment as kconfig reads it."""
    lines = [
        f"# {symbol} is not set" if request.value == "n" else f"{symbol}={request.value}"
        for symbol, request in sorted(requests.items())
    ]
    return "\n".join(lines) + "\n"


def verify(requests: dict[str, Request], config: str) -> None:
    """BuildError listing every requested line the kernel's own rules turned into another."""
    real = parse(config, ".config")
    wrong = []
    for symbol, request in sorted(requests.items()):
        got = real[symbol].value if symbol in real else "n"
        if got != request.value:
            wrong.append(f"{request.where}: {symbol}={request.value} became {got}")
    if wrong:
        raise BuildError(
            "the kernel did not take these configuration lines:\n  " + "\n  ".join(wrong),
            "a symbol it depends on is missing from the fragments, or the name is wrong",
        )
