"""Images of a prompt, from a file of cases: read, checked, and made into what is sent."""

import base64
import binascii
import stat
from pathlib import Path

from rating.errors import DataError

MOST_BYTES = 5_000_000
"""Of an image: less than any endpoint takes that takes images."""
MOST_IMAGES = 10
"""Of a prompt."""
LONGEST_ADDRESS = 2000
_BEGINS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""How files of the kinds that endpoints take begin."""
_DATA, _HTTPS = "data:", "https://"


def read_image(value: str, folder: Path | None) -> str:
    """Give an image as it is sent: an address by https as it stands, else a ``data:`` URL.

    Parameters
    ----------
    value : str
        A path, a ``data:`` URL in base64, or an address by https.
    folder : Path or None
        In which a path is looked for, and which it may not leave: who wrote the cases may not have
        a file of another folder sent away. None takes no path.

    Raises
    ------
    DataError
        If it is none of these, no PNG, JPEG, GIF or WebP, or too large.

    Examples
    --------
    >>> read_image("https://example.org/cat.png", None)
    'https://example.org/cat.png'
    """
    if value.startswith(_HTTPS):
        if len(value) > LONGEST_ADDRESS or any(char.isspace() for char in value):
            msg = f"an address is one word of at most {LONGEST_ADDRESS:,} characters"
            raise DataError(f"{msg}, not {value[:60]!r}.")
        return value
    if value.startswith(_DATA):
        return _checked(_decoded(value), value[:40])
    if "://" in value:
        raise DataError(f"an address is by https, not {value[:60]!r}.")
    if folder is None:
        raise DataError(
            f"{value[:60]!r} is a path, and these cases lie in no single folder: give a data: URL "
            "or an address by https."
        )
    return _checked(_in_folder(value, folder), value[:60])


def _decoded(url: str) -> bytes:
    head, _, body = url.partition(",")
    if not head.endswith(";base64"):
        raise DataError(f"a data: URL of an image is in base64, not {url[:40]!r}.")
    if len(body) > MOST_BYTES * 4 / 3 + 4:
        raise DataError(_too_large(url[:40]))
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise DataError(f"{url[:40]!r} is no base64: {error}.") from error


def _in_folder(value: str, folder: Path) -> bytes:
    """Read a file below a folder; a link that leads out of it is out of it."""
    try:
        path = (folder / value).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise DataError(
                f"{value[:60]!r} lies outside of the folder of the cases: move it there."
            )
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise DataError(f"{value[:60]!r} is no file.")
        if about.st_size > MOST_BYTES:
            raise DataError(_too_large(value[:60]))
        return path.read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {value[:60]!r}: {reason}.") from error


def _checked(data: bytes, name: str) -> str:
    """Make a ``data:`` URL of an image, whose kind its first bytes tell."""
    if len(data) > MOST_BYTES:
        raise DataError(_too_large(name))
    kind = next((kind for kind, begin in _BEGINS.items() if data.startswith(begin)), None)
    if kind is None or (kind == "image/webp" and data[8:12] != b"WEBP"):
        raise DataError(f"{name!r} is no PNG, JPEG, GIF or WebP.")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _too_large(name: str) -> str:
    return f"{name!r} is larger than {MOST_BYTES:,} bytes: make it smaller."
