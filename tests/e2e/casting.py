"""Which models each module's namespace starts with, so that those of several come up side by side.

To add a module of rows, `test_rows_<name>.py`:

1. Write a function here, or in a module of its own, that takes the :class:`Place`, makes its namespace
   (`place.create_namespace()`) and applies the models (`place.apply_model(name, spec)`), and returns without waiting
   for them: every wait here delays the models of all casts after it.
2. Name it in `CASTS` under the module's name, with a namespace that no other module has.
3. In the module, carry the marks that the others carry, take the fixture `place`, and begin each test with
   `place.until_ready(name)` or another of its waits: by then the model has mostly come up, and the wait is short.

All casts share one node. It declares `GPUS` GPUs, more than all need, but really has this machine's memory, of which
each pod asks for what `SMALL` says: a model of which only artifacts are looked at takes `replicas=0`. Each namespace
takes one of the node's volumes for its store. `tests/conftest.py` tells in which order the modules come.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.e2e.model_images import enter_images
from tests.e2e.place import RESTRICTED, SMALL
from tests.e2e.rows import ENGINE_REFUSED, ENGINE_ROWS, LLM_API_REFUSED, LLM_API_ROWS, VLLM_ROWS, entering

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.e2e.place import Place

Json = dict[str, Any]
GPUS = 64
EXAMPLES = Path(__file__).parents[2] / "examples" / "demo"
TARGET = "specdec-testbed/tiny-llama"
HEAD = "specdec-testbed/tiny-llama-eagle3"
SMALL_ENGINE = {"maxBatchSize": 1, "maxInputLength": 64, "maxSequenceLength": 128}


@dataclass(frozen=True)
class Cast:
    """The models of one module.

    Attributes:
        namespace: where they are.
        enter: makes the namespace and applies them.
    """

    namespace: str
    enter: Callable[[Place], None]


def hub(repository: str, *, secret: str = "") -> Json:
    """Return a model from the hub."""
    source: Json = {"repository": repository}
    if secret:
        # the testbed's hub speaks plain HTTP
        source.update(tokenSecretRef={"name": secret}, allowPlainHTTP=True)
    return {"source": {"huggingFace": source}}


def claim(sub_path: str) -> Json:
    """Return a model on the claim `models`."""
    return {"source": {"persistentVolumeClaim": {"claimName": "models", "subPath": sub_path}}}


def baseline(target: Json, **spec: Any) -> Json:
    """Return the spec of a target alone, on the LLM API."""
    return {"target": target, "speculation": {"method": "None"}, "serving": {"maxBatchSize": 1}, **spec}


def engine(target: Json, **spec: Any) -> Json:
    """Return the spec of a target alone, as an engine."""
    return {
        "target": target,
        "speculation": {"method": "None"},
        "runtime": {"backend": "TensorRTEngine"},
        "engine": SMALL_ENGINE,
        **spec,
    }


def eagle3(draft_tokens: int, *, head: str = HEAD, **spec: Any) -> Json:
    """Return the spec of an EAGLE-3 pair."""
    return {
        "target": hub(TARGET),
        "draft": hub(head),
        "speculation": {"method": "Eagle3", "maxDraftTokens": draft_tokens},
        "serving": {"maxBatchSize": 1},
        **spec,
    }


def example(name: str) -> Json:
    """Return an example's object."""
    document: Json = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    return document


def _examples(place: Place) -> None:
    place.create_namespace(RESTRICTED)
    for file in sorted(EXAMPLES.glob("*.yaml")):
        document = example(file.stem)
        place.apply_model(document["metadata"]["name"], {**document["spec"], "pod": SMALL})
    place.apply_model("twin", {**example("baseline-engine")["spec"], "pod": SMALL, "replicas": 0})


def _refused(place: Place) -> None:
    place.create_namespace()
    place.secret("unknown", "hf_testbed_nobody")
    place.secret("not-granted", "hf_testbed_not_granted")
    place.secret("granted", "hf_testbed_granted")
    gated = "specdec-testbed/tiny-llama-gated"
    _refused_model(place, "missing", hub("specdec-testbed/no-such-model", secret="granted"))
    _refused_model(place, "bad-token", hub(TARGET, secret="unknown"))
    _refused_model(place, "gated", hub(gated))
    _refused_model(place, "not-granted", hub(gated, secret="not-granted"))
    _refused_model(place, "no-secret", hub(gated, secret="absent"))
    place.apply_model("neighbour", baseline(hub(gated, secret="unknown"), replicas=0))
    place.apply_model("granted", baseline(hub(gated, secret="granted"), replicas=0))
    other = {
        "target": hub(TARGET),
        "draft": hub("specdec-testbed/tiny-llama-other-vocabulary"),
        "speculation": {"method": "DraftTarget", "maxDraftTokens": 4},
        "engine": SMALL_ENGINE,
    }
    place.apply_model("other-vocabulary", other)


def _refused_model(place: Place, name: str, target: Json) -> None:
    # In a store of its own: what one model has downloaded, others of its store have too.
    place.apply_model(name, baseline(target, replicas=0, storage={"claim": {"claimName": name, "size": "1Gi"}}))


FILL = """
import pathlib, shutil
import huggingface_hub
whole = pathlib.Path(huggingface_hub.snapshot_download("specdec-testbed/tiny-llama", local_dir="/models/teams/whole"))
damaged = pathlib.Path(shutil.copytree(whole, "/models/teams/damaged"))
weights = damaged / "model.safetensors"
# A file that is whole, and a model that is not: only who loads it can tell.
weights.write_bytes(weights.read_bytes().replace(b"model.norm.weight", b"model.norm.absent"))
"""


# An engine that nobody here built: what somebody else's build left on a claim.
FOREIGN_BUILD = """
import subprocess, sys
import huggingface_hub
model = huggingface_hub.snapshot_download("specdec-testbed/tiny-llama", local_dir="/models/model")
convert = ["--model_dir", model, "--output_dir", "/tmp/checkpoint", "--dtype", "float16"]
subprocess.run([sys.executable, "/app/examples/models/core/llama/convert_checkpoint.py", *convert], check=True)
limits = ["--max_batch_size", "2", "--max_input_len", "64", "--max_seq_len", "128"]
build = ["--checkpoint_dir", "/tmp/checkpoint", "--output_dir", "/models/engine", *limits]
subprocess.run(["trtllm-build", *build], check=True)
"""


def _engines(place: Place) -> None:
    entering({**ENGINE_ROWS, **ENGINE_REFUSED})(place)
    place.apply(_models_claim(), _filler(place, FOREIGN_BUILD))


def _models_claim() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def _claims(place: Place) -> None:
    place.create_namespace()
    place.apply(_models_claim(), _filler(place, FILL))
    place.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/filler", "--timeout=240s")
    place.apply_model("from-claim", baseline(claim("teams/whole")))
    place.apply_model("side-by-side", baseline(claim("teams/whole")))
    place.apply_model("damaged", engine(claim("teams/damaged")))


def _filler(place: Place, program: str) -> Json:
    container = {
        "name": "filler",
        "image": place.session.image.reference,
        "command": ["python3", "-c", program],
        "env": [
            {"name": "HF_ENDPOINT", "value": place.session.hub.url},
            {"name": "HF_HOME", "value": "/tmp/huggingface"},  # noqa: S108 - inside the pod
        ],
        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
        # Without a request it would get next to nothing beside the pods that come up with it.
        "resources": {"requests": {"cpu": "100m"}},
    }
    volume = {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}
    spec = {"containers": [container], "volumes": [volume], "restartPolicy": "Never", "securityContext": USER}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "filler"}, "spec": spec}


USER = {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000}


def _updated(place: Place) -> None:
    place.create_namespace()
    place.apply_model("pair", eagle3(3))


def _killed(place: Place) -> None:
    place.create_namespace()


def _losing(place: Place) -> None:
    place.create_namespace()
    place.apply_model("loses", engine(hub(TARGET)))


def _installed(place: Place) -> None:
    place.create_namespace()
    place.apply_model("engine", engine(hub(TARGET)))
    place.apply_model("pair", eagle3(3))


CASTS: Mapping[str, Cast] = {
    "test_serving": Cast("serving", _examples),
    "test_refusals": Cast("refused", _refused),
    "test_update": Cast("updated", _updated),
    "test_restart": Cast("killed", _killed),
    "test_lost_content": Cast("losing", _losing),
    "test_rows_engines": Cast("rows-engines", _engines),
    "test_rows_vllm": Cast("rows-vllm", entering(VLLM_ROWS)),
    "test_rows_llm_api": Cast("rows-llm-api", entering({**LLM_API_ROWS, **LLM_API_REFUSED})),
    "test_model_images": Cast("model-images", enter_images),
    "test_installation": Cast("installation", _installed),
    # Last, for it waits until its claim is filled.
    "test_claims": Cast("claims", _claims),
}
