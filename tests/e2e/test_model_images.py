from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.place import Place

pytestmark = [
    pytest.mark.realnode,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="real pods need a real node, which needs root"),
]

PROMPT, ANSWER = "The capital of France is", "Paris, a city on the river Seine."


def test_a_model_in_an_image_is_served_without_a_store(place: Place) -> None:
    place.until_ready("imaged")
    assert place.answer("imaged", PROMPT) == ANSWER
    assert place.items("persistentvolumeclaims") == []
