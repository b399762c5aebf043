"""Packages of the patched kernel, of the distribution's configuration with Cohort built in.

The kernel's own `bindeb-pkg` makes them: an image, and headers for modules of others.
"""

import lzma
import re
from dataclasses import dataclass
from pathlib import Path

from cohort import host, named, paths
from cohort.errors import MissingTool, UsageError
from cohort.kept import used
from cohort.kernel import build, config, source
from cohort.log import Update

CONFIGS = Path(f"/usr/src/linux-config-{source.SERIES}")
"""Where the distribution's package puts its configurations, one a flavour."""
NAMED = re.compile(r"config\.(?P<arch>[^_]+)_(?P<set>[^_]+)_(?P<flavour>.+)\.xz")
FRAGMENTS = ("cohort", "deb")
CERTIFICATE = "CONFIG_SYSTEM_TRUSTED_KEYS"
"""The distribution has one built in; a configuration without a keyring has no such line."""
STEPS = 29_000
"""What a build of the distribution's whole configuration prints, about."""
TOOLS = ("dpkg-buildpackage", "dh", "rsync", "depmod", "cpio")
"""What bindeb-pkg calls."""


@dataclass(frozen=True)
class Packages:
    """The packages that were made, and the release of the kernel in them."""

    release: str
    files: tuple[Path, ...]


def flavours(where: Path = CONFIGS) -> dict[str, Path]:
    """The distribution's configurations by name: `amd64`, `cloud-amd64`, `rt-amd64`."""
    found = {}
    for path in sorted(where.glob("config.*.xz")):
        if match := NAMED.fullmatch(path.name):
            own = "" if match["set"] == "none" else f"{match['set']}-"
            found[f"{own}{match['flavour']}"] = path
    return found


def base_config(name: str, where: Path = CONFIGS) -> str:
    """The text of a flavour's configuration, or of the file `name`.

    Raises MissingTool where the distribution's package is missing, UsageError for an unknown name.
    """
    if Path(name).is_file():
        return config.read(Path(name))
    known = flavours(where)
    if not known:
        raise MissingTool(
            f"the distribution's configurations are not in {where}",
            f"apt-get install {where.name}, or name a .config: --config FILE",
        )
    if name not in known:
        hint = named.hint(name, known, "there are")
        raise UsageError(f"no file and no configuration of the distribution: {name}", hint)
    return lzma.decompress(known[name].read_bytes()).decode()


def loaded_modules(lsmod: Path) -> Path:
    """The file as an absolute path, if it is what lsmod prints; else UsageError."""
    lines = lsmod.read_text(errors="replace").splitlines() if lsmod.is_file() else []
    if not lines or lines[0].split()[:1] != ["Module"]:
        raise UsageError(f"not the output of lsmod: {lsmod}", f"lsmod > {lsmod.name}")
    return lsmod.resolve()


def build_packages(
    name: str,
    tree: Path | None,
    revision: int,
    update: Update,
    where: Path = CONFIGS,
    lsmod: Path | None = None,
) -> Packages:
    """Build the packages of the configuration `name` in a directory of out/kernel/deb, in which
    those of an earlier call with the same `name`, `tree` and `lsmod` are replaced.

    With `lsmod` only the modules in that list are built (localmodconfig of the kernel's build).
    Raises UsageError for a name, a list or a tree that is none, MissingTool for what bindeb-pkg
    would miss half way, BuildError if a line of FRAGMENTS did not land or the build fails.
    """
    text = base_config(name, where)
    loaded = loaded_modules(lsmod) if lsmod else None
    requests = config.merge(FRAGMENTS)
    if CERTIFICATE not in config.parse(text, name):
        del requests[CERTIFICATE]
    if tree is not None:
        source.read_release(tree)
        build.check_patched(tree, requests)
    arch = build.find_arch("x86_64")
    host.need_all((*TOOLS, *build.tools(arch)))
    home = paths.made("kernel", "deb", _directory(name, tree, loaded))
    out = paths.made("kernel", "deb", home.name, "build")
    with (
        build.prepared_tree(tree, update) as (source_tree, _),
        host.lock(used(home) / "build.lock"),
    ):
        for old in home.glob("*.deb"):
            old.unlink()
        command = build.make_command(source_tree, out, arch)
        if loaded:
            host.write_text(out / ".config", text)
            build.make_config([*command, "olddefconfig"], out, {})
            build.make_config([*command, f"LSMOD={loaded}", "localmodconfig"], out, {})
            text = (out / ".config").read_text()
        # What the tree does not know of the base is dropped.
        host.write_text(out / ".config", text + config.render(requests))
        build.make_config([*command, "olddefconfig"], out, requests)
        version = f"{source.read_release(source_tree)}-{revision}"
        build.make([*command, f"KDEB_PKGVERSION={version}", "bindeb-pkg"], out, update, STEPS)
    release = (out / "include/config/kernel.release").read_text().strip()
    return Packages(release, tuple(sorted(home.glob("*.deb"))))


def _directory(name: str, tree: Path | None, loaded: Path | None) -> str:
    """The name of the directory: of a flavour of the distribution its own, with a digest of where
    they are if files of the user's are of the matter. Two of these may be called alike."""
    plain = re.sub(r"\W+", "-", Path(name).name).strip("-")
    own = [Path(name) if Path(name).is_file() else None, tree, loaded]
    if not any(own):
        return plain
    return f"{plain}-{host.digest(*(str(x.resolve()) if x else '' for x in own))[:8]}"
