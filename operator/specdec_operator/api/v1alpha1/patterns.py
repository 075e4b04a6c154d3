r"""The shapes of strings, each with the words that a refusal says instead of a regular expression.

Every expression is anchored at both ends and keeps to what Rust's and Go's engines read alike: no look-around, no
`\w`, `\d` or `\s`, whose Unicode classes differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Pattern:
    """One shape.

    Attributes:
        expression: The regular expression.
        words: What it asks for, as it follows "must be".
    """

    expression: str
    words: str


DNS_SUBDOMAIN: Final = Pattern(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    "an object name: lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit",
)
RELATIVE_PATH: Final = Pattern(
    r"^[A-Za-z0-9_][A-Za-z0-9_.@+=-]*(/[A-Za-z0-9_][A-Za-z0-9_.@+=-]*)*$",
    "a path inside the volume, as in 'models/llama': no '/' at its beginning or end, no part that begins with '.', "
    "so no '..'",
)
RELATIVE_PATH_OR_ROOT: Final = Pattern(
    r"^([A-Za-z0-9_][A-Za-z0-9_.@+=-]*(/[A-Za-z0-9_][A-Za-z0-9_.@+=-]*)*)?$",
    "empty or a path inside the volume, as in 'models/llama': no '/' at its beginning or end, no part that begins "
    "with '.', so no '..'",
)
QUANTITY: Final = Pattern(
    r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
    "a quantity, as in '4', '500m' or '16Gi'",
)
BYTES: Final = Pattern(
    r"^([0-9]+|[0-9]+(\.[0-9]+)?(k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))$",
    "a quantity of bytes, as in '16Gi' or '500M' ('m' stands for thousandths)",
)
IMAGE_REFERENCE: Final = Pattern(
    r"^((\[[0-9a-fA-F:]+\]|[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(:[0-9]+)?/)?"
    r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$",
    "an image, as in 'registry.example.com/team/image:tag' or '…@sha256:…': its path has lower-case letters and "
    "digits, with single '.', '_' or '-' between them",
)
IMAGE_REPOSITORY: Final = Pattern(
    r"^((\[[0-9a-fA-F:]+\]|[a-zA-Z0-9][a-zA-Z0-9.-]*)(:[0-9]+)?/)?[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*$",
    "an image without its tag or digest, as in 'registry.example.com/team/image'",
)
LABEL_KEY: Final = Pattern(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
    "a label key: an optional DNS name and '/', then at most 63 letters, digits, '-', '_' and '.', "
    "beginning and ending with a letter or digit",
)
LABEL_VALUE: Final = Pattern(
    r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$",
    "empty or a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
)
RESOURCE_NAME: Final = Pattern(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/"
    r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
    "an extended resource: a DNS name, '/', and at most 63 letters, digits, '-', '_' and '.', as in 'nvidia.com/gpu'",
)
ENVIRONMENT_NAME: Final = Pattern(
    r"^[A-Za-z_][A-Za-z0-9_]*$",
    "a variable name: letters, digits and '_', not beginning with a digit",
)
ENVIRONMENT_VALUE: Final = Pattern(r"^[^\x00]*$", "text without the character NUL, which no process can be given")
SECRET_KEY: Final = Pattern(
    r"^(\.?[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$",
    "a key of a Secret: letters, digits, '-', '_' and '.', not beginning with '..'",
)
HUB_REPOSITORY: Final = Pattern(
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$",
    "owner and name, as in 'meta-llama/Llama-3.1-8B-Instruct'",
)
HUB_REVISION: Final = Pattern(
    r"^[A-Za-z0-9][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*$",
    "a branch, tag or commit: letters, digits, '-' and '_', with single '.' or '/' between them",
)
HUB_ENDPOINT: Final = Pattern(
    r"^https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?$",
    "an address without user, query or fragment, as in 'https://hub.example.com'",
)
HUB_ENDPOINT_OR_DEFAULT: Final = Pattern(
    r"^(https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?)?$",
    "empty or an address without user, query or fragment, as in 'https://hub.example.com'",
)
RELEASE: Final = Pattern(
    r"^[0-9]{2}\.[0-9]{2}(-[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$",
    'a Triton release, as in "26.04", in quotes so that YAML keeps it a string',
)
VERSION: Final = Pattern(
    r"^[0-9]+(\.[0-9]+)*([A-Za-z0-9.+-]*[A-Za-z0-9])?$",
    "a version, as in '1.2.0' or '1.2.0rc4'",
)
DRIVER: Final = Pattern(
    r"^[0-9]{1,4}(\.[0-9]{1,4}){0,3}$",
    'a version of the NVIDIA driver, as in "580" or "580.95.05", in quotes so that YAML keeps it a string',
)
COMPUTE_CAPABILITY: Final = Pattern(r"^[0-9]+\.[0-9]+$", 'a compute capability, as in "8.9", in quotes')
WORD: Final = Pattern(r"^[A-Za-z][A-Za-z0-9]*$", "one word of letters and digits that begins with a letter")
STEP_NAME: Final = Pattern(
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
    "a step's name: lower-case letters, digits and '-', beginning with a letter",
)
HEX_DIGEST: Final = Pattern(r"^[0-9a-f]*$", "a digest in lower-case hexadecimal digits")
FILE_PATTERN: Final = Pattern(
    r"^[A-Za-z0-9_.*?\[\]/@+=-]+$",
    "file names with '*', '?' and '[...]', as in '*.safetensors'",
)
BUILD_ARGUMENT: Final = Pattern(
    r"^[a-z][a-z0-9_]*$",
    "an option of trtllm-build without its dashes, as in 'multiple_profiles'",
)
BUILD_ARGUMENT_VALUE: Final = Pattern(
    r"^([A-Za-z0-9_.][A-Za-z0-9_.,:/+-]*)?$",
    "empty (a flag without a value) or a value of letters, digits and '_.,:/+-' that does not begin with '-'",
)
DNS_LABEL: Final = Pattern(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "lower-case letters, digits and '-', beginning and ending with a letter or digit",
)
DNS_LABEL_OR_EMPTY: Final = Pattern(
    r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$",
    "empty or lower-case letters, digits and '-', beginning with a letter and ending with a letter or digit",
)
IMAGE_DIGEST_OR_EMPTY: Final = Pattern(
    r"^(sha256:[0-9a-f]{64})?$",
    "empty or an image's digest, 'sha256:' and 64 lower-case hexadecimal digits",
)
OPERATOR_INSTANCE: Final = Pattern(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    "NAMESPACE/NAME of this operator, as in 'specdec-system/specdec-operator'",
)
PROMETHEUS_DURATION: Final = Pattern(
    r"^[0-9]+(ms|s|m|h)$",
    "a duration as Prometheus writes it, as in '30s'",
)

PATTERNS: Final = (
    DNS_SUBDOMAIN,
    RELATIVE_PATH,
    RELATIVE_PATH_OR_ROOT,
    QUANTITY,
    BYTES,
    IMAGE_REFERENCE,
    IMAGE_REPOSITORY,
    LABEL_KEY,
    LABEL_VALUE,
    RESOURCE_NAME,
    ENVIRONMENT_NAME,
    ENVIRONMENT_VALUE,
    SECRET_KEY,
    HUB_REPOSITORY,
    HUB_REVISION,
    HUB_ENDPOINT,
    HUB_ENDPOINT_OR_DEFAULT,
    RELEASE,
    VERSION,
    DRIVER,
    COMPUTE_CAPABILITY,
    WORD,
    STEP_NAME,
    HEX_DIGEST,
    FILE_PATTERN,
    BUILD_ARGUMENT,
    BUILD_ARGUMENT_VALUE,
    DNS_LABEL,
    DNS_LABEL_OR_EMPTY,
    IMAGE_DIGEST_OR_EMPTY,
    OPERATOR_INSTANCE,
    PROMETHEUS_DURATION,
)


def words_of(expression: str) -> str:
    """What a regular expression asks for, as it follows "must be".

    Raises:
        KeyError: The expression is none of PATTERNS.
    """
    return {pattern.expression: pattern.words for pattern in PATTERNS}[expression]
