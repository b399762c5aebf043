"""The library that keeps QEMU's main loop out of a deterministic run (see steady.c)."""

from pathlib import Path

from cohort import host, paths
from cohort.errors import BuildError
from cohort.kept import used

SOURCE = Path(__file__).with_name("steady.c")
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")


def identity() -> str:
    """SHA-256 of what the library does to a run, whichever compiler makes it."""
    return host.digest(SOURCE.read_bytes(), *FLAGS)


def library() -> Path:
    """The library, compiled once for each content; BuildError if it does not compile."""
    gcc = host.need("gcc")
    key = host.digest(identity(), host.version("gcc"))[:16]
    made = paths.made("cache") / f"steady-{key}.so"
    if not made.is_file():
        with host.lock(made.with_suffix(".lock")):
            if not made.is_file():
                _compile(gcc, made)
    return used(made)


def _compile(gcc: Path, made: Path) -> None:
    part = made.with_suffix(".part")
    done = host.run([gcc, *FLAGS, "-o", part, SOURCE, "-ldl"])
    if done.returncode != 0:
        raise BuildError(f"{SOURCE.name} does not compile:\n{done.stderr}")
    part.replace(made)
