"""Names and shapes of the tensors of a PyTorch checkpoint, without PyTorch.

A checkpoint's index is a pickle. The standard library's unpickler follows it, in its Python form, with stand-ins: what
it names is not imported, and what it asks to call is not called. It gets no more steps and bytes than an index needs.
"""

import io
import pickle
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from specdec_operator.pod.reading import reading

_MOST_BYTES = 16 * 1024 * 1024
"""Of a pickle, and of an archive's directory: some 50,000 tensors in one file."""
_MOST_STEPS = 1_000_000
_MOST_ENTRIES = 1_000_000
"""Entries that are looked at; one whose name is long counts several times."""
_NAME_CHARACTERS = 16
_LONGEST_KEY = 1024
_LONGEST_NUMBER = 32
_MOST_ARGUMENTS = 64
_LARGEST = 2**63
_PICKLES_BEFORE_THE_INDEX = 3  # of a checkpoint from before PyTorch 1.6: magic number, protocol, system
_DEEPEST = 6
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # PyTorch writes the first, and reads both
_SHAPED = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3")

_Unpickler: Any = pickle._Unpickler  # noqa: SLF001 - the module's own Python form, whose steps can be counted
Opcode = Callable[["_IndexReader"], None]


class _Shape(tuple[int, ...]):
    """The shape of a tensor."""

    __slots__ = ()


class _Opaque:
    """Whatever else a pickle makes; takes what is put into it and keeps nothing."""

    def append(self, _item: object) -> None:
        """Keep nothing."""

    extend = add = append

    def __setitem__(self, _key: object, _value: object) -> None:
        """Keep nothing."""


class _Dictionary(dict[Any, Any]):
    """A dictionary of what has a name: other keys could take for ever to hash."""

    def __setitem__(self, key: object, value: object) -> None:
        if isinstance(key, str) and len(key) > _LONGEST_KEY:
            raise ValueError(f"one of its names has {len(key)} characters")
        if isinstance(key, str) or (isinstance(key, int) and -_LARGEST < key < _LARGEST):
            super().__setitem__(key, value)


def read_torch_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a checkpoint's tensors; names of nested ones are joined by dots.

    Raises:
        ProgramFailure: UnreadableModel, the file is no checkpoint.
    """
    with reading(path, "PyTorch checkpoint"), _BoundedFile(path) as file:
        found: dict[str, tuple[int, ...]] = {}
        _collect(_index_of(file), "", found, left=_Allowance(_MOST_ENTRIES, "entries"))
        return found


def _index_of(file: "_BoundedFile") -> Any:
    if zipfile.is_zipfile(file):
        return _IndexReader(io.BytesIO(_archived_index(file))).load()
    file.seek(0)
    content = file.read(_MOST_BYTES)
    if content.startswith(b"PK"):
        raise ValueError("it is cut short: an archive's directory comes last, and is not there")
    pickles = io.BytesIO(content)
    for _ in range(_PICKLES_BEFORE_THE_INDEX):
        _IndexReader(pickles).load()
    return _IndexReader(pickles).load()


def _archived_index(file: "_BoundedFile") -> bytes:
    with zipfile.ZipFile(file) as archive:
        entry = next((info for info in archive.infolist() if info.filename.split("/")[-1] == "data.pkl"), None)
        if entry is None:
            raise ValueError("it holds no data.pkl")
        if entry.compress_type not in _METHODS:
            raise ValueError(f"its index is packed with method {entry.compress_type}, which PyTorch does not read")
        with archive.open(entry) as index:
            content = index.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"its index takes more than {_MOST_BYTES} bytes")
    return content


def _collect(
    value: object, prefix: str, found: dict[str, tuple[int, ...]], *, left: "_Allowance", depth: int = 0
) -> None:
    """Add the shapes below a value; one that is referred to often is looked at as often, while the allowance lasts."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        left.spend(1)
        if isinstance(item, _Shape):
            name = f"{prefix}{key}"
            left.spend(len(name) // _NAME_CHARACTERS)
            found[name] = tuple(item)
        elif depth < _DEEPEST and isinstance(item, (dict, list)):
            _collect(item, f"{prefix}{key}.", found, left=left, depth=depth + 1)


class _Allowance:
    """How much of something may be used up."""

    def __init__(self, most: int, what: str) -> None:
        self._left = self._most = most
        self._what = what

    def spend(self, count: int) -> None:
        """Use some up.

        Raises:
            ValueError: There is no more.
        """
        self._left -= count
        if self._left < 0:
            raise ValueError(f"its index takes more than {self._most} {self._what}")


class _BoundedFile(io.FileIO):
    """A file of which no more than an index is read at once, whatever a length in it says."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MOST_BYTES:
            raise ValueError(f"it asks to read {size} bytes at once")
        return super().read(_MOST_BYTES if size is None or size < 0 else size) or b""


class _Opcodes(dict[int, Opcode]):
    """What a checkpoint's index is made of; each look-up is a step."""

    def __init__(self, known: Mapping[int, Opcode], steps: _Allowance) -> None:
        super().__init__(known)
        self._steps = steps

    def __getitem__(self, code: int) -> Opcode:
        self._steps.spend(1)
        return super().__getitem__(code)

    def __missing__(self, code: int) -> Opcode:
        raise ValueError(f"it has the opcode {code:#x}, which checkpoints don't use")


class _IndexReader(_Unpickler):  # type: ignore[misc] # not in the stubs with its methods
    """Follows one pickle."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, encoding="utf-8")
        self._steps = _Allowance(_MOST_STEPS, "steps")
        self.dispatch = _Opcodes(_KNOWN, self._steps)

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """The stand-in for what the pickle names; nothing is imported."""
        if module_name == "torch._utils" and global_name in _SHAPED:
            return _shape
        if module_name == "torch._utils" and global_name.startswith("_rebuild_parameter"):
            return _first
        return self._ordered if f"{module_name}.{global_name}" == "collections.OrderedDict" else _opaque

    def persistent_load(self, _pid: object) -> Any:
        """A storage: only the tensors in it have shapes."""
        return _Opaque()

    def _ordered(self, entries: Iterable[Any] = (), *_others: object) -> _Dictionary:
        pairs = list(entries) if isinstance(entries, (list, tuple)) else []
        self._steps.spend(len(pairs))
        found = _Dictionary()
        for key, value in pairs:
            found[key] = value
        return found

    def call(self, count: int) -> None:
        """Put what a call would yield in place of what is called and its `count` arguments, of which one is a tuple."""
        arguments = self.stack[-count]
        if not isinstance(arguments, tuple) or len(arguments) > _MOST_ARGUMENTS:
            raise ValueError("it makes a call that checkpoints don't make")
        called = self.stack[-count - 1]
        del self.stack[-count - 1 :]
        self.stack.append(called(*arguments) if called in (_shape, _first, self._ordered) else _Opaque())

    def put_number(self) -> None:
        """Put the number that a line says: protocol 1 writes True and False so."""
        line = self.readline()
        if len(line) > _LONGEST_NUMBER:
            raise ValueError("one of its numbers is too long")
        self.append(int(line))

    def put_opaque(self) -> None:
        """Put one stand-in in place of what lies above the mark."""
        self.pop_mark()
        self.append(_Opaque())

    def put_dictionary(self) -> None:
        """Put a dictionary in place of the keys and values above the mark."""
        items = self.pop_mark()
        found = _Dictionary()
        for key, value in zip(items[::2], items[1::2], strict=True):
            found[key] = value
        self.append(found)


def _shape(_storage: object, _offset: object, size: object, *_others: object) -> _Shape:
    lengths = size if isinstance(size, (tuple, list)) else ()
    if len(lengths) > _MOST_ARGUMENTS or not all(isinstance(n, int) and 0 <= n < _LARGEST for n in lengths):
        raise ValueError("one of its tensors has a shape that can't be")
    return _Shape(int(length) for length in lengths)


def _first(first: object, *_others: object) -> object:
    return first


def _opaque(*_arguments: object) -> _Opaque:
    return _Opaque()


_AS_THEY_ARE = (
    pickle.PROTO + pickle.FRAME + pickle.STOP + pickle.MARK + pickle.POP + pickle.POP_MARK + pickle.DUP
    + pickle.NONE + pickle.NEWTRUE + pickle.NEWFALSE + pickle.BININT + pickle.BININT1 + pickle.BININT2
    + pickle.LONG1 + pickle.LONG4 + pickle.BINFLOAT + pickle.BINSTRING + pickle.SHORT_BINSTRING
    + pickle.BINBYTES + pickle.SHORT_BINBYTES + pickle.BINUNICODE + pickle.SHORT_BINUNICODE
    + pickle.BINPUT + pickle.LONG_BINPUT + pickle.MEMOIZE + pickle.BINGET + pickle.LONG_BINGET
    + pickle.EMPTY_LIST + pickle.LIST + pickle.APPEND + pickle.APPENDS
    + pickle.EMPTY_TUPLE + pickle.TUPLE + pickle.TUPLE1 + pickle.TUPLE2 + pickle.TUPLE3
    + pickle.SETITEM + pickle.SETITEMS + pickle.GLOBAL + pickle.STACK_GLOBAL + pickle.BINPERSID + pickle.ADDITEMS
)  # fmt: skip
_KNOWN: Mapping[int, Opcode] = {
    **{code: _Unpickler.dispatch[code] for code in _AS_THEY_ARE},
    pickle.INT[0]: _IndexReader.put_number,
    pickle.EMPTY_DICT[0]: lambda reader: reader.append(_Dictionary()),
    pickle.DICT[0]: _IndexReader.put_dictionary,
    pickle.EMPTY_SET[0]: lambda reader: reader.append(_Opaque()),
    pickle.FROZENSET[0]: _IndexReader.put_opaque,
    pickle.BUILD[0]: lambda reader: reader.stack.pop(),
    pickle.REDUCE[0]: lambda reader: reader.call(1),
    pickle.NEWOBJ[0]: lambda reader: reader.call(1),
    pickle.NEWOBJ_EX[0]: lambda reader: reader.call(2),
}
"""Left out: what protocol 0 writes, extension codes, and lengths of eight bytes, allocated before they are read."""
