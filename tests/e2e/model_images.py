"""A model as an OCI image, as a pipeline that keeps models in a registry makes one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import testbed.hub
from testbed.runtime.layer_tar import files_under, write_layer
from testbed.runtime.oci import ImageConfig, write_image

if TYPE_CHECKING:
    from tests.e2e.place import Place

REFERENCE = "specdec.dev/testbed/models/tiny-llama:1"
SUB_PATH = "models/llama"


def enter_images(place: Place) -> None:
    """Give the node an image that holds a model, and apply a model that is served from it."""
    folder = place.session.cluster.directory
    layer, archive = folder / "model-layer.tar", folder / "model-image.tar"
    model = Path(testbed.hub.__file__).parent / "models" / "specdec-testbed" / "tiny-llama"
    write_layer(layer, files_under(model, f"{SUB_PATH}/"))
    write_image(archive, ImageConfig(reference=REFERENCE), (layer,))
    node = place.session.cluster.node
    assert node is not None
    node.import_image(archive)
    place.create_namespace()
    source = {"image": {"reference": REFERENCE, "pullPolicy": "Never", "subPath": SUB_PATH}}
    spec = {"target": {"source": source}, "speculation": {"method": "None"}, "serving": {"maxBatchSize": 1}}
    place.apply_model("imaged", spec)
