"""Files: text is read with a limit on its size; all is written whole or not at all."""

from __future__ import annotations

import codecs
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foreplan.errors import InputError
from foreplan.quantities import shortened

MAX_BYTES = 1 << 30  # 1 GiB: no workflow needs more, and /dev/zero has no end
_CHUNK = 1 << 22
_STANDARD = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}  # what is open already, by its name
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")


@contextmanager
def in_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors raised inside name this file."""
    try:
        yield
    except InputError as error:
        raise error.in_file(printable(path)) from None


def printable(path: str | os.PathLike[str]) -> str:
    """A path as text; its bytes need not be UTF-8."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")


def unencodable(error: UnicodeEncodeError) -> str:
    """Return what to do about a name of a file that cannot be encoded."""
    wrong = ascii(error.object[error.start : error.end])
    if error.encoding.lower() == "utf-8":  # a byte of a name that is not UTF-8
        return f"{wrong} is not text: rename the file"
    return (
        f"this locale ({error.encoding}) cannot encode {wrong}: use one with UTF-8, such as "
        "LC_ALL=C.UTF-8"
    )


def is_stdin(path: str | os.PathLike[str] | None) -> bool:
    """Whether reading this path is reading standard input."""
    return path is not None and os.fspath(path) == "-"


def label(path: str | os.PathLike[str]) -> str:
    """A file that is read, as messages name it."""
    return "standard input" if is_stdin(path) else printable(path)


def near(path: Path) -> str:
    """A path from here, if it is below."""
    try:
        return os.fspath(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or this directory is gone
        return os.fspath(path)


def clean(text: str) -> str:
    """Text of others, for a terminal: it must not move the cursor or change the colours."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def one_line(text: str, longest: int = 60) -> str:
    """A name of others in a line of ours: clean, without breaks, and without its middle if long."""
    return shortened(" ".join(clean(text).split()), longest)


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, a byte order mark left out; `-` is standard input."""
    with in_file(label(path)):
        try:
            raw = _read_bytes(Path(path))
        except ValueError:  # a zero byte in the path
            raise InputError("this is not a path") from None
        except OSError as error:
            raise InputError(f"cannot read it: {_reason(error)}") from None
        return decode(raw)


def _read_bytes(path: Path) -> bytes:
    chunks: list[bytes] = []
    total = 0
    with open(0, "rb", closefd=False) if is_stdin(path) else path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise _too_large()
        while chunk := file.read(_CHUNK):
            total += len(chunk)
            if total > MAX_BYTES:
                raise _too_large()
            chunks.append(chunk)
    return b"".join(chunks)


def _too_large() -> InputError:
    return InputError(f"the file is too large: more than {MAX_BYTES:,} bytes")


def decode(raw: bytes) -> str:
    """UTF-8 bytes as text; the error says where they are broken."""
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        skipped = len(codecs.BOM_UTF8) if raw.startswith(codecs.BOM_UTF8) else 0
        offset = error.start + skipped
        raise InputError(
            f"this is not UTF-8 text: {error.reason} (0x{raw[offset]:02x})",
            place=f"byte {offset}",
        ) from None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file whole: an error leaves the old one as it was."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole: an error leaves the old one as it was. `-` is standard output."""
    with in_file(path):
        try:
            if (descriptor := _descriptor(path)) is not None:
                _put(descriptor, content)
            elif _is_special(Path(path)):
                Path(path).write_bytes(content)
            else:
                _replace(Path(os.path.realpath(path)), content)
        except ValueError:
            raise InputError("this is not a path") from None
        except BrokenPipeError:
            raise  # the reader has seen enough
        except OSError as error:
            raise InputError(f"cannot write it: {_reason(error)}") from None


def is_stdout(path: str | os.PathLike[str] | None) -> bool:
    """Whether writing to this path is writing to standard output, so that nothing else may."""
    return path is not None and _descriptor(path) == 1


def output_label(path: str | os.PathLike[str]) -> str:
    """Return the name of a file that is written, for a message."""
    return "standard output" if is_stdout(path) else printable(path)


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """The open descriptor that a path names; the file behind it is not ours to replace."""
    text = os.fspath(path)
    if found := _DESCRIPTOR.fullmatch(text):
        return int(found[1])
    return _STANDARD.get(text)


def _put(descriptor: int, content: bytes) -> None:
    """Write where the descriptor stands, after what was printed before."""
    sys.stdout.flush()
    sys.stderr.flush()
    if descriptor == 1 and (buffer := getattr(sys.stdout, "buffer", None)) is not None:
        buffer.write(content)
        buffer.flush()
        return
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)


def _is_special(path: Path) -> bool:
    """Whether it is a pipe or a device: only a regular file can be replaced."""
    return path.exists() and not path.is_file()


def _replace(target: Path, content: bytes) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # the name keeps clear of the limit on the length of a name
    temporary = target.with_name(f".{target.name[:20]}.{os.urandom(6).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _reason(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "there is no such file or directory"
        case IsADirectoryError():
            return "it is a directory"
        case PermissionError():
            return "permission denied"
    return error.strerror or type(error).__name__
