"""Whether the runtime of a release knows the pair's architectures for the method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_operator.planning.refusal import Refusal
from specdec_operator.runtimes.architectures import known_architectures
from specdec_operator.runtimes.methods import load_methods

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specdec_operator.api.v1alpha1.model_facts import ModelFacts
    from specdec_operator.api.v1alpha1.speculative_model import SpeculativeModelSpec
    from specdec_operator.planning.resolution import Resolution
    from specdec_operator.runtimes.architectures import KnownArchitectures


def architecture_refusals(
    spec: SpeculativeModelSpec, resolution: Resolution, facts: Mapping[str, ModelFacts]
) -> list[Refusal]:
    """Targets and heads whose architecture the release's runtime does not know for the method."""
    version = resolution.release.version_for(resolution.backend)
    return [
        _unknown(known, facts[known.role], resolution)
        for known in known_architectures(resolution.backend, spec.speculation.method)
        if known.role in facts
        and not known.knows(facts[known.role].architecture, facts[known.role].model_type, version=version)
    ]


def _unknown(known: KnownArchitectures, fact: ModelFacts, resolution: Resolution) -> Refusal:
    runtime = load_methods().of_backend(known.backend).runtime
    version, release = resolution.release.version_for(known.backend), resolution.release.name
    family = f" ({fact.model_type})" if fact.model_type else ""
    use = "targets" if known.role == "target" else "heads"
    first = known.first(fact.architecture, fact.model_type)
    newer = f"from {runtime} {first} on it is: name a newer release in runtime.release"
    message = (
        f"{fact.architecture}{family} is not among the {use} of {known.method} in {runtime} {version} of release "
        f"{release}; {newer if first else 'nor in any other'}, or name another {known.role}, backend or method"
    )
    return Refusal(reason="UnsupportedArchitecture", path=f"spec.{known.role}.source", message=message)
