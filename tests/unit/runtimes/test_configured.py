from __future__ import annotations

from typing import Any

import pytest

from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.runtimes.configured import configured_table
from specdec_operator.runtimes.table import TableError

ROW = {"name": "26.04-mine", "like": "26.04", "source": "ours"}


def configuration(**fields: Any) -> OperatorConfiguration:
    return OperatorConfiguration.model_validate(fields)


def test_rows_of_the_configuration_are_in_the_table() -> None:
    assert configured_table(configuration(releases=[ROW])).find("26.04-mine")


def test_a_default_release_may_be_a_row_of_the_configuration() -> None:
    table = configured_table(configuration(releases=[ROW], defaultReleases={"LLMAPI": "26.04-mine"}))
    assert "26.04-mine" in table.added


def test_a_default_release_in_no_row_is_told_with_those_that_serve() -> None:
    with pytest.raises(
        TableError, match=r"defaultReleases\.LLMAPI: 99 is in no row of the release table; name one of "
    ):
        configured_table(configuration(defaultReleases={"LLMAPI": "99"}))


def test_a_default_release_without_the_backend_is_told() -> None:
    bare = {**ROW, "LLMAPI": None}
    with pytest.raises(TableError, match=r"defaultReleases\.LLMAPI: 26\.04-mine does not serve LLMAPI"):
        configured_table(configuration(releases=[bare], defaultReleases={"LLMAPI": "26.04-mine"}))
