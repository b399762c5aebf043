"""The patches as `git am` and a carrier read them: an author, a reason, signed off, maintained."""

import re
from fnmatch import fnmatch

import pytest

from cohort.kernel import overlay

SERIES = overlay.load_series()
MAIL = re.compile(
    r"From: (?P<author>[^\n]+ <\S+@\S+>)\n"
    r"Subject: [^\n:]+: [^\n]+\n"
    r"\n(?P<why>\S.*)\n"
    r"\nSigned-off-by: (?P<signer>[^\n]+)",
    re.DOTALL,
)
ENTRY = (SERIES.patches / "0015-maintainers-add-cohort.patch").read_text()


@pytest.mark.parametrize("name", SERIES.names)
def test_a_patch_is_a_mail_that_its_author_signed_off(name: str) -> None:
    head = (SERIES.patches / name).read_text().partition("\n---\n")[0]
    mail = MAIL.fullmatch(head)
    assert mail, f"{name} has no From:, Subject:, reason and Signed-off-by:, or another order"
    assert mail["signer"] == mail["author"]


def test_every_new_file_has_a_maintainer() -> None:
    """And every pattern of the entry has a file, in the order that checkpatch wants."""
    patterns = re.findall(r"^\+F:\t(\S+)$", ENTRY, re.MULTILINE)
    files = [str(file) for file in SERIES.files]
    assert patterns == sorted(patterns)
    assert [x for x in files if not any(claims(pattern, x) for pattern in patterns)] == []
    assert [x for x in patterns if not any(claims(x, file) for file in files)] == []


def claims(pattern: str, file: str) -> bool:
    """Whether a pattern of MAINTAINERS means the file; one that ends in a slash has all below."""
    return file.startswith(pattern) if pattern.endswith("/") else fnmatch(file, pattern)
