from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specdec_operator.api.configuration import ConfigurationError, read_configuration

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "configuration.yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("resyncSecond: 60", "resyncSecond: unknown field; did you mean resyncSeconds?"),
        ("workers: many", "workers: must be a whole number; it is text ('many')"),
        ("workers: '8'", "workers: must be a whole number"),
        ("storage: {claim: {size: 500GB}}", "storage.claim.size: must be a quantity of bytes, as in"),
        ("storage: {}", "storage: give exactly one of claimName"),
        ("storage: {claimName: a, claim: {size: 5Gi}}", "storage: give exactly one of claimName"),
        ("namespaces: [Team A]", "namespaces[0]: must be lower-case letters"),
        ("instance: operator", "instance: must be NAMESPACE/NAME of this operator"),
        ("releases: [mine]", "releases[0]: must be a map"),
        ("- workers", "must be fields with values, as in 'workers: 8'"),
        ("workers: [", "did not find expected node content"),
        ("workers: 4\nworkers: 8\n", ":2: the key 'workers' occurs twice in one map"),
        ("workers: 4\n---\nworkers: 8\n", ":3: holds several documents"),
        ("gpuProduct: yes", 'gpuProduct: must be text, and YAML reads yes as true; quote it: "yes"'),
        ("max_jobs: 1\njob_attempts: 3", "job_attempts: unknown field; did you mean jobAttempts?"),
        ("claimName: a", "claimName: unknown field here; it belongs at storage.claimName"),
        (f"workers: {'[' * 100_000}", ":1: nested too deeply"),
        ("workers: &a [*a]", ":1: found unconstructable recursive node"),
    ],
)
def test_a_wrong_file_is_told_by_field_and_remedy(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError) as wrong:
        read_configuration(file)
    assert str(wrong.value).startswith(f"{file}:")
    assert said in str(wrong.value)


def test_all_that_is_wrong_is_told_at_once(file: Path) -> None:
    file.write_text("{workers: 0, jobAttempts: 99}")
    with pytest.raises(ConfigurationError) as wrong:
        read_configuration(file)
    assert {"workers:", "jobAttempts:"} <= set(str(wrong.value).split())


def test_a_missing_file_is_told(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_configuration(file)


def test_a_wrong_instance_is_told_without_a_file() -> None:
    with pytest.raises(ConfigurationError, match="the configuration: instance: must be NAMESPACE/NAME"):
        read_configuration(None, instance="operator")


def test_empty_fields_have_their_defaults(file: Path) -> None:
    file.write_text("{storage: , workers: , namespaces: , releases: }")
    assert read_configuration(file) == read_configuration(None)


def test_a_null_in_a_row_is_kept(file: Path) -> None:
    file.write_text('releases: [{name: "26.04-x", cuda: }]')
    assert read_configuration(file).releases == [{"name": "26.04-x", "cuda": None}]
