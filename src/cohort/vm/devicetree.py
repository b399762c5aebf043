"""A machine's device tree with memory reserved for GCMA, as a vendor's board has it.

The kernel's binding is Documentation/devicetree/bindings/reserved-memory/shared-dma-pool.yaml; the
property `guarantee` is of trees that have GCMA. Imports nothing outside the standard library, as
`cohort.vm.boot`.
"""

from pathlib import Path

from cohort import host
from cohort.errors import Failed

NODE = "gcma"
"""The node's name, and so that of the area and of its dma-buf heap."""
_PATH = f"/reserved-memory/{NODE}"
_ALIGN = 32 << 20
"""Bytes: a pageblock with pages of 16 KiB, which the area must begin and end with."""


def write(machine: list[str], size_mb: int, path: Path) -> None:
    """Write the tree of the machine of QEMU's arguments `machine`, with `size_mb` MiB reserved.

    `machine` begins with the program, "-M" and its machine. Failed if QEMU, or fdtput, which edits
    the tree, does not do what it is asked.
    """
    program, flag, name, *rest = machine
    _call([program, flag, f"{name},dumpdtb={path}", *rest])
    fdtput = str(host.need("fdtput"))
    _call([fdtput, "-p", "-c", str(path), _PATH])
    for kind, node, property_, values in _properties(size_mb):
        _call([fdtput, "-t", kind, str(path), node, property_, *values])


def identity(size_mb: int) -> str:
    """SHA-256 of what `write` adds to a machine's own tree."""
    return host.digest(repr(_properties(size_mb)))


def _properties(size_mb: int) -> list[tuple[str, str, str, list[str]]]:
    """Each property: the kind of its values (s a string, x 32-bit numbers), node, name, values."""
    above = _PATH.rpartition("/")[0]
    flags = ("reusable", "guarantee", "linux,cma-default")
    return [
        ("x", above, "#address-cells", ["2"]),
        ("x", above, "#size-cells", ["2"]),
        ("s", above, "ranges", []),
        ("s", _PATH, "compatible", ["shared-dma-pool"]),
        *(("s", _PATH, flag, []) for flag in flags),
        ("x", _PATH, "size", _cells(size_mb << 20)),
        ("x", _PATH, "alignment", _cells(_ALIGN)),
    ]


def _cells(number: int) -> list[str]:
    """A 64-bit number as a tree of two cells has it."""
    return [f"{number >> 32:x}", f"{number & 0xFFFFFFFF:x}"]


def _call(words: list[str]) -> None:
    done = host.run(words)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(f"{Path(words[0]).name} made no device tree: {said[0] if said else '?'}")
