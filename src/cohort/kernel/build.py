"""Builds kernels out of tree, each once for the same content.

A build directory lives on, so an edit in the overlay recompiles what it touches and no more. What
is booted is a copy, named by its content: another build, meanwhile, does not change it.
"""

import logging
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cohort import host, paths
from cohort.errors import BuildError, UsageError
from cohort.kept import is_gone, remove, used
from cohort.kernel import config, identity, overlay, source
from cohort.log import Update
from cohort.units import LARGE_PAGE, PAGE

log = logging.getLogger(__name__)

FEATURE = "mm/cohort"
"""Where most of Cohort is in a tree."""
# What a build from nothing prints, about: there is no way to ask make beforehand.
STEPS = 1760
PAGES_16K = "pages16k"  # the fragment that makes pages of 16 KiB
ERROR_LINES = 12
CACHED_CC = Path(__file__).with_name("cached_cc.sh")
"""The compiler's cache in front of a compiler."""
KEPT_S = 7 * 86400.0
"""How long a copy stays that no command asks for: longer than any command runs."""


@dataclass(frozen=True)
class Arch:
    """What the kernel's build calls a machine; `cross` is in front of its compiler's name."""

    name: str
    make: str
    target: str
    image: str
    cross: str = ""

    @property
    def cc(self) -> str:
        """Its compiler."""
        return f"{self.cross}gcc"


ARCHES = {
    "x86_64": Arch("x86_64", "x86_64", "bzImage", "arch/x86/boot/bzImage"),
    "arm64": Arch("arm64", "arm64", "Image", "arch/arm64/boot/Image", "aarch64-linux-gnu-"),
}


# Fragments on top of the base, the machine's and the lab's own (the storage). `stock` is the same
# tree without CONFIG_COHORT; the debug kernel has the KUnit suites too, which spares a build; "up"
# and "rt" are for these alone, on one CPU and with PREEMPT_RT.
VARIANTS: dict[str, tuple[str, ...]] = {
    "stock": (),
    "cohort": ("cohort",),
    "order9": ("cohort", "order9"),
    "gcma": ("cohort", "android", "gcma", "nowerror"),
    "debug": ("cohort", "debug", "kunit"),
    "races": ("cohort", "races"),
    "lockstat": ("cohort", "lockstat"),
    "up": ("cohort", "kunit", "up"),
    "rt": ("cohort", "kunit", "rt"),
}


@dataclass(frozen=True)
class KernelSpec:
    """Which kernel: fragments (in order), machine, and a source tree other than the default."""

    configs: tuple[str, ...]
    arch: str = "x86_64"
    tree: Path | None = None

    @classmethod
    def variant(
        cls, name: str, arch: str = "x86_64", tree: Path | None = None, page_size: int = PAGE
    ) -> "KernelSpec":
        """One of VARIANTS, for that machine and its pages in bytes; or UsageError."""
        if name not in VARIANTS:
            raise UsageError(f"no kernel variant {name}", f"there are: {', '.join(VARIANTS)}")
        if name == "order9" and arch != "x86_64":
            raise UsageError(
                f"there is no kernel {name} for {arch}, where the largest block is the machine's",
                'take a policy without kernel = "order9", or --arch x86_64',
            )
        if name == "gcma" and (arch != "arm64" or tree is None):
            raise UsageError(
                "GCMA needs a tree that has it, and a machine whose device tree tells of the area",
                f"cohort run gcma --arch arm64 --tree {tree or 'DIR'}",
            )
        if page_size != PAGE and arch != "arm64":
            raise UsageError(
                f"pages of {arch} have {PAGE} bytes, not {page_size}",
                "--arch arm64 --page-size 16k",
            )
        pages = () if page_size == PAGE else (PAGES_16K,)
        return cls(("base", arch, *pages, "lab", *VARIANTS[name]), arch, tree)

    @classmethod
    def from_fragments(cls, text: str, tree: Path | None = None) -> "KernelSpec":
        """From `base,x86_64,lab,cohort`: the machine is the fragment that is named like one."""
        names = tuple(text.split(","))
        machines = [name for name in names if name in ARCHES]
        if not machines:
            raise UsageError(f"the fragments {text} name no machine", _machine_hint(text))
        if len(machines) > 1:
            what = f"the fragments {text} name a machine {len(machines)} times"
            raise UsageError(what, f"one of {', '.join(ARCHES)}, once")
        return cls(names, machines[0], tree)

    @property
    def has_cohort(self) -> bool:
        """Whether Cohort is built in."""
        return "cohort" in self.configs

    @property
    def page_size(self) -> int:
        """Bytes of a page of its machine."""
        return LARGE_PAGE if PAGES_16K in self.configs else PAGE

    @property
    def name(self) -> str:
        """What its build directory is called."""
        foreign = "" if self.tree is None else "-" + host.digest(str(self.tree.resolve()))[:8]
        return "-".join(self.configs) + foreign


@dataclass(frozen=True)
class Kernel:
    """A kernel that was built. `id` is by the image's content, `tree_id` says of what sources: of
    the distribution's release and the overlay, or of a tree of the user's as `identity` has it.

    `image` and `config` stay what they are; `directory`, where it was built, is the next build's.
    """

    image: Path
    config: Path
    release: str
    id: str
    tree_id: str
    arch: str
    directory: Path = Path()


def _machine_hint(text: str) -> str:
    """What to say instead of fragments without a machine. UsageError if they are the name of a
    variant that the default tree has not."""
    of_variant = KernelSpec.variant(text if text in VARIANTS else "cohort").configs
    meant = f"{text} is" if text in VARIANTS else "such as"
    return f"fragments with {' or '.join(ARCHES)} among them: {meant} {','.join(of_variant)}"


def find_arch(name: str) -> Arch:
    """The machine by its name, or UsageError."""
    if name not in ARCHES:
        raise UsageError(f"no machine {name}", f"there are: {', '.join(ARCHES)}")
    return ARCHES[name]


def build(spec: KernelSpec, update: Update) -> Kernel:
    """The kernel of `spec`, built if anything it is made of changed.

    The default tree is fetched and brought up to this overlay; a tree of the user's is taken as
    it is, and always offered to make, as only make knows what was edited in it.
    """
    arch = find_arch(spec.arch)
    requests = config.merge(spec.configs)
    with prepared_tree(spec.tree, update) as (tree, tree_id), ExitStack() as held:
        check_patched(tree, requests)
        # Not before: a directory in which nothing was built is one that `clean` does not know.
        out = paths.made("kernel", spec.name)
        held.enter_context(host.lock(out / "build.lock"))
        content = host.digest(tree_id, config.render(requests), host.version(arch.cc), arch.name)
        stamp = out / "cohort.stamp"
        image = out / arch.image
        current = stamp.is_file() and image.is_file() and stamp.read_text() == content
        if not current or spec.tree is not None:
            stamp.unlink(missing_ok=True)
            configure(tree, out, arch, requests)
            make([*make_command(tree, out, arch), arch.target], out, update)
            host.write_text(stamp, content)
        release = (out / "include/config/kernel.release").read_text().strip()
        image_id = host.digest_file(image)
        kept = _keep(image_id, image, out / ".config")
        used(out)
    return Kernel(kept / image.name, kept / "config", release, image_id, tree_id, arch.name, out)


def check_patched(tree: Path, requests: dict[str, config.Request]) -> None:
    """UsageError for a tree without Cohort, where the configuration asks for it."""
    asked = requests.get("CONFIG_COHORT")
    if asked is not None and asked.value != "n" and not (tree / FEATURE).is_dir():
        raise UsageError(
            f"{tree} has no Cohort, which {asked.where} asks for",
            f"cohort kernel patch --tree {tree}",
        )


def _keep(image_id: str, image: Path, configuration: Path) -> Path:
    """The directory with copies of both, made once for their content; old ones are removed."""
    images = paths.made("kernel", "images")
    kept = images / host.digest(image_id, configuration.read_bytes())[:16]
    with host.lock(images.with_suffix(".lock")):
        if not kept.is_dir():
            part = images / "part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            # No links: make writes into the files that are there.
            shutil.copyfile(image, part / image.name)
            shutil.copyfile(configuration, part / "config")
            part.replace(kept)
        used(kept)
        for other in images.iterdir():
            if not is_gone(other) and other.stat().st_mtime < time.time() - KEPT_S:
                remove(other)
    return kept


@contextmanager
def held_tree(tree: Path, *, own: bool, shared: bool) -> Iterator[None]:
    """Hold a source tree, the user's own or the fetched one: shared to read it, alone to change it.
    UsageError for one that is none."""
    source.read_release(tree)
    with ExitStack() as held:
        if not own:
            # One more than the tree's own lock, as a newer source takes the place of the directory.
            held.enter_context(host.lock(paths.made("kernel") / "tree.lock", shared=shared))
        held.enter_context(host.lock_directory(tree, shared=shared))
        yield


@contextmanager
def prepared_tree(own: Path | None, update: Update) -> Iterator[tuple[Path, str]]:
    """The source tree and its id, unchanged as long as it is held: the user's own as it is, or the
    fetched one with this overlay.

    Kernels of several variants are built from it at a time; it is brought up to date alone.
    """
    if own is not None:
        tree = source.for_make(own)
        with held_tree(tree, own=True, shared=True):
            yield tree, host.digest(str(source.read_release(tree)), identity.identify(tree))
        return
    tree = source.fetch(update)
    while True:
        with held_tree(tree, own=False, shared=True):
            if overlay.applied_id(tree) == overlay.load_series().id:
                yield tree, host.digest(str(source.read_release(tree)), overlay.load_series().id)
                return
        with held_tree(tree, own=False, shared=False):
            overlay.apply(tree)


def environment() -> dict[str, str]:
    """Make's. ccache sees paths relative to `out/kernel/`: what one clone compiled all find."""
    return {"CCACHE_BASEDIR": str(paths.made("kernel")), **host.environment()}


def tools(arch: Arch) -> tuple[str, ...]:
    """What a kernel's build calls."""
    return ("make", "gcc", arch.cc, f"{arch.cross}ld", "flex", "bison", "bc", "perl")


def make_command(tree: Path, out: Path, arch: Arch) -> list[str]:
    """Make without its targets; MissingTool for what it would miss half way."""
    cc = f"sh {CACHED_CC} {arch.cc}" if host.find("ccache") else arch.cc
    host.need_all(tools(arch))
    return [
        *(str(host.need("make")), "-C", str(tree), f"O={out}", f"ARCH={arch.make}", f"CC={cc}"),
        *([f"CROSS_COMPILE={arch.cross}"] if arch.cross else []),
        # The image is the same for the same sources, on any machine, at any time, however often.
        *("KBUILD_BUILD_TIMESTAMP=2024-01-01", "KBUILD_BUILD_VERSION=1"),
        *("KBUILD_BUILD_USER=cohort", "KBUILD_BUILD_HOST=lab", "LOCALVERSION="),
    ]


def configure(tree: Path, out: Path, arch: Arch, requests: dict[str, config.Request]) -> None:
    """Write `out/.config`; BuildError if a line of `requests` did not land."""
    wanted = out / "cohort.config"
    host.write_text(wanted, config.render(requests))
    make_config(
        [*make_command(tree, out, arch), f"KCONFIG_ALLCONFIG={wanted}", "allnoconfig"],
        out,
        requests,
    )


def make_config(command: list[str], out: Path, requests: dict[str, config.Request]) -> None:
    """Have make finish `out/.config`; BuildError if it fails, or a request did not land."""
    done = host.run(command, env=environment())
    if done.returncode != 0:
        lines = done.stderr.splitlines()[-ERROR_LINES:]
        raise BuildError("kernel configuration failed:\n  " + "\n  ".join(lines))
    config.verify(requests, (out / ".config").read_text())


def make(command: list[str], out: Path, update: Update, steps: int = STEPS) -> None:
    """Run make on all CPUs, its output in build.log and counted for the progress: about `steps`
    lines where nothing was built before. BuildError with the first lines that say what is wrong.
    """
    fresh = not (out / "vmlinux").is_file()
    command = [*command, f"-j{host.cpus()}"]
    done = 0
    journal = out / "build.log"
    with (
        journal.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            encoding="utf-8",
            errors="replace",
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                file.write(line)
                done += line.startswith("  ")
                update(min(done, steps - 1), steps if fresh else 0)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise BuildError(explain(journal), _disk_hint(out))
    update(max(done, 1), max(done, 1))


def explain(journal: Path) -> str:
    """The first lines of a build log that say what is wrong."""
    lines = journal.read_text(errors="replace").splitlines()
    errors = [x for x in lines if "error:" in x or "Error " in x or "undefined reference" in x]
    shown = (errors or lines)[:ERROR_LINES]
    return "\n  ".join([f"the kernel does not build (all of it in {journal}):", *shown])


def _disk_hint(out: Path) -> str | None:
    free = shutil.disk_usage(out).free >> 20
    return f"only {free} MiB are free on the disk" if free < 512 else None
