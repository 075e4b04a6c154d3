from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from specdec_operator.cli.documents import read_documents
from specdec_operator.cli.main import main
from tests.golden.manifests import EXAMPLES, ROOT, render

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

EXAMPLE = ROOT / "examples" / "baseline-llm-api.yaml"
FACTS = ROOT / "examples" / "facts" / "baseline-llm-api.yaml"
MODELS = ROOT / "testbed" / "hub" / "models" / "specdec-testbed"
BASELINE = """\
apiVersion: specdec.dev/v1alpha1
kind: SpeculativeModel
metadata: {name: baseline}
spec:
  target: {source: {huggingFace: {repository: a/b}}}
  speculation: {method: None}
  storage: {claimName: store}
"""


class Command:
    """Runs `specdec render`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: Sequence[str] | str | Path) -> tuple[int, list[dict[str, Any]], str]:
        code = main(["render", *map(str, arguments)])
        said = self._capsys.readouterr()
        return code, list(yaml.load_all(said.out, Loader=yaml.CSafeLoader)), said.err


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    file = tmp_path / "baseline.yaml"
    file.write_text(BASELINE)
    return file


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_what_is_printed_reads_back_as_what_is_applied(command: Command, example: Path) -> None:
    code, objects, _ = command(example, "--facts", example.parent / "facts" / example.name)

    assert (code, objects) == (0, render(example)[0])


def test_without_facts_what_is_missing_is_said_on_standard_error(command: Command) -> None:
    code, objects, said = command(EXAMPLE)

    assert (code, objects) == (3, render(EXAMPLE, with_facts=False)[0])
    assert f"{EXAMPLE}:llama-8b-baseline: missing: the target's facts" in said


def test_a_refused_model_prints_every_field_and_no_object(command: Command, baseline: Path) -> None:
    baseline.write_text(f'{BASELINE}  runtime: {{release: "99.01"}}\n  pod: {{labels: {{specdec.dev/a: b}}}}\n')
    code, objects, said = command(baseline)

    assert (code, objects) == (1, [])
    assert [line.split(": ")[1] for line in said.splitlines()] == [
        "spec.runtime.release",
        "spec.pod.labels[specdec.dev/a]",
    ]


def test_what_the_api_server_would_refuse_is_said_first(command: Command, baseline: Path) -> None:
    baseline.write_text(f"{BASELINE}  replicas: 65\n")
    code, objects, said = command(baseline)

    assert (code, objects) == (1, [])
    assert said == f"{baseline}:baseline: spec.replicas: must be at most 64; it is 65\n"


def test_metadata_that_is_no_metadata_is_said_with_its_field(command: Command, baseline: Path) -> None:
    baseline.write_text(BASELINE.replace("{name: baseline}", "{name: baseline, annotations: {specdec.dev/restart: 1}}"))
    code, _, said = command(baseline)

    assert (code, "metadata.annotations.specdec.dev/restart" in said) == (1, True)


def test_models_are_inspected_in_directories(command: Command, baseline: Path) -> None:
    code, objects, said = command(baseline, "--model-files", f"target={MODELS / 'tiny-llama'}")

    assert (code, objects[-1]["kind"]) == (3, "Deployment")
    assert said.count("missing:") == 1
    assert "the assembled model repository" in said


def test_directories_and_a_facts_file_are_joined(command: Command, baseline: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts.yaml"
    facts.write_text(f"assembly: '{'ab' * 32}'\n")
    code, objects, said = command(baseline, "--facts", facts, "--model-files", f"target={MODELS / 'tiny-llama'}")

    assert (code, objects[-1]["kind"]) == (0, "Deployment")
    assert "missing" not in said


def test_a_directory_of_another_model_than_the_facts_are_of_is_an_error(command: Command) -> None:
    code, objects, said = command(EXAMPLE, "--facts", FACTS, "--model-files", f"target={MODELS / 'tiny-llama'}")

    assert (code, objects) == (2, [])
    assert "the directory holds another model than the facts are of" in said


def test_a_directory_that_is_given_twice_is_an_error(command: Command, baseline: Path) -> None:
    given = ("--model-files", f"target={MODELS / 'tiny-llama'}")
    code, _, said = command(baseline, *given, *given)

    assert (code, "the target is given twice" in said) == (2, True)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_facts_of_another_example_are_refused(command: Command, example: Path) -> None:
    source = _target(example)
    other = next(other for other in EXAMPLES if _target(other) != source)
    code, objects, said = command(example, "--facts", example.parent / "facts" / other.name)

    assert (code, objects) == (2, [])
    assert "the facts of another model" in said


def _target(example: Path) -> object:
    return read_documents(str(example))[0].content["spec"]["target"]["source"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "somebody/else"}, "its target is somebody/else, the model's is meta-llama/Llama-3.1-8B-Instruct"),
        ({"source": "meta-llama"}, "its target is meta-llama, the model's is meta-llama/Llama-3.1-8B-Instruct"),
        ({"commit": "2" * 40}, f"its target is of commit {'2' * 40}, the model's of {'1' * 40}"),
    ],
)
def test_facts_that_name_another_model_are_refused(
    *, command: Command, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    manifest, facts = tmp_path / "model.yaml", tmp_path / "facts.yaml"
    model = yaml.safe_load(EXAMPLE.read_text())
    model["spec"]["target"]["source"]["huggingFace"]["revision"] = "1" * 40
    manifest.write_text(json.dumps(model))
    told = yaml.safe_load(FACTS.read_text())
    facts.write_text(json.dumps({**told, "target": {**told["target"], **change}}))
    code, _, error = command(manifest, "--facts", facts)

    assert (code, said in error) == (2, True)


def artifacts(objects: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """ModelArtifacts as a cluster has them, of what is rendered with facts."""
    made = [document for document in objects if document["kind"] == "ModelArtifact"]
    said = ({"facts": facts["target"]}, {"digest": facts["assembly"]})
    items = [{**document, "status": {"state": "Ready", **status}} for document, status in zip(made, said, strict=True)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_the_artifacts_of_a_cluster_are_facts(command: Command, tmp_path: Path) -> None:
    facts = yaml.safe_load(FACTS.read_text())
    facts["target"].pop("source")
    objects = command(EXAMPLE, "--facts", FACTS)[1]
    file = tmp_path / "artifacts.json"
    file.write_text(artifacts(objects, facts))

    assert command(EXAMPLE, "--facts", file)[:2] == (0, objects)


def test_the_artifacts_of_another_model_are_not_facts(command: Command, baseline: Path, tmp_path: Path) -> None:
    file = tmp_path / "artifacts.json"
    file.write_text(artifacts(command(EXAMPLE, "--facts", FACTS)[1], yaml.safe_load(FACTS.read_text())))
    code, _, said = command(baseline, "--facts", file)

    assert (code, "missing: the target's facts: status.facts of the ModelArtifact model-" in said) == (3, True)


def test_wrong_artifacts_are_named(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "artifacts.yaml"
    file.write_text("kind: ModelArtifact\nmetadata: {name: model-a}\nstatus: {facts: {layers: many}}\n")
    code, _, said = command(EXAMPLE, "--facts", file)

    assert (code, said.startswith(f"{file}:model-a: status.facts.")) == (2, True)


def test_a_pair_that_fits_says_so_on_standard_error(command: Command) -> None:
    example = EXAMPLE.with_name("eagle3-llama-3.1-8b.yaml")
    code, _, said = command(example, "--facts", FACTS.with_name(example.name))

    assert code == 0
    assert said.startswith(f"{example}:llama-8b: Verified: head and target share hidden size 4096")


def test_what_holds_a_placeholder_says_what_is_missing(command: Command, baseline: Path) -> None:
    engine = "  runtime: {backend: TensorRTEngine}\n  placement: {gpu: {product: NVIDIA-A10}}\n"
    baseline.write_text(BASELINE + engine)
    _, objects, said = command(baseline, "--model-files", f"target={MODELS / 'tiny-llama'}")
    marked = {
        (document["kind"], document["metadata"]["name"].partition("-")[0]): document["metadata"]["annotations"][
            "specdec.dev/placeholder"
        ]
        for document in objects
        if "specdec.dev/placeholder" in document["metadata"].get("annotations", {})
    }

    assert [line.partition("missing: ")[2].partition(":")[0] for line in said.splitlines()[1:]] == [
        "the target's commit, which its engine is named after",
        "the digest of the target-engine",
        "the digest of the assembled model repository",
    ]
    assert marked == {
        ("ModelArtifact", "engine"): "the target's commit, which its engine is named after",
        ("ConfigMap", "engine"): "the target's commit, which its engine is named after",
        ("Job", "engine"): "the target's commit, which its engine is named after",
        **dict.fromkeys(
            (("ControllerRevision", "baseline"), ("ConfigMap", "baseline"), ("Deployment", "baseline")),
            "the target's commit, which its engine is named after; the digest of the target-engine; "
            "the digest of the assembled model repository",
        ),
    }


def test_objects_are_printed_in_json_as_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    main(["render", str(EXAMPLE), "--facts", str(FACTS), "-o", "json"])
    listed = json.loads(capsys.readouterr().out)

    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert listed["items"] == render(EXAMPLE)[0]


def test_objects_are_named_as_kubectl_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    main(["render", str(EXAMPLE), "--facts", str(FACTS), "-o", "name"])
    names = capsys.readouterr().out.splitlines()

    assert names[0] == "persistentvolumeclaim/specdec-store"
    assert names[-1] == "deployment.apps/llama-8b-baseline-serving"


def test_every_model_of_a_file_is_rendered(command: Command, baseline: Path) -> None:
    baseline.write_text(f"{BASELINE}---\nkind: ConfigMap\napiVersion: v1\n---\n{BASELINE.replace('baseline', 'other')}")
    code, objects, said = command(baseline)

    assert (code, len([document for document in objects if document["kind"] == "Job"])) == (3, 2)
    assert [line.split(": ")[0] for line in said.splitlines()] == [f"{baseline}:baseline", f"{baseline}:other"]


def test_facts_of_a_directory_are_found_by_the_model_s_name(command: Command, baseline: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts"
    facts.mkdir()
    target = yaml.safe_load(FACTS.read_text())["target"]
    (facts / "other.yaml").write_text(json.dumps({"target": {**target, "source": "a/b"}, "assembly": "ab" * 32}))
    baseline.write_text(f"{BASELINE}---\n{BASELINE.replace('baseline', 'other')}")
    _, objects, said = command(baseline, "--facts", facts)

    assert [d["metadata"]["name"] for d in objects if d["kind"] == "Deployment"] == ["other-serving"]
    assert "missing: the target's facts" in said


def test_what_can_not_be_read_hides_no_model(command: Command, baseline: Path) -> None:
    baseline.write_text(f"{BASELINE}---\na: [\n")
    code, objects, said = command(baseline)

    assert (code, objects[-1]["kind"]) == (2, "Job")
    assert said.startswith(f"{baseline}:10: did not find")


def test_a_directory_of_the_hub_s_cache_tells_its_commit(command: Command, baseline: Path, tmp_path: Path) -> None:
    engine = "  runtime: {backend: TensorRTEngine}\n  placement: {gpu: {product: NVIDIA-A10}}\n"
    baseline.write_text(BASELINE + engine)
    copied = tmp_path / "copy" / ("1" * 40)
    copied.mkdir(parents=True)
    for file in (MODELS / "tiny-llama").iterdir():
        (copied / file.name).symlink_to(file)
    _, objects, _ = command(baseline, "--model-files", f"target={copied}")

    assert "Engine" in [document["spec"].get("type") for document in objects if document["kind"] == "ModelArtifact"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--facts", "missing.yaml"], "missing.yaml: No such file"),
        (["--model-files", "teacher=/tmp"], "write target=DIRECTORY or draft=DIRECTORY"),
        (["--model-files", "target"], "write target=DIRECTORY or draft=DIRECTORY"),
        (["--model-files", "target=/nowhere"], "NotAModel"),
        (["--configuration", "missing.yaml"], "missing.yaml"),
    ],
)
def test_what_can_not_be_read_is_said(command: Command, arguments: list[str], said: str) -> None:
    code, objects, error = command(EXAMPLE, *arguments)

    assert (code, objects) == (2, [])
    assert said in error


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vocabularySize": None}, "target.vocabularySize"),
        ({"vocabulary": 3}, "target.vocabulary: unknown field; did you mean vocabularySize?"),
        ({"layers": "many"}, "target.layers"),
    ],
)
def test_wrong_facts_are_named(command: Command, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    facts = yaml.safe_load(FACTS.read_text())
    file = tmp_path / "facts.yaml"
    file.write_text(json.dumps({"target": {k: v for k, v in {**facts["target"], **change}.items() if v is not None}}))
    code, _, error = command(EXAMPLE, "--facts", file)

    assert (code, said in error) == (2, True)


def test_a_file_without_a_model_is_said(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    code, _, said = command(file)

    assert (code, said) == (2, f"{file}: no SpeculativeModel in it\n")


def test_the_configuration_gives_the_defaults(command: Command, baseline: Path, tmp_path: Path) -> None:
    baseline.write_text(BASELINE.replace("  storage: {claimName: store}\n", ""))
    configuration = tmp_path / "configuration.yaml"
    configuration.write_text("storage: {claim: {claimName: shared, size: 5Gi}}\n")
    _, objects, _ = command(baseline, "--configuration", configuration)

    assert objects[0]["metadata"]["name"] == "shared"


def test_objects_are_in_the_namespace_that_is_given(command: Command, baseline: Path) -> None:
    _, objects, _ = command(baseline, "--namespace", "team")

    assert {document["metadata"]["namespace"] for document in objects} == {"team"}


def test_a_file_s_own_namespace_is_not_overruled(command: Command, baseline: Path) -> None:
    baseline.write_text(BASELINE.replace("{name: baseline}", "{name: baseline, namespace: mine}"))
    code, _, said = command(baseline, "--namespace", "team")

    assert (code, "metadata.namespace is mine" in said) == (2, True)


def test_a_model_is_rendered_quickly_and_without_a_cluster_s_libraries() -> None:
    program = (
        "import sys; from specdec_operator.cli.main import main; code = main(sys.argv[1:]); "
        "loaded = {'kopf', 'kubernetes', 'aiohttp', 'tritonclient'} & set(sys.modules); "
        "sys.exit(f'{loaded} loaded' if loaded else code)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    subprocess.run(
        [sys.executable, "-c", program, "render", str(EXAMPLE), "--facts", str(FACTS)],
        check=True,
        stdout=subprocess.DEVNULL,
    )

    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Seconds of a processor, of which a machine with much else to do gives more than the one of an idle machine.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def test_several_files_are_rendered_with_a_directory_of_facts(command: Command) -> None:
    code, objects, _ = command("--facts", FACTS.parent, EXAMPLE, EXAMPLE.with_name("baseline-engine.yaml"))

    names = [document["metadata"]["name"] for document in objects if document["kind"] == "Deployment"]
    assert (code, names) == (0, ["llama-8b-baseline-serving", "llama-70b-baseline-serving"])


def test_several_files_with_the_facts_of_one_are_refused(command: Command) -> None:
    code, _, said = command("--facts", FACTS, EXAMPLE, EXAMPLE)

    assert (code, "for several models give a directory" in said) == (2, True)


def test_a_model_without_a_file_in_the_directory_of_facts_says_what_is_missing(
    command: Command, tmp_path: Path
) -> None:
    code, _, said = command("--facts", tmp_path, EXAMPLE)

    assert (code, "the target's facts" in said) == (3, True)


def test_a_pod_with_more_gpus_than_usual_nodes_have_is_noted(command: Command, baseline: Path) -> None:
    baseline.write_text(BASELINE.replace("a/b}}", "a/b}}, parallelism: {tensor: 16}"))

    assert "spec.target.parallelism: each pod asks for 16 GPUs" in command(baseline)[2]
