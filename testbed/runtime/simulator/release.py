"""The release that the simulator plays."""

from typing import Final

TRITON_RELEASE: Final = "26.02"
TRITON_SERVER_VERSION: Final = "2.51.0"
TENSORRT_LLM_VERSION: Final = "1.1.0"
IMAGE_REFERENCE: Final = f"specdec.dev/testbed/tritonserver:{TRITON_RELEASE}-trtllm-python-py3"
VLLM_VERSION: Final = "0.15.1"
VLLM_IMAGE_REFERENCE: Final = f"specdec.dev/testbed/tritonserver:{TRITON_RELEASE}-vllm-python-py3"
ENGINE_MAGIC: Final = "SPECDEC-SIMULATOR-ENGINE"
LOG_PREFIX: Final = "[simulator]"
