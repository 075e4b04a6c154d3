"""Names and shapes of the tensors of a PyTorch checkpoint, without PyTorch and without unpickling.

A checkpoint's index is a pickle. Its opcodes are read and followed with stand-ins: nothing that it names is imported,
and nothing that it asks to call is called.
"""

import pickletools
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from specdec_operator.pod.errors import ProgramFailure

_LONGEST_INDEX_BYTES = 64 * 1024 * 1024
_PICKLES_BEFORE_THE_INDEX = 3  # of a checkpoint from before PyTorch 1.6: magic number, protocol, system
_DEEPEST = 6
_MARK = object()
_OPAQUE = object()
_CONSTANTS: Mapping[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}


class _Named(str):
    """Something that the pickle names: module and name, with a space between them."""

    __slots__ = ()


class _Shape(tuple[int, ...]):
    """The shape of a tensor."""

    __slots__ = ()


def read_torch_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a checkpoint's tensors; names of nested ones are joined by dots.

    Raises:
        ProgramFailure: UnreadableModel, the file is no checkpoint.
    """
    try:
        with path.open("rb") as file:
            return _flat(_index_of(file), depth=0)
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ProgramFailure(
            "UnreadableModel", f"{path} is no PyTorch checkpoint ({error}); fetch the model again"
        ) from error


def _index_of(file: BinaryIO) -> Any:
    if not zipfile.is_zipfile(file):
        file.seek(0)
        for _ in range(_PICKLES_BEFORE_THE_INDEX):
            _Reader().follow(file)
        return _Reader().follow(file)
    with zipfile.ZipFile(file) as archive:
        entry = next((info for info in archive.infolist() if info.filename.split("/")[-1] == "data.pkl"), None)
        if entry is None:
            raise ValueError("it holds no data.pkl")
        if entry.file_size > _LONGEST_INDEX_BYTES:
            raise ValueError(f"its index takes {entry.file_size} bytes")
        return _Reader().follow(archive.read(entry))


def _flat(value: Any, *, depth: int) -> dict[str, tuple[int, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: dict[str, tuple[int, ...]] = {}
    for key, item in entries:
        if isinstance(item, _Shape):
            found[str(key)] = tuple(item)
        elif depth < _DEEPEST:
            found.update({f"{key}.{name}": shape for name, shape in _flat(item, depth=depth + 1).items()})
    return found


class _Reader:
    """Follows the opcodes of one pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def follow(self, pickle: "bytes | BinaryIO") -> Any:
        """What the pickle holds, with shapes in place of tensors."""
        for opcode, argument, _ in pickletools.genops(pickle):
            handler = getattr(self, f"_on_{opcode.name.lower()}", None)
            if opcode.name == "STOP":
                break
            if handler is not None:
                handler(argument)
            elif opcode.name in _CONSTANTS:
                self._stack.append(_CONSTANTS[opcode.name])
            elif opcode.arg is not None:
                self._stack.append(argument)
            elif opcode.name not in ("PROTO", "FRAME"):
                raise ValueError(f"the opcode {opcode.name} is not expected")
        return self._stack.pop()

    def _marked(self) -> list[Any]:
        start = max(place for place, value in enumerate(self._stack) if value is _MARK)
        values = self._stack[start + 1 :]
        del self._stack[start:]
        return values

    def _pops(self, count: int) -> list[Any]:
        values = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return values

    def _on_proto(self, _: object) -> None:
        """Say nothing of the content."""

    _on_frame = _on_proto

    def _on_mark(self, _: object) -> None:
        self._stack.append(_MARK)

    def _on_empty_dict(self, _: object) -> None:
        self._stack.append({})

    def _on_empty_list(self, _: object) -> None:
        self._stack.append([])

    def _on_empty_tuple(self, _: object) -> None:
        self._stack.append(())

    def _on_empty_set(self, _: object) -> None:
        self._stack.append(_OPAQUE)

    def _on_dict(self, _: object) -> None:
        values = self._marked()
        self._stack.append(dict(zip(values[::2], values[1::2], strict=True)))

    def _on_list(self, _: object) -> None:
        self._stack.append(self._marked())

    def _on_tuple(self, _: object) -> None:
        self._stack.append(tuple(self._marked()))

    def _on_tuple1(self, _: object) -> None:
        self._stack.append(tuple(self._pops(1)))

    def _on_tuple2(self, _: object) -> None:
        self._stack.append(tuple(self._pops(2)))

    def _on_tuple3(self, _: object) -> None:
        self._stack.append(tuple(self._pops(3)))

    def _on_setitem(self, _: object) -> None:
        self._set(self._pops(2))

    def _on_setitems(self, _: object) -> None:
        self._set(self._marked())

    def _set(self, values: list[Any]) -> None:
        if isinstance(self._stack[-1], dict):
            self._stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def _on_append(self, _: object) -> None:
        self._extend(self._pops(1))

    def _on_appends(self, _: object) -> None:
        self._extend(self._marked())

    def _extend(self, values: list[Any]) -> None:
        if isinstance(self._stack[-1], list):
            self._stack[-1].extend(values)

    def _on_additems(self, _: object) -> None:
        self._marked()

    def _on_pop(self, _: object) -> None:
        self._stack.pop()

    def _on_pop_mark(self, _: object) -> None:
        self._marked()

    def _on_dup(self, _: object) -> None:
        self._stack.append(self._stack[-1])

    def _on_memoize(self, _: object) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _on_binput(self, place: int) -> None:
        self._memo[place] = self._stack[-1]

    _on_put = _on_long_binput = _on_binput

    def _on_binget(self, place: int) -> None:
        self._stack.append(self._memo[place])

    _on_get = _on_long_binget = _on_binget

    def _on_global(self, name: str) -> None:
        self._stack.append(_Named(name))

    def _on_stack_global(self, _: object) -> None:
        module, name = self._pops(2)
        self._stack.append(_Named(f"{module} {name}"))

    def _on_binpersid(self, _: object) -> None:
        self._stack[-1] = _OPAQUE

    def _on_persid(self, _: object) -> None:
        self._stack.append(_OPAQUE)

    def _on_build(self, _: object) -> None:
        self._stack.pop()

    def _on_reduce(self, _: object) -> None:
        named, arguments = self._pops(2)
        self._stack.append(_result_of(named, arguments))

    _on_newobj = _on_reduce

    def _on_newobj_ex(self, _: object) -> None:
        named, arguments, _options = self._pops(3)
        self._stack.append(_result_of(named, arguments))


def _result_of(named: object, arguments: Any) -> Any:
    """What a call would yield, as far as shapes need it."""
    if not isinstance(named, _Named):
        return _OPAQUE
    if named in ("torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor"):
        return _Shape(int(length) for length in arguments[2])
    if named == "torch._utils _rebuild_parameter":
        return arguments[0]
    if named == "collections OrderedDict":
        return dict(arguments[0]) if arguments else {}
    return _OPAQUE
