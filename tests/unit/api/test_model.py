from __future__ import annotations

import importlib
import json
import pkgutil

import pytest
from pydantic import ValidationError

import specdec_operator
from specdec_operator.api.configuration import OperatorConfiguration
from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1.model_facts import DataSetFacts
from specdec_operator.api.v1alpha1.serving import Serving


def _models(base: type[ApiModel]) -> set[type[ApiModel]]:
    return {base}.union(*(_models(made) for made in base.__subclasses__()))


for _room in ("api", "api.v1alpha1", "cli", "packaging", "planning", "runtimes"):
    package = importlib.import_module(f"{specdec_operator.__name__}.{_room}")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "__main__":
            importlib.import_module(f"{package.__name__}.{module.name}")

RENAMED = {
    f"{model.__name__}.{name}": (name, model)
    for model in sorted(_models(ApiModel), key=lambda model: model.__name__)
    if model.model_config.get("extra") == "forbid"
    for name, field in model.model_fields.items()
    if field.alias != name
}


@pytest.mark.parametrize(("name", "model"), RENAMED.values(), ids=RENAMED)
def test_a_document_is_read_by_the_names_of_the_definition_alone(name: str, model: type[ApiModel]) -> None:
    for read in (model.model_validate, lambda document: model.model_validate_json(json.dumps(document))):
        with pytest.raises(ValidationError) as wrong:
            read({name: 1})

        assert ("extra_forbidden", (name,)) in {(error["type"], error["loc"]) for error in wrong.value.errors()}


def test_a_status_takes_nothing_by_its_name_in_python() -> None:
    assert DataSetFacts.model_validate({"content_digest": "ab"}) == DataSetFacts()


def test_a_part_inside_a_document_is_read_by_the_names_of_the_definition_alone() -> None:
    with pytest.raises(ValidationError):
        OperatorConfiguration.model_validate({"storage": {"claim_name": "a"}})


def test_code_makes_a_model_by_its_names_in_python() -> None:
    assert Serving(max_batch_size=4).max_batch_size == 4
