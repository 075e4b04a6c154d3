"""The lower precision that a model was published in."""

from pathlib import Path

from specdec_operator.pod.published_config import PublishedConfig, read_object


def published_quantization(config: PublishedConfig, directory: Path) -> str:
    """How a model was published in lower precision, as in `fp8` or `modelopt_nvfp4`; empty if it was not."""
    declared = config.part("quantization_config")
    method = str(declared.get("quant_method") or "").lower()
    algorithm = str(declared.get("quant_algo") or "").lower()
    file = directory / "hf_quant_config.json"
    if not method and file.is_file():
        inner = read_object(file).get("quantization")
        algorithm = str(inner.get("quant_algo") or "").lower() if isinstance(inner, dict) else ""
        method = "modelopt" if algorithm else ""
    name = f"{method}_{algorithm}" if method == "modelopt" and algorithm else method or algorithm
    if method == "fp8" and not declared.get("weight_block_size") and declared.get("activation_scheme"):
        # one scale for a whole tensor: not every runtime that knows a scale for each block knows it
        name = f"fp8_{declared['activation_scheme']}"
    return "".join(letter for letter in name if letter.isascii() and (letter.isalnum() or letter in "_-"))[:64]
