"""CBOR, read strictly: one form for each value, everything else is refused (spec §3.1).

`decode` accepts only the deterministic encoding of RFC 8949 §4.2.1 and the types of the format.
`skip` finds the end of any well-formed item, so that a record in a wrong form still has an end.
"""

from __future__ import annotations

from typing import Any

MAX_NESTING = 16  # a record needs 4
MAX_ITEMS = 32  # in one item that is skipped: the openings of a record are at most 15


class Truncated(Exception):
    """The bytes end inside an item; `needed` is the position up to which it reaches at least."""

    def __init__(self, needed: int) -> None:
        """Name the position up to which bytes are needed."""
        super().__init__(f"needs bytes up to {needed}")
        self.needed = needed


class NotWellFormed(Exception):
    """The bytes are no CBOR item at all."""


class NotDeterministic(Exception):
    """The item is not in its one deterministic form, or of a type that the format does not use."""


def head(major: int, value: int) -> bytes:
    """Encode the first byte and the argument of an item in the shortest form."""
    if value < 24:
        return bytes((major << 5 | value,))
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 1 << 8 * size:
            return bytes((major << 5 | info,)) + value.to_bytes(size, "big")
    raise ValueError(f"integer over 64 bits: {value}")


def uint(value: int) -> bytes:
    """Encode an unsigned integer; quicker than `head` for the sizes that are common."""
    if value < 24:
        return bytes((value,))
    if value < 256:
        return b"\x18" + value.to_bytes(1, "big")
    if value < 65536:
        return b"\x19" + value.to_bytes(2, "big")
    if value < 1 << 32:
        return b"\x1a" + value.to_bytes(4, "big")
    return b"\x1b" + value.to_bytes(8, "big")


def text(value: str) -> bytes:
    """Encode a text string."""
    data = value.encode()
    return head(3, len(data)) + data


def decode(data: bytes) -> Any:
    """Decode exactly one item in deterministic form, with nothing after it.

    Gives int, bytes, str, list, dict, bool and None. Raises NotDeterministic.
    """
    try:
        value, end = decode_item(data, 0, 0)
    except IndexError:
        raise NotDeterministic("the bytes end inside an item") from None
    if end != len(data):
        raise NotDeterministic(f"{len(data) - end} bytes after the item")
    return value


def decode_item(data: bytes, pos: int, depth: int) -> tuple[Any, int]:
    """Decode one item at `pos`; give it and the position after it.

    Raises NotDeterministic, and IndexError where the bytes end inside the item.
    """
    first = data[pos]
    pos += 1
    major = first >> 5
    value = first & 31
    if major == 7:
        return _simple(value), pos
    if value > 23:
        value, pos = _argument(data, pos, value)
    if major < 2:
        return (value if major == 0 else -1 - value), pos
    if major < 4:
        end = pos + value
        if end > len(data):
            raise IndexError
        chunk = data[pos:end]
        return (chunk if major == 2 else _text(chunk)), end
    if major == 6:
        raise NotDeterministic("a tag inside the record")
    if depth == MAX_NESTING:
        raise NotDeterministic(f"nesting deeper than {MAX_NESTING}")
    if value > len(data):
        raise IndexError
    return _array(data, pos, value, depth + 1) if major == 4 else _map(data, pos, value, depth + 1)


def decode_head(data: bytes, pos: int) -> tuple[int, int, int]:
    """Decode the head of an item: give its major type, its argument and the position after it.

    Raises NotDeterministic, and IndexError where the bytes end inside it.
    """
    major, value = data[pos] >> 5, data[pos] & 31
    return (major, value, pos + 1) if value < 24 else (major, *_argument(data, pos + 1, value))


def _array(data: bytes, pos: int, count: int, depth: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(count):
        item, pos = decode_item(data, pos, depth)
        items.append(item)
    return items, pos


def _map(data: bytes, pos: int, count: int, depth: int) -> tuple[dict[Any, Any], int]:
    """Decode a map; short text and digests, which are most of a record, without a call each."""
    members: dict[Any, Any] = {}
    previous = b""
    for _ in range(count):
        start = pos
        first = data[pos]
        if 0x60 < first < 0x78:
            pos += first - 0x5F
            encoded = data[start:pos]
            key: Any = _text(encoded[1:])
        else:
            key, pos = decode_item(data, pos, depth)
            encoded = data[start:pos]
            if type(key) is list or type(key) is dict:
                raise NotDeterministic("a map key that is an array or a map")
        if encoded <= previous:
            raise NotDeterministic("map keys unsorted or repeated")
        previous = encoded
        first = data[pos]
        if 0x60 < first < 0x78:
            start = pos + 1
            pos += first - 0x5F
            members[key] = _text(data[start:pos])
        elif first == 0x58 and data[pos + 1] == 0x20:
            start = pos + 2
            pos += 34
            members[key] = data[start:pos]
        else:
            members[key], pos = decode_item(data, pos, depth)
    if pos > len(data):
        raise IndexError
    return members, pos


def _text(chunk: bytes) -> str:
    try:
        return chunk.decode()
    except UnicodeDecodeError:
        raise NotDeterministic("text that is not UTF-8") from None


def _simple(info: int) -> bool | None:
    if info == 20:
        return False
    if info == 21:
        return True
    if info == 22:
        return None
    if info in (25, 26, 27):
        raise NotDeterministic("a float")
    raise NotDeterministic("a simple value other than true, false and null")


def _argument(data: bytes, pos: int, info: int) -> tuple[int, int]:
    if info > 27:
        raise NotDeterministic("an indefinite or reserved length")
    size = 1 << info - 24
    end = pos + size
    if end > len(data):
        raise IndexError
    value = int.from_bytes(data[pos:end], "big")
    if value < (24, 1 << 8, 1 << 16, 1 << 32)[info - 24]:
        raise NotDeterministic("an integer or length not in its shortest form")
    return value, end


def skip(data: bytes, pos: int) -> int:
    """Give the position after the well-formed item at `pos`, in whatever form it stands.

    Raises Truncated where the bytes end inside the item, NotWellFormed where it is none.
    """
    pending = [1]  # items still to come at each level; -1 counts up to a break
    budget = MAX_ITEMS
    while pending:
        if pending[-1] == 0:
            pending.pop()
            continue
        budget -= 1
        if budget < 0:
            raise NotWellFormed(f"more than {MAX_ITEMS} items")
        if pos >= len(data):
            raise Truncated(pos + 1)
        first = data[pos]
        if first == 0xFF and pending[-1] < 0 and len(pending) > 1:
            pending.pop()
            pos += 1
            continue
        if pending[-1] > 0:
            pending[-1] -= 1
        pos = _skip_head(data, pos, first, pending)
    return pos


def _skip_head(data: bytes, pos: int, first: int, pending: list[int]) -> int:
    major, info = first >> 5, first & 31
    pos += 1
    if info == 31 and 2 <= major <= 5:
        pending.append(-1)
        return pos
    if info > 27:
        raise NotWellFormed("a reserved length")
    value = info
    if info > 23:
        end = pos + (1 << info - 24)
        if end > len(data):
            raise Truncated(end)
        value, pos = int.from_bytes(data[pos:end], "big"), end
    if major in (2, 3):
        if pos + value > len(data):
            raise Truncated(pos + value)
        return pos + value
    if major in (4, 5):
        pending.append(value * (major - 3))
    elif major == 6:
        pending.append(1)
    return pos
