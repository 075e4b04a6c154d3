"""Judges objects by a Kustomization's healthCheckExprs as Flux does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.kstatus import Verdict

ORDER: tuple[tuple[str, Verdict], ...] = (
    ("inProgress", "InProgress"),
    ("failed", "Failed"),
    ("current", "Current"),
)


def verdict(expressions: dict[str, str], document: dict[str, Any]) -> Verdict:
    """Judge an object by one entry of healthCheckExprs.

    A generation that was not looked at yet is InProgress whatever the expressions say; then they are asked in Flux's
    order, and an object of which none is true is InProgress.

    Raises:
        ValueError: An expression is no CEL, or yields no boolean.
    """
    # With the package comes its command line, with all that draws a terminal.
    import cel  # noqa: PLC0415 - most runs judge no object

    generation, observed = document["metadata"].get("generation"), document["status"].get("observedGeneration")
    if observed is not None and generation is not None and observed != generation:
        return "InProgress"
    for name, said in ORDER:
        if name in expressions:
            found = cel.evaluate(expressions[name], document)
            if not isinstance(found, bool):
                raise ValueError(f"{name} yields {found!r}")
            if found:
                return said
    return "InProgress"
