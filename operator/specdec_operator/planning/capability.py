"""Whether a release can serve a method on a backend; if not, why, and what to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.refusal import Refusal

if TYPE_CHECKING:
    from specdec_operator.api.v1alpha1.runtime import Backend
    from specdec_operator.api.v1alpha1.speculation import Method
    from specdec_operator.planning.drivers import Drivers
    from specdec_operator.runtimes.release import Release
    from specdec_operator.runtimes.table import CapabilityTable

_RELEASE = "spec.runtime.release"
_OWN_ROW = "or describe an image of your own in the operator's configuration (releases)"


def refusals(
    method: Method, backend: Backend, release: Release, *, table: CapabilityTable, stock_image: bool
) -> list[Refusal]:
    """Why a release can't serve a method on a backend; empty if it can.

    Args:
        stock_image: Whether the release's own image is used, with its defects.
    """
    never = method_refusals(method, backend, table=table)
    if never:
        return never
    if release.support(backend) is None:
        return [_no_backend(method, backend, release, table)]
    if method not in release.methods(backend):
        return [_no_method(method, backend, release, table)]
    defect = release.blocking_defect(backend, method) if stock_image else None
    if defect is None:
        return []
    message = (
        f"the stock image of {release.name} can't serve {backend} ({defect.id}): {defect.remedy}; or leave "
        "runtime.release out"
    )
    return [Refusal(reason="ReleaseDefect", path=_RELEASE, message=message)]


def method_refusals(method: Method, backend: Backend, *, table: CapabilityTable) -> list[Refusal]:
    """Why no release at all serves a method on a backend; empty if one does."""
    if table.has_method(backend, method):
        return []
    why = table.words.of(method, backend).why or "no known release does"
    message = f"{backend} does not serve {method}: {why}{_instead(method, backend, table, joint='; use ')}"
    return [Refusal(reason="MethodNotOnBackend", path="spec.speculation.method", message=message)]


def default_refusals(method: Method, backend: Backend, *, table: CapabilityTable) -> list[Refusal]:
    """Why no release can be chosen for a method on a backend."""
    never = method_refusals(method, backend, table=table)
    if never:
        return never
    message = (
        f"every release that serves {method} on {backend} ({', '.join(table.with_method(backend, method))}) is a "
        "stand-in or has a known blocking defect, or is added by the operator's configuration: name one in "
        "runtime.release or in its defaultReleases; a defect needs a mended image in runtime.image"
    )
    return [Refusal(reason="ReleaseDefect", path=_RELEASE, message=message)]


def choice(method: Method, backend: Backend, release: Release, *, table: CapabilityTable, drivers: Drivers) -> str:
    """Why a release was chosen where a spec names none: what is inside, and what was passed over."""
    runtime = table.words.of_backend(backend).runtime
    run_by = f", run by {told}" if (told := drivers.told()) else ""
    said = (
        f"the newest release that serves {method} on {backend} without a known blocking defect{run_by} "
        f"({runtime} {release.version_for(backend)})"
    )
    names = [known.name for known in table.releases]
    newer = [table.releases[index] for index in range(names.index(release.name) + 1, len(names))]
    passed = [f"{other.name} ({_lack(method, backend, other, drivers)})" for other in newer if not other.simulator]
    lesser = [defect.id for defect in release.lesser_defects(backend, method)]
    return "; ".join(
        [
            said,
            *([f"passed over: {', '.join(passed)}"] if passed else []),
            *([f"known of it: {', '.join(lesser)}"] if lesser else []),
        ]
    )[:1024]


def _lack(method: Method, backend: Backend, release: Release, drivers: Drivers) -> str:
    if release.support(backend) is None:
        return f"no {backend}" if release.has_image_for(backend) else "no image"
    defect = release.blocking_defect(backend, method)
    if method not in release.methods(backend):
        return f"no {method}"
    if defect:
        return defect.id
    if not drivers.run(release):
        return f"needs driver {drivers.floor(release).minimum}"
    return "added by the configuration, and taken where it is named"


def _no_backend(method: Method, backend: Backend, release: Release, table: CapabilityTable) -> Refusal:
    words = table.words.of_backend(backend)
    use = f"use release {table.advisable(backend, method)}{_others(method, backend, release, table)}"
    if not release.has_image_for(backend):
        message = f"no stock image of {release.name} holds {words.runtime}: {words.without_image}; {use}, {_OWN_ROW}"
        return Refusal(reason="NoSuchImage", path=_RELEASE, message=message)
    version = release.version_for(backend) or release.tensorrt_llm or ""
    why = words.why_not(version) or "its row describes no such backend"
    message = f"{release.name} ({words.runtime} {version}) has no {backend}: {why}; {use}"
    return Refusal(reason="BackendNotInRelease", path=_RELEASE, message=message)


def _others(method: Method, backend: Backend, release: Release, table: CapabilityTable) -> str:
    """Backends that serve the same method in the same release."""
    others = [words.backend for words in table.words.backends if method in release.methods(words.backend)]
    return "".join(f", or {other} in {release.name}" for other in others if other != backend)


def _no_method(method: Method, backend: Backend, release: Release, table: CapabilityTable) -> Refusal:
    pair = table.words.of(method, backend)
    version = release.version_for(backend)
    why = pair.why_not(version)
    message = (
        f"{release.name} ({table.words.of_backend(backend).runtime} {version}) does not serve {method} on {backend}"
        f"{f': {why}' if why else ''}; use release {table.advisable(backend, method)}"
        f"{_instead(method, backend, table, joint=', or ')}"
    )
    return Refusal(reason="MethodNotInRelease", path=_RELEASE, message=message)


def _instead(method: Method, backend: Backend, table: CapabilityTable, *, joint: str) -> str:
    """What to use instead, with the releases that have it."""
    said = [
        f"{other.method} on {other.backend}{f' {other.how}' if other.how else ''} ({spans})"
        for other in table.words.of(method, backend).instead
        if (spans := table.advisable(other.backend, other.method))
    ]
    return f"{joint}{', or '.join(said)}" if said else ""
