"""The composition root: every part is made here, once, and handed what it needs."""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import kopf
from prometheus_client import CollectorRegistry

from specdec_operator.cluster.errors import Forbidden, NotFound
from specdec_operator.cluster.events import EventRecorder
from specdec_operator.cluster.http import HttpKubernetesApi
from specdec_operator.cluster.lease import LeaseElector, LeaseSettings
from specdec_operator.cluster.login import login_handler, open_session
from specdec_operator.cluster.resources import LEASES
from specdec_operator.health import Health, health_server
from specdec_operator.metrics import Metrics
from specdec_operator.reconcile.artifact import ArtifactReconciler
from specdec_operator.reconcile.background_proofs import BackgroundProofs
from specdec_operator.reconcile.context import Context
from specdec_operator.reconcile.definitions import Definitions
from specdec_operator.reconcile.gpu_nodes import GpuNodes
from specdec_operator.reconcile.informer import informer_registry, informer_settings
from specdec_operator.reconcile.model import ModelReconciler
from specdec_operator.reconcile.other_controller import Responsibility
from specdec_operator.reconcile.own_writes import OwnWrites
from specdec_operator.reconcile.preconditions import Preconditions
from specdec_operator.reconcile.queue import Key, Result, WorkQueue
from specdec_operator.reconcile.resync import Resync
from specdec_operator.reconcile.rights_check import RightsCheck
from specdec_operator.reconcile.served import until_served
from specdec_operator.reconcile.workers import run_workers
from specdec_operator.resources.template import Templates
from specdec_operator.runtimes.configured import configured_table
from specdec_operator.triton.proof import TritonProver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from specdec_operator.api.configuration import OperatorConfiguration
    from specdec_operator.cluster.credentials import Credentials
    from specdec_operator.cluster.http import RequestObserver
    from specdec_operator.triton.proof import Prover

_ORDERLY_SECONDS = 25
"""How long a leader may take to end; less than the pod's grace period."""

_REST_SECONDS = 0.5
"""A burst of events lasts a few tenths of a second; what it leads to takes seconds at least."""

_REFUSED = frozenset({"400", "403", "422", "500"})
"""Answers that may come from a missing right, or a CRD that lacks a field."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What an operator process is given.

    Attributes:
        stop: Set from outside to end the process in good order.
        prover: Proves Services; None for the real one.
    """

    credentials: Credentials
    configuration: OperatorConfiguration
    stop: asyncio.Event
    host: str = "0.0.0.0"  # noqa: S104 - probes come from the kubelet
    port: int = 8080
    prover: Prover | None = None


async def run_operator(surroundings: Surroundings) -> None:
    """Serve health and metrics, wait for the lease, then reconcile until stopped.

    Raises:
        LeadershipLost: The lease could not be renewed; another process may lead now.
        CredentialsError: The API server refuses the credentials.
    """
    metrics = Metrics(CollectorRegistry())
    queue = WorkQueue(observer=metrics, rest=_REST_SECONDS)
    health = Health(stalled=lambda: queue.stalled)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(open_session(surroundings.credentials))
        await stack.enter_async_context(
            health_server(health, metrics.registry, host=surroundings.host, port=surroundings.port)
        )
        server = surroundings.credentials.server
        unfenced = HttpKubernetesApi(session, server, observe=metrics.request)
        definitions = Definitions(unfenced)
        preconditions = Preconditions(
            RightsCheck(api=unfenced, configuration=surroundings.configuration),
            definitions,
            figures=metrics,
            missing_changed=health.set_missing,
        )
        lease = _lease(surroundings.configuration)
        elector = LeaseElector(unfenced, lease, observe=metrics.leader)
        observe = _observer(metrics, preconditions)
        api = HttpKubernetesApi(session, server, may_write=elector.may_write, observe=observe)
        operator = _Operator(
            surroundings,
            queue=queue,
            api=api,
            health=health,
            metrics=metrics,
            definitions=definitions,
            preconditions=preconditions,
        )
        await _reach(unfenced, lease)
        await preconditions.until_electable(surroundings.stop)
        # One that waits for the lease is ready too: a rolling update starts the new process before the old one ends.
        health.set_ready()
        looking = asyncio.create_task(preconditions.run(), name="preconditions")
        try:
            await _until_stopped(elector, operator.lead, surroundings.stop)
        finally:
            looking.cancel()


def _observer(metrics: Metrics, preconditions: Preconditions) -> RequestObserver:
    """Count requests; one that is refused may be so for what is missing."""

    def observe(verb: str, resource: str, code: str) -> None:
        metrics.request(verb, resource, code)
        if code in _REFUSED:
            preconditions.look_soon()

    return observe


async def _reach(api: HttpKubernetesApi, lease: LeaseSettings) -> None:
    """Ask the API server something that this process may ask, so that wrong credentials end it with a clear word."""
    with suppress(NotFound, Forbidden):
        await api.get(LEASES, namespace=lease.namespace, name=lease.name)


async def _until_stopped(elector: LeaseElector, lead: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
    """Run the elector; a stop ends a leader in good order, and one that waits for the lease at once."""
    task = asyncio.create_task(elector.run(lead), name="elector")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and elector.is_leader:
            await asyncio.wait({task}, timeout=_ORDERLY_SECONDS)
        if not task.done():
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    finally:
        stopping.cancel()


def _lease(configuration: OperatorConfiguration) -> LeaseSettings:
    namespace, _, name = configuration.instance.partition("/")
    return LeaseSettings(namespace=namespace, name=name, identity=f"{name}-{uuid.uuid4().hex[:10]}")


class _Operator:
    """The part that runs while this process leads."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        queue: WorkQueue,
        api: HttpKubernetesApi,
        health: Health,
        metrics: Metrics,
        definitions: Definitions,
        preconditions: Preconditions,
    ) -> None:
        configuration = surroundings.configuration
        self._surroundings = surroundings
        self._queue = queue
        self._api = api
        self._health = health
        self._preconditions = preconditions
        self._own_writes = OwnWrites()
        self._proofs = BackgroundProofs(surroundings.prover or TritonProver(), again=queue.add)
        now = partial(datetime.now, UTC)
        context = Context(
            api=api,
            events=EventRecorder(api, controller="specdec.dev/operator", instance=configuration.instance),
            proofs=self._proofs,
            gauges=metrics,
            table=configured_table(configuration),
            configuration=configuration,
            templates=Templates(),
            definitions=definitions,
            gpu_nodes=GpuNodes(api=api, enabled=configuration.reads_nodes, now=now),
            responsibility=Responsibility(gauges=metrics, instance=configuration.instance),
            own_writes=self._own_writes,
            now=now,
        )
        self._models = ModelReconciler(context)
        self._artifacts = ArtifactReconciler(context)

    async def lead(self) -> None:
        """Reconcile until stopped. The workers outlive kopf, so that its end cancels none of them."""
        configuration = self._surroundings.configuration
        namespaces: list[str | None] = [*configuration.namespaces] or [None]
        resync = Resync(
            self._api,
            self._queue,
            namespaces=namespaces,
            period=configuration.resync_seconds,
            jitter=random.random,
        )
        workers = asyncio.create_task(
            run_workers(self._queue, self._reconcile, workers=configuration.workers), name="workers"
        )
        resyncing = asyncio.create_task(resync.run(), name="resync")
        recovering = asyncio.create_task(resync.run_when(self._preconditions.recovered), name="recovery")
        proving = asyncio.create_task(self._end_proofs(), name="end of proofs")
        # Let the workers start: at its end kopf waits for, and then cancels, all tasks that are younger than itself.
        await asyncio.sleep(0)
        _log.info("leading", extra={"instance": configuration.instance, "namespaces": configuration.namespaces})
        try:
            await self._watch()
        finally:
            for task in (resyncing, recovering, proving):
                task.cancel()
            await self._queue.shut_down()
            await workers
            await self._proofs.close()
        _log.info("stopped")

    async def _end_proofs(self) -> None:
        """End what is under way as soon as the process is to stop: kopf would wait for it."""
        await self._surroundings.stop.wait()
        await self._proofs.close()

    async def _watch(self) -> None:
        configuration = self._surroundings.configuration
        missing_changed = partial(self._health.set_missing, "kinds")
        await until_served(self._api, stop=self._surroundings.stop, missing_changed=missing_changed)
        login = login_handler(self._surroundings.credentials)
        await kopf.operator(
            registry=informer_registry(self._queue, login=login, own_writes=self._own_writes),
            settings=informer_settings(watch_list=False),
            standalone=True,
            # Left out, kopf asks the system for a user name, which a container's user need not have.
            identity=configuration.instance,  # type: ignore[arg-type]  # kopf does not export the type
            clusterwide=not configuration.namespaces,
            namespaces=tuple(configuration.namespaces),
            stop_flag=self._surroundings.stop,
        )

    async def _reconcile(self, key: Key) -> Result:
        if key.kind == "ModelArtifact":
            return await self._artifacts.reconcile(key)
        return await self._models.reconcile(key)
