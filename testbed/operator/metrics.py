"""The operator's metrics: its requests to the API server as they count them, and gauges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from specdec_operator.cluster.resources import REVIEWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client.samples import Sample

READS = frozenset({"get", "list"})
UNCOUNTED = frozenset({"leases", *(review.plural for review in REVIEWS)})


@dataclass(frozen=True)
class Requests:
    """Counted requests.

    Attributes:
        counts: number by verb, plural and HTTP code.
    """

    counts: Mapping[tuple[str, str, str], int]

    def since(self, earlier: Requests) -> Requests:
        """Return those that came after an earlier count."""
        later = {key: count - earlier.counts.get(key, 0) for key, count in self.counts.items()}
        return Requests({key: count for key, count in later.items() if count})

    def writes(self) -> dict[str, int]:
        """Return the writes as `verb plural: number`; the leader's Lease is its own business, and a review is none."""
        found: dict[str, int] = {}
        for (verb, plural, _code), count in self.counts.items():
            if verb not in READS and plural not in UNCOUNTED:
                found[f"{verb} {plural}"] = found.get(f"{verb} {plural}", 0) + count
        return found

    def with_code(self, code: str) -> dict[str, int]:
        """Return the requests that were answered with an HTTP code, as `verb plural: number`."""
        return {f"{verb} {plural}": count for (verb, plural, got), count in self.counts.items() if got == code}

    def pairs(self) -> set[tuple[str, str]]:
        """Return each verb and plural that was asked for."""
        return {(verb, plural) for verb, plural, _code in self.counts}


async def read_requests(url: str) -> Requests:
    """Read the metrics endpoint."""
    return Requests(
        {
            (sample.labels["verb"], sample.labels["resource"], sample.labels["code"]): int(sample.value)
            for sample in await _samples(url, "rest_client_requests_total")
        }
    )


async def read_gauge(url: str, metric: str, labels: Mapping[str, str]) -> float | None:
    """Read one gauge of the metrics endpoint; None if it is not there."""
    found = [sample.value for sample in await _samples(url, metric) if labels.items() <= sample.labels.items()]
    return float(found[0]) if found else None


async def _samples(url: str, metric: str) -> list[Sample]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        text = await response.text()
    families = text_string_to_metric_families(text)
    return [sample for family in families for sample in family.samples if sample.name == metric]
