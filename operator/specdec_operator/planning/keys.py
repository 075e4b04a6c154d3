"""Content keys: one hash for all that decides the content of an artifact or a revision."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


NAME_DIGITS = 10
# json.dumps makes an encoder for every call that is not for its defaults.
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spaces, equal for equal values."""
    return _CANONICAL.encode(value)


def content_key(parts: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON of named parts, in hex."""
    return hashlib.sha256(canonical_json(dict(parts)).encode()).hexdigest()


def short(key: str) -> str:
    """The part of a key that names carry."""
    return key[:NAME_DIGITS]
