"""Runs a health check for Argo CD as Argo CD does: Lua 5.1 with the base and table libraries, `obj` as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lupa import lua51

STATUSES = frozenset({"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"})
"""Words that Argo CD takes."""
WITHHELD = ("coroutine", "debug", "io", "math", "os", "string", "require", "module", "package", "dofile", "loadfile")
"""What Argo CD does not load for scripts of argocd-cm, or gives another, poorer form of."""


@dataclass(frozen=True)
class Health:
    """What a script says of an object."""

    status: str
    message: str


def health(script: str, document: dict[str, Any]) -> Health:
    """Run a script on an object.

    Raises:
        lupa.lua51.LuaError: The script fails.
        ValueError: It returns something that Argo CD does not take.
    """
    runtime = lua51.LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
    names = runtime.globals()
    for name in WITHHELD:
        names[name] = None
    names["obj"] = runtime.table_from(_numbers(document), recursive=True)
    answer = runtime.execute(script)
    if lua51.lua_type(answer) != "table" or answer["status"] not in STATUSES:
        raise ValueError(f"not a health: {answer!r}")
    return Health(answer["status"], answer["message"] or "")


def _numbers(value: Any) -> Any:
    """A document with its numbers as Argo CD hands them over: all of them floating-point; null is absent."""
    if isinstance(value, dict):
        return {key: _numbers(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
