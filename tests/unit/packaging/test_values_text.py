from __future__ import annotations

import pytest
import yaml

from specdec_operator.packaging.values import ChartValues
from specdec_operator.packaging.values_schema import values_schema
from specdec_operator.packaging.values_text import values_table, values_yaml


@pytest.fixture(scope="module")
def text() -> str:
    return values_yaml(values_schema())


def test_the_file_holds_exactly_the_defaults(text: str) -> None:
    shown = ChartValues().model_dump(by_alias=True, mode="json", exclude={"global_values"})
    assert yaml.safe_load(text) == shown


def test_what_a_value_is_for_stands_above_it(text: str) -> None:
    assert "# Operator pods. One leads, by a Lease; the others wait to take over.\nreplicas: 1\n" in text


def test_the_operators_settings_are_shown_without_being_set(text: str) -> None:
    shown = text.partition("# Those that you set come in place of {}:\n")[2].partition("config: {}")[0]
    settings = yaml.safe_load(shown.replace("#   ", "  "))
    assert settings["workers"] == 8
    assert set(settings) == set(values_schema()["properties"]["config"]["properties"])


def test_no_line_is_longer_than_an_editor_shows(text: str) -> None:
    assert max(len(line) for line in text.splitlines()) <= 120


def test_the_table_names_inner_values_by_their_path() -> None:
    assert "| `crds.keep` | boolean | `true` |" in values_table(values_schema())


def test_the_table_has_a_row_for_each_setting_of_the_operator() -> None:
    assert "| `config.storage.claim.size` | string or integer |" in values_table(values_schema())
