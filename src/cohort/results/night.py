"""Colours for a dark page: what each colour of the pictures becomes there."""

import re
from collections.abc import Iterable

from matplotlib.colors import to_hex, to_rgb

PAPER, INK = "#ffffff", "#222222"
NIGHT_PAPER, NIGHT_INK = "#15181c", "#e4e4e0"

CONTRAST = 3.5
"""A line stands out from the page by at least this; WCAG asks for 3 of a picture's parts."""

_GREY = 0.06  # colours whose channels differ by less have no hue to keep
_PALE, _DARK = 0.75, 0.3
_STYLED = re.compile(r"(?:fill|stroke): (#[0-9a-f]{6})")


def by_night(colour: str) -> str:
    """The colour on a dark page: paper and ink change places, others become light enough."""
    rgb = to_rgb(colour)
    level = sum(rgb) / 3
    if max(rgb) - min(rgb) < _GREY and not _DARK < level < _PALE:
        return _mix(NIGHT_INK, NIGHT_PAPER, level)
    share = 0.0
    while contrast(mixed := _mix(colour, "#ffffff", share), NIGHT_PAPER) < CONTRAST:
        share += 0.05
    return mixed


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two colours, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def colours_of(pictures: Iterable[str]) -> list[str]:
    """Every colour that the shapes of these SVG pictures have, sorted."""
    return sorted({colour for svg in pictures for colour in _STYLED.findall(svg)})


def _mix(one: str, other: str, share: float) -> str:
    pairs = zip(to_rgb(one), to_rgb(other), strict=True)
    red, green, blue = (a + (b - a) * share for a, b in pairs)
    return to_hex((red, green, blue))


def _luminance(colour: str) -> float:
    linear = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in to_rgb(colour))
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
