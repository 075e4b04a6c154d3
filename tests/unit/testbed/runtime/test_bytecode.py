from pathlib import Path

import pytest

from testbed.runtime.bytecode import layer_key, with_bytecode
from testbed.runtime.layer_tar import LayerFile, content_key


@pytest.mark.parametrize("path", ["app/all_models/llmapi/tensorrt_llm/1/model.py", "opt/specdec-simulator/table.yaml"])
def test_what_no_program_imports_is_not_compiled(tmp_path: Path, path: str) -> None:
    files = (LayerFile(path, Path(__file__)),)
    with with_bytecode(files, debian=tmp_path / "none.tar", progress=print) as compiled:
        assert compiled == files


def test_a_layer_s_key_is_not_that_of_its_files_without_bytecode() -> None:
    files = (LayerFile("opt/specdec-simulator/module.py", Path(__file__)),)
    assert layer_key(files) != content_key(files)
