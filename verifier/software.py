"""The name and version that this verifier gives itself in reports, and the digest of its source."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

SOFTWARE = "cardchain-verify 0.1.0"
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def source_sha256() -> str | None:
    """Give the SHA-256 of the source of this package, in hex; None where it cannot be read.

    It is the same from a checkout, a wheel and a zip file, and anybody can compute it:
    `find verifier -name '*.py' | LC_ALL=C sort | xargs sha256sum | sha256sum`.
    """
    try:
        files = sorted(_files() if os.path.isdir(_FOLDER) else _zipped())
    except OSError:
        return None
    lines = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files)
    return hashlib.sha256(lines.encode()).hexdigest() if lines else None


def _files() -> Iterator[tuple[str, bytes]]:
    for folder, _, names in os.walk(_FOLDER):
        inside = os.path.relpath(folder, os.path.dirname(_FOLDER)).replace(os.sep, "/")
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as stream:
                    yield f"{inside}/{name}", stream.read()


def _zipped() -> Iterator[tuple[str, bytes]]:
    """Give the files of the zip file that this package was imported from; raises OSError."""
    from zipfile import BadZipFile, ZipFile

    archive, package = os.path.split(_FOLDER)
    try:
        with ZipFile(archive) as stored:
            for name in stored.namelist():
                if name.startswith(f"{package}/") and name.endswith(".py"):
                    yield name, stored.read(name)
    except BadZipFile as error:
        raise OSError(None, str(error)) from error
