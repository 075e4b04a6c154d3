"""The pieces of a sentencepiece model: the protobuf's first field, read without protobuf."""

from collections.abc import Iterator

_PIECE = 1
_FIRST_TAG = b"\x0a"  # the pieces come first
_TEXT = 1
_VARINT, _EIGHT_BYTES, _COUNTED, _FOUR_BYTES = 0, 1, 2, 5


def begins_with_pieces(content: bytes) -> bool:
    """Whether a file is a sentencepiece model, or the beginning of one."""
    return content.startswith(_FIRST_TAG)


def read_pieces(content: bytes) -> list[str]:
    """The texts of the pieces, in the order of their numbers.

    Raises:
        ValueError: It is no sentencepiece model, or not the whole of one.
    """
    pieces = [_text(value) for field, value in _fields(content) if field == _PIECE]
    if not pieces:
        raise ValueError("it holds no pieces")
    return pieces


def _text(piece: bytes) -> str:
    for field, value in _fields(piece):
        if field == _TEXT:
            return value.decode("utf-8")
    return ""


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that are counted bytes; numbers are passed over."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == _VARINT:
            _, place = _varint(message, place)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            place += 8 if kind == _EIGHT_BYTES else 4
        elif kind == _COUNTED:
            length, place = _varint(message, place)
            if place + length > len(message):
                raise ValueError("it is cut short")
            yield tag >> 3, message[place : place + length]
            place += length
        else:
            raise ValueError(f"it is no protobuf: wire type {kind}")


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("it is cut short")
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("it is no protobuf: a number without end")
