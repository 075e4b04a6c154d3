"""The key that signs service account tokens."""

from __future__ import annotations

import base64
import secrets

# A SEC 1 private key on P-256 in DER, around its 32 bytes; readers derive the public half from them.
_PREFIX = bytes.fromhex("30310201010420")
_CURVE = bytes.fromhex("a00a06082a8648ce3d030107")
# The order of the group: private keys are 1 … order - 1.
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def new_signing_key() -> str:
    """Return a new P-256 private key in PEM."""
    scalar = 1 + secrets.randbelow(_ORDER - 1)
    der = _PREFIX + scalar.to_bytes(32, "big") + _CURVE
    body = base64.encodebytes(der).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{body}-----END EC PRIVATE KEY-----\n"
