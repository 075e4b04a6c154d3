"""The values of the Helm chart: their names, defaults, bounds and descriptions, from which all else is generated."""

# ruff: noqa: RUF012 - pydantic copies defaults

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from specdec_operator.api.model import ApiModel
from specdec_operator.api.v1alpha1 import patterns
from specdec_operator.api.v1alpha1.scalars import LabelKey, ObjectName

KubernetesObject = dict[str, Any]
Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=patterns.DNS_LABEL.expression)]
ReleaseName = Annotated[str, Field(max_length=52, pattern=patterns.DNS_LABEL_OR_EMPTY.expression)]
Duration = Annotated[str, Field(pattern=patterns.PROMETHEUS_DURATION.expression)]
Labels = dict[str, str]


class Image(ApiModel):
    """The operator's image."""

    repository: Annotated[str, Field(min_length=1, max_length=400, pattern=patterns.IMAGE_REPOSITORY.expression)] = (
        "specdec-operator"
    )
    """Registry and repository, without a tag. No public registry has the image: push your build, and name it here."""
    tag: Annotated[str, Field(max_length=128)] = ""
    """The tag; the chart's appVersion if empty."""
    digest: Annotated[str, Field(pattern=patterns.IMAGE_DIGEST_OR_EMPTY.expression)] = ""
    """The digest, as in `sha256:…`; it wins over the tag."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When the node pulls."""


class PullSecret(ApiModel):
    """A Secret with a registry's credentials, in the operator's namespace."""

    name: ObjectName
    """Its name."""


class CustomResourceDefinitions(ApiModel):
    """The CRDs, as a part of the release, so that an upgrade brings the new ones."""

    install: bool = True
    """Whether the chart brings them; set it to false where they are managed apart."""
    keep: bool = True
    """Whether an uninstall leaves them. Without them the cluster deletes every SpeculativeModel and what serves it."""


class Rbac(ApiModel):
    """The operator's rights."""

    create: bool = True
    """Whether roles and bindings are made: cluster-wide, or in each of `namespaces`. Leave them out only where somebody
    else grants the same."""
    nodes: bool = True
    """Whether the operator lists nodes, so that a driver that is too old is told before anything is fetched. It counts
    only where all namespaces are watched."""


class ServiceAccount(ApiModel):
    """The account that the operator runs as."""

    create: bool = True
    """Whether it is made."""
    name: Annotated[str, Field(max_length=253)] = ""
    """Its name; the release's full name if empty. Needed where none is made."""
    annotations: Labels = {}
    """Annotations on it."""


class Enabled(ApiModel):
    """Something that is made or not."""

    enabled: bool = True
    """Whether it is made."""


class NetworkPolicy(ApiModel):
    """A NetworkPolicy of the operator's pods. It allows DNS, the API server's ports, and port 8000 of models' pods."""

    enabled: bool = True
    """Whether it is made. Only a cluster whose network plugin enforces NetworkPolicies is changed by it."""
    api_server_ports: Annotated[list[Annotated[int, Field(ge=1, le=65535)]], Field(min_length=1, max_length=8)] = [
        443,
        6443,
    ]
    """The API server's ports, of its Service and behind it. Its address is not known to a chart, so any may be
    reached on them."""
    metrics_from: Annotated[list[KubernetesObject], Field(max_length=16)] = []
    """NetworkPolicyPeers that may read metrics; everybody if empty. Kubelets' probes come from the node, which
    NetworkPolicies let through."""


class ServiceMonitor(ApiModel):
    """A ServiceMonitor of the Prometheus operator, for the operator's own metrics."""

    enabled: bool = False
    """Whether it is made."""
    interval: Duration = "30s"
    """How often they are read."""
    labels: Labels = {}
    """Labels by which your Prometheus selects it."""


class PodMonitor(ApiModel):
    """A PodMonitor of the Prometheus operator, for Triton's metrics of the models' pods."""

    enabled: bool = False
    """Whether it is made."""
    interval: Duration = "30s"
    """How often they are read."""
    labels: Labels = {}
    """Labels by which your Prometheus selects it."""


class PrometheusRule(ApiModel):
    """A PrometheusRule with alerts; each says what to do."""

    enabled: bool = False
    """Whether it is made."""
    labels: Labels = {}
    """Labels by which your Prometheus selects it."""
    documentation: Annotated[str, Field(max_length=400, pattern=r"^(https?://\S+)?$")] = ""
    """Where this release's `docs` are published, as a URL: the `runbook_url` of each alert begins with it. Without it
    no alert has one."""


class Dashboards(ApiModel):
    """Two Grafana dashboards, each in a ConfigMap that Grafana's sidecar finds by its label."""

    enabled: bool = False
    """Whether they are made."""
    label: LabelKey = "grafana_dashboard"
    """The label's key."""
    label_value: Annotated[str, Field(max_length=63)] = "1"
    """The label's value."""
    annotations: Labels = {}
    """Annotations, such as the folder's."""


class Monitoring(ApiModel):
    """What watches the operator and the models."""

    service_monitor: ServiceMonitor = ServiceMonitor()
    """The operator's metrics, for the Prometheus operator."""
    pod_monitor: PodMonitor = PodMonitor()
    """The models' metrics, for the Prometheus operator."""
    prometheus_rule: PrometheusRule = PrometheusRule()
    """Alerts."""
    dashboards: Dashboards = Dashboards()
    """Grafana dashboards: one for those who run the operator, one for owners of models."""


class ChartValues(ApiModel):
    """The values of the chart."""

    replicas: Annotated[int, Field(ge=0, le=9)] = 1
    """Operator pods. One leads, by a Lease; the others wait to take over."""
    namespaces: Annotated[list[Namespace], Field(max_length=256, json_schema_extra={"uniqueItems": True})] = []
    """The namespaces to watch, which must exist; all of them if empty. With a list, nothing cluster-wide is made but
    the CRDs: a Role in each namespace."""
    config: KubernetesObject = {}
    """The operator's own settings; `instance`, `namespaces` and `readNodes` are set by the chart."""
    image: Image = Image()
    """The operator's image."""
    image_pull_secrets: Annotated[list[PullSecret], Field(max_length=16)] = []
    """Secrets with which the image is pulled."""
    name_override: ReleaseName = ""
    """A name in place of the chart's."""
    fullname_override: ReleaseName = ""
    """A name for all objects, and the Lease, in place of the one made of release and chart."""
    crds: CustomResourceDefinitions = CustomResourceDefinitions()
    """The CustomResourceDefinitions."""
    rbac: Rbac = Rbac()
    """The operator's rights."""
    service_account: ServiceAccount = ServiceAccount()
    """The operator's account."""
    verbose: bool = False
    """Whether the log holds what the libraries say, too."""
    resources: KubernetesObject = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
    """The container's requests and limits."""
    pod_security_context: KubernetesObject = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    """The pod's security context. On OpenShift, set `runAsUser` and `runAsGroup` to null: it gives ids of its own."""
    pod_labels: Labels = {}
    """Further labels of the pod. Those by which it is selected stay the chart's."""
    pod_annotations: Labels = {}
    """Further annotations of the pod."""
    priority_class_name: Annotated[str, Field(max_length=253)] = ""
    """The pod's priority class."""
    node_selector: Labels = {}
    """The pod's node selector."""
    tolerations: Annotated[list[KubernetesObject], Field(max_length=64)] = []
    """The pod's tolerations."""
    affinity: KubernetesObject = {}
    """The pod's affinity."""
    topology_spread_constraints: Annotated[list[KubernetesObject], Field(max_length=16)] = [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ]
    """How replicas are spread; one that names no `labelSelector` gets that of the operator's pods."""
    pod_disruption_budget: Enabled = Enabled()
    """A PodDisruptionBudget: one operator pod at a time is taken from its node; a single one may be."""
    network_policy: NetworkPolicy = NetworkPolicy()
    """A NetworkPolicy of the operator's pods."""
    monitoring: Monitoring = Monitoring()
    """Prometheus and Grafana; all of it is off by default."""
    global_values: Annotated[KubernetesObject, Field(alias="global")] = {}
    """Helm's own: what a parent chart gives to all its parts. Nothing is read from it."""
