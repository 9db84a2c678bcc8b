"""Ed25519 signatures (RFC 8032), with the one library that is not of the standard library.

It is imported only when a signature is to be checked; without it nothing else is lost.
"""

from __future__ import annotations


class NoLibrary(Exception):
    """Signatures cannot be checked here: `cryptography` is not there or does not work."""


def holds(public: bytes, signature: bytes, message: bytes) -> bool:
    """Say whether a signature is that of a message under a public key of 32 bytes.

    Raises NoLibrary.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except Exception as error:  # an installation that is damaged fails in ways of its own
        raise NoLibrary(f"{type(error).__name__}: {error}") from None
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
