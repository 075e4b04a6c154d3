"""The capability table of an operator's configuration: its own rows are in it, and its defaults name rows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from specdec_operator.api.v1alpha1.runtime import Backend
from specdec_operator.runtimes.table import CapabilityTable, TableError, load_table

if TYPE_CHECKING:
    from specdec_operator.api.configuration import OperatorConfiguration


def configured_table(configuration: OperatorConfiguration) -> CapabilityTable:
    """The shipped rows with the configuration's.

    Raises:
        TableError: A row is wrong, or a default release is none that serves its backend; the message names the field.
    """
    table = load_table(configuration.releases)
    backends: tuple[Backend, ...] = get_args(Backend)
    for backend in backends:
        _check_default(table, backend, configuration.default_releases.of(backend))
    return table


def _check_default(table: CapabilityTable, backend: Backend, name: str | None) -> None:
    if name is None:
        return
    release = table.find(name)
    if release and release.methods(backend):
        return
    serving = table.spans(lambda each: bool(each.methods(backend)))
    wrong = f"does not serve {backend}" if release else "is in no row of the release table"
    raise TableError(
        f"defaultReleases.{backend}: {name} {wrong}; name one of {serving}, add a row under releases, or leave it out"
    )
