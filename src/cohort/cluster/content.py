"""Files that travel to workers: packed once for each content, and the lab itself as an archive."""

import hashlib
import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from cohort import host, paths
from cohort.kept import used

LAB = Path(__file__).resolve().parents[1]
_CHUNK = 1 << 20
_LEVEL = 1  # an image of storage is a pattern: a higher level takes longer and gains nothing
_EPOCH = (2024, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Content:
    """Bytes in the form they travel in (zlib), and the SHA-256 of what they unpack to."""

    digest: str
    packed: bytes


def of_bytes(data: bytes) -> Content:
    """These bytes."""
    return Content(hashlib.sha256(data).hexdigest(), zlib.compress(data, _LEVEL))


def of_file(path: Path) -> Content:
    """A file, read in pieces. The packed form is kept under `out/cache` for the next time."""
    digest = host.digest_file(path)
    kept = paths.made("cache") / f"packed-{digest[:16]}"
    with host.lock(kept.with_suffix(".lock")):
        if not kept.is_file():
            host.write_bytes(kept, _packed(path))
    return Content(digest, used(kept).read_bytes())


def _packed(path: Path) -> bytes:
    packer = zlib.compressobj(_LEVEL)
    with path.open("rb") as file:
        pieces = [packer.compress(piece) for piece in iter(lambda: file.read(_CHUNK), b"")]
    return b"".join([*pieces, packer.flush()])


def lab() -> Content:
    """This lab's own files as a zip archive: the same files, the same bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for path in sorted(LAB.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = str(path.relative_to(LAB.parent))
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes())
    return of_bytes(whole.getvalue())
