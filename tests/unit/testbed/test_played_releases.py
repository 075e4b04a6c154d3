"""The simulator's rows are rows of the operator's capability table."""

from specdec_operator.runtimes.release import Release
from testbed.played_releases import other_releases
from testbed.runtime.image_config import PLAYED
from testbed.session import simulator_release


def test_every_image_has_its_row() -> None:
    rows = [Release.model_validate(row) for row in (simulator_release(PLAYED[0].reference), *other_releases())]
    images = {image for row in rows for image in (row.image, row.vllm.image if row.vllm else None) if image}
    assert images == {each.reference for each in PLAYED}


def test_a_row_says_the_version_that_its_image_plays() -> None:
    versions = {each.reference: each.version for each in PLAYED}
    for row in map(Release.model_validate, (simulator_release(PLAYED[0].reference), *other_releases())):
        if row.vllm:
            assert row.vllm.version == versions[row.vllm.image]
        if row.image:
            assert row.tensorrt_llm == versions[row.image]
