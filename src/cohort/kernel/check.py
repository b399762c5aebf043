"""Compiles what the patches touch on a tree that stays as it is.

The patched files and the overlay are put beside links to everything else of the tree, under
`out/kernel`; make sees one source tree and writes into a directory of its own. Compiled are the
files that the patches change, if the configuration has them, and all of `mm/cohort`.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cohort import host, paths
from cohort.errors import BuildError, UsageError
from cohort.kept import used
from cohort.kernel import build, config, overlay, source
from cohort.kernel.build import FEATURE, Arch, KernelSpec
from cohort.kernel.overlay import Series
from cohort.log import Update

# What a build inside the tree leaves, with which make refuses one outside of it.
BUILT = ("include/config", "include/generated", ".config", ".tmp_versions")
GENERATED = re.compile(r"arch/\w+/include/generated")
OPTION = re.compile(r"\$\((CONFIG_\w+)\)")
BRANCH = re.compile(r"(ifeq|ifneq|ifdef|ifndef|else|endif)\b")
ERRORS = 12  # lines of make's that are shown


@dataclass(frozen=True)
class Compiled:
    """What was compiled beside mm/cohort, by make's names, and the files that the configuration
    leaves out."""

    objects: tuple[str, ...]
    left_out: tuple[str, ...]


def compile_touched(tree: Path, fragments: str, update: Update) -> Compiled:
    """Compile on `tree` what Cohort's patches touch, for these fragments of configs/, or for a file
    to begin with (a `.config`) and Cohort's own fragment. BuildError with what the compiler says.
    """
    tree = source.for_make(tree)
    spec, own = _wanted(fragments)
    arch = build.find_arch(spec.arch)
    place = paths.made("kernel", f"check-{host.digest(str(tree))[:8]}")
    out = place / f"{spec.name}{'-own' if own else ''}"
    out.mkdir(exist_ok=True)
    with host.lock(used(place) / "check.lock"):
        series = overlay.load_series()
        texts, _ = overlay.patched(tree, series)
        mirror = _mirror(tree, place / "tree", series, texts)
        _configure(mirror, out, arch, spec, own)
        options = config.parse((out / ".config").read_text(), ".config")
        on = {name for name, request in options.items() if request.value in ("y", "m")}
        sources = sorted(name for name in texts if name.endswith(".c"))
        kept = [name for name in sources if _is_built(mirror, name, on)]
        left_out = [name for name in sources if name not in kept]
        objects = [f"{name.removesuffix('.c')}.o" for name in kept]
        _make(mirror, out, arch, [*objects, f"{FEATURE}/"], update)
    return Compiled(tuple(objects), tuple(left_out))


def _wanted(fragments: str) -> tuple[KernelSpec, Path | None]:
    """Which kernel is meant, and the file its configuration begins with."""
    path = Path(fragments)
    if not path.is_file():
        return KernelSpec.from_fragments(fragments), None
    text = path.read_text(errors="replace")
    named = [arch for arch in build.ARCHES if f"CONFIG_{arch.upper()}=y" in text]
    if len(named) != 1:
        raise UsageError(f"{path} is for none of: {', '.join(build.ARCHES)}")
    return KernelSpec(("cohort",), named[0]), path


def _mirror(tree: Path, into: Path, series: Series, texts: Mapping[str, Sequence[str]]) -> Path:
    """A directory that looks like the tree with Cohort on it."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    state = overlay.read_state(tree)
    ours = {str(file) for file in series.files} | set(state.made if state else ())
    _link(tree.resolve(), into, "", {*texts, *ours})
    overlay.stage(tree, into, series, texts)
    return into


def _link(tree: Path, into: Path, at: str, replaced: set[str]) -> None:
    """Links for what is in one directory of the tree; a directory with something that is replaced
    is made, so that what is relative to a file leads into the mirror."""
    for entry in os.scandir(tree / at):
        name = f"{at}{entry.name}"
        if name in replaced or name in BUILT or entry.name == overlay.STATE:
            continue
        below = any(x.startswith(f"{name}/") for x in (*replaced, *BUILT))
        if entry.is_dir(follow_symlinks=False) and (below or _has_generated(name)):
            (into / name).mkdir()
            _link(tree, into, f"{name}/", replaced)
        elif not GENERATED.fullmatch(name):
            (into / name).symlink_to(tree / name)


def _has_generated(name: str) -> bool:
    """Whether a build inside the tree leaves something below this directory."""
    return re.fullmatch(r"arch(/\w+(/include)?)?", name) is not None


def _configure(mirror: Path, out: Path, arch: Arch, spec: KernelSpec, own: Path | None) -> None:
    """Write `.config`; BuildError if a line did not land. On a configuration of the user's own,
    Cohort itself has to: what it depends on for its parts is the user's choice."""
    requests = config.merge(spec.configs)
    if own is None:
        build.configure(mirror, out, arch, requests)
        return
    host.write_text(out / ".config", config.read(own) + config.render(requests))
    done = host.run(
        [*build.make_command(mirror, out, arch), "olddefconfig"], env=build.environment()
    )
    if done.returncode != 0:
        lines = done.stderr.splitlines()[-ERRORS:]
        raise BuildError("kernel configuration failed:\n  " + "\n  ".join(lines))
    needed = {name: request for name, request in requests.items() if name == "CONFIG_COHORT"}
    config.verify(needed, (out / ".config").read_text())


def _is_built(tree: Path, name: str, on: set[str]) -> bool:
    """Whether a kernel with these options has the object of this file, by the Makefile beside it:
    the option of the line that names it, or those of the branches around the line."""
    word = re.compile(rf"(?<![\w./-]){re.escape(Path(name).stem)}\.o\b")
    lines = (tree / name).with_name("Makefile").read_text().replace("\\\n", " ").splitlines()
    found = [
        (*around, *OPTION.findall(line.partition("=")[0]))
        for line, around in _branches(lines)
        if word.search(line)
    ]
    return not found or any(set(options) <= on for options in found)


def _branches(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each line of a Makefile that is no branch, with the options of the branches it is in."""
    around: list[list[str]] = []
    for line in lines:
        word = BRANCH.match(line.strip())
        if word is None:
            yield line, [option for options in around for option in options]
        elif word[1] == "endif":
            around.pop()
        elif word[1] == "else":
            around[-1] = []
        else:
            means_on = word[1] in ("ifeq", "ifdef")
            around.append(re.findall(r"CONFIG_\w+", line) if means_on else [])


def _make(mirror: Path, out: Path, arch: Arch, targets: Sequence[str], update: Update) -> None:
    """Compile; BuildError with the first lines that say what is wrong."""
    command = [*build.make_command(mirror, out, arch), f"-j{host.cpus()}"]
    log = out / "check.log"
    steps = (
        (["prepare"], "make cannot begin: the lines above tell what this machine lacks for it"),
        (targets, "the patches fit, but what they call is not what this tree has"),
    )
    for number, (part, hint) in enumerate(steps):
        update(number, len(steps))
        done = host.run([*command, *part], env=build.environment())
        log.write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            raise BuildError(build.explain(log), hint)
    update(len(steps), len(steps))
