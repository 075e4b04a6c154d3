"""Metrics of the operator, under the names that controller-runtime's dashboards know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from specdec_operator.api.v1alpha1.status import Condition
    from specdec_operator.cluster.permissions import Permission
    from specdec_operator.reconcile.queue import Key, Outcome

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_CONTROLLERS = ("SpeculativeModel", "ModelArtifact")


class Metrics:
    """The operator's counters; one registry per process, none global."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._depth = Gauge("workqueue_depth", "Keys that wait for a worker", registry=registry)
        self._waited = Histogram(
            "workqueue_queue_duration_seconds", "How long keys waited", buckets=_SECONDS, registry=registry
        )
        self._retries = Counter(
            "workqueue_retries", "Keys that failed and come back", ["controller"], registry=registry
        )
        self._reconciles = Counter(
            "controller_runtime_reconcile", "Reconciles by outcome", ["controller", "result"], registry=registry
        )
        self._seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles took",
            ["controller"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._leader = Gauge("leader_election_master_status", "1 while this process leads", ["name"], registry=registry)
        self._requests = Counter(
            "rest_client_requests", "Requests to the API server", ["verb", "resource", "code"], registry=registry
        )
        self._acceptance = Gauge(
            "specdec_acceptance_ratio",
            "Accepted of drafted tokens in the last proof of a model whose release reports them",
            ["namespace", "name"],
            registry=registry,
        )
        self._conditions = Gauge(
            "specdec_model_condition",
            "1 for the status and reason that a condition of a model has",
            ["namespace", "name", "type", "status", "reason"],
            registry=registry,
        )
        self._missing = Gauge(
            "specdec_operator_missing_permission",
            "1 for each right that the operator needs and does not have",
            # Not "namespace": that is the operator's own, of each metric that has none.
            ["verb", "resource", "scope"],
            registry=registry,
        )
        self._gaps = Gauge(
            "specdec_operator_crd_missing_fields",
            "Fields and values that the operator knows and the served CRD of a kind does not",
            ["kind"],
            registry=registry,
        )
        self._others = Gauge(
            "specdec_model_other_controller",
            "1 for a model that is left alone, since another operator writes its status",
            ["namespace", "name", "controller"],
            registry=registry,
        )
        self._shown: dict[tuple[str, str], Sequence[tuple[str, ...]]] = {}
        for controller in _CONTROLLERS:
            self._retries.labels(controller)

    def depth(self, keys: int) -> None:
        """So many keys wait."""
        self._depth.set(keys)

    def started(self, key: Key, *, waited: float) -> None:
        """A run starts."""
        del key
        self._waited.observe(waited)

    def finished(self, key: Key, *, seconds: float, outcome: Outcome) -> None:
        """A run has ended."""
        self._reconciles.labels(key.kind, outcome).inc()
        self._seconds.labels(key.kind).observe(seconds)

    def retried(self, key: Key, *, delay: float) -> None:
        """A failed key comes back."""
        del delay
        self._retries.labels(key.kind).inc()

    def request(self, verb: str, resource: str, code: str) -> None:
        """A request to the API server was answered."""
        self._requests.labels(verb, resource, code).inc()

    def acceptance(self, *, namespace: str, name: str, ratio: float | None) -> None:
        """A model's drafts were accepted at this ratio; None where that is not known or the model is gone."""
        if ratio is not None:
            self._acceptance.labels(namespace, name).set(ratio)
        else:
            self._acceptance.remove_by_labels({"namespace": namespace, "name": name})

    def conditions(self, *, namespace: str, name: str, conditions: Iterable[Condition]) -> None:
        """A model has these conditions and no others; none if it is gone, or another operator's."""
        labels = [(namespace, name, each.type, each.status, each.reason) for each in conditions]
        # Known, since a search through the labels of all models would cost each reconcile more the more there are.
        for gone in self._shown.pop((namespace, name), ()):
            self._conditions.remove(*gone)
        for shown in labels:
            self._conditions.labels(*shown).set(1)
        if labels:
            self._shown[namespace, name] = labels

    def permissions_missing(self, missing: Iterable[Permission]) -> None:
        """These permissions are missing, and no others."""
        self._missing.clear()
        for permission in missing:
            self._missing.labels(permission.verb, permission.qualified_name, permission.namespace or "*").set(1)

    def definitions_outdated(self, gaps: Mapping[str, tuple[str, ...]]) -> None:
        """The served kinds lack so many fields and values; 0 if they lack none."""
        for kind, missing in gaps.items():
            self._gaps.labels(kind).set(len(missing))

    def other_controller(self, *, namespace: str, name: str, controller: str) -> None:
        """A model is left alone for another operator; empty if it is not."""
        self._others.remove_by_labels({"namespace": namespace, "name": name})
        if controller:
            self._others.labels(namespace, name, controller).set(1)

    def leader(self, leading: bool) -> None:  # noqa: FBT001 - a gauge's value
        """This process leads, or no longer does."""
        self._leader.labels("specdec-operator").set(int(leading))
