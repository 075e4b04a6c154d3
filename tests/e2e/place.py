"""A namespace in which models really come to serve, and the words to look at it."""

from __future__ import annotations

import json
import time
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from specdec_operator.cluster.resources import JOBS, PODS, SERVICES, SPECULATIVE_MODELS
from specdec_operator.resources.labels import ARTIFACT, MODEL, serving_name
from testbed.cluster.images import BUSYBOX_IMAGE
from testbed.demo.models import condition, describe, is_current, serves
from testbed.demo.prompt import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from specdec_operator.cluster.resources import ResourceType
    from testbed.session import Session

Json = dict[str, Any]
POLL_SECONDS = 0.5
SECONDS = 420.0
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@dataclass(frozen=True)
class Place:
    """One namespace of the session's cluster."""

    session: Session
    namespace: str

    def create_namespace(self, labels: dict[str, str] | None = None) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels or {}}}
        self.session.cluster.client.create("/api/v1/namespaces", body)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.session.cluster.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin)

    def apply(self, *documents: Json) -> None:
        text = "\n---\n".join(json.dumps(document) for document in documents)
        # A client-side apply reads the schemas of all kinds first: four times the work, for kubectl and API server.
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)

    def apply_model(self, name: str, spec: Json) -> None:
        body = {
            "apiVersion": SPECULATIVE_MODELS.api_version,
            "kind": SPECULATIVE_MODELS.kind,
            "metadata": {"name": name},
            "spec": {"pod": SMALL, **spec},
        }
        path = SPECULATIVE_MODELS.path(namespace=self.namespace, name=name)
        self.session.cluster.client.apply(path, body, field_manager="e2e")

    def patch(self, name: str, spec: Json) -> None:
        self.kubectl("patch", "specmodel", name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def secret(self, name: str, token: str) -> None:
        self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"token": token}})

    def get(self, resource: str, *arguments: str) -> Json:
        found: Json = json.loads(self.kubectl("get", resource, *arguments, "--output=json"))
        return found

    def items(self, resource: str, *arguments: str) -> list[Json]:
        items: list[Json] = self.get(resource, *arguments)["items"]
        return items

    def read(self, resource: ResourceType, name: str) -> Json:
        return self.session.cluster.client.get(resource.path(namespace=self.namespace, name=name))

    def labelled(self, resource: ResourceType, label: str, value: str) -> list[Json]:
        """Return the objects of a type that carry a label."""
        query = urlencode({"labelSelector": f"{label}={value}"})
        found = self.session.cluster.client.get(f"{resource.path(namespace=self.namespace)}?{query}")
        items: list[Json] = found["items"]
        return items

    def model(self, name: str) -> Json:
        return self.read(SPECULATIVE_MODELS, name)

    def until(self, name: str, what: str, holds: Callable[[Json], bool], *, seconds: float = SECONDS) -> Json:
        """Wait until a model's state is as wanted; fail with all that its status says."""
        deadline = time.monotonic() + seconds
        while not holds(model := self.model(name)):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds:g} s: {what}; {describe(model)}")
            time.sleep(POLL_SECONDS)
        return model

    def until_ready(self, name: str) -> Json:
        return self.until(name, "Ready", serves)

    def until_condition(self, name: str, kind: str, status: str, reason: str = "") -> Json:
        def holds(model: Json) -> bool:
            found = condition(model, kind)
            return is_current(model) and found.get("status") == status and reason in ("", found["reason"])

        return self.until(name, f"{kind}={status} {reason}", holds)

    def serving_pod(self, name: str) -> Json:
        (pod,) = (pod for pod in self.labelled(PODS, MODEL, name) if "deletionTimestamp" not in pod["metadata"])
        return pod

    def serving_pod_name(self, name: str) -> str:
        return f"pod/{self.serving_pod(name)['metadata']['name']}"

    def run_in_store(self, command: str, *, claim: str = "specdec-store") -> None:
        """Run a shell's command in the store's root, as somebody would who tidies up there or copies into it."""
        container = {
            "name": "run",
            "image": BUSYBOX_IMAGE,
            "command": ["sh", "-c", f"cd /store && {command}"],
            "volumeMounts": [{"name": "store", "mountPath": "/store"}],
            "securityContext": {"runAsUser": 0},
        }
        spec = {
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": "store", "persistentVolumeClaim": {"claimName": claim}}],
        }
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "run"}, "spec": spec})
        self.kubectl("wait", "pod/run", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
        self.kubectl("delete", "pod/run", "--wait=true")

    def log(self, name: str) -> str:
        return self.kubectl("logs", self.serving_pod(name)["metadata"]["name"], "--container=server", "--tail=-1")

    def address(self, name: str) -> str:
        address: str = self.read(SERVICES, serving_name(name))["spec"]["clusterIP"]
        return address

    def answer(self, name: str, prompt: str) -> str:
        """Ask a model through its Service with what its status publishes."""
        return ask(self.address(name), self.model(name)["status"], prompt).text

    def served_revision(self, name: str) -> str:
        """Return the revision that the server itself names."""
        endpoint = self.model(name)["status"]["endpoint"]
        url = f"http://{self.address(name)}:8000/v2/models/{endpoint['modelName']}/config"
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as response:
            config: Json = json.loads(response.read())
        revision: str = config["parameters"]["specdec_revision"]["string_value"]
        return revision

    def artifact(self, model: str, role: str) -> Json:
        used: list[Json] = [a for a in self.model(model)["status"]["artifacts"] if a["role"] == role]
        return used[0]

    def jobs(self, artifact: str) -> list[str]:
        """Return the names of the Jobs that an artifact has had."""
        return [job["metadata"]["name"] for job in self.labelled(JOBS, ARTIFACT, artifact)]

    def shorten_lease(self) -> None:
        """Have the next operator wait for a dead one's Lease for a few seconds only."""
        namespace, _, name = self.session.operator.instance.partition("/")
        patch = json.dumps({"spec": {"leaseDurationSeconds": 3}})
        self.session.cluster.kubectl(
            "patch", "lease", name, f"--namespace={namespace}", "--type=merge", f"--patch={patch}"
        )

    def warnings(self, name: str) -> list[Json]:
        """Return the Warning Events about a model."""
        selector = f"--field-selector=type=Warning,involvedObject.name={name}"
        return self.items("events", selector)

    def gpu_pods(self, model: str) -> list[Json]:
        return [
            pod
            for pod in self.labelled(PODS, MODEL, model)
            if any("nvidia.com/gpu" in c["resources"].get("limits", {}) for c in pod["spec"]["containers"])
        ]


SMALL: Json = {
    "serverResources": {"cpu": "20m", "memory": "640Mi"},
    "jobResources": {"cpu": "20m", "memory": "256Mi"},
}
"""Resources of pods that share a small machine with many others: a server of three ranks takes 400 MiB."""
