"""SSH public keys of renters: one key, of a kind that is strong today, without options. Pure."""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from django.utils.translation import gettext as _

_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
_LEAST_RSA_BITS = 3072
_LONGEST = 800


class KeyRefused(ValueError):
    """This is not a key we put on a machine; `code` names why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def checked_key(text: str) -> str:
    """Return the key as `kind base64 comment`. Raises KeyRefused for options, weak or unreadable keys."""
    text = text.strip()
    if len(text) > _LONGEST or not text.isprintable():
        raise KeyRefused("invalid", _("Paste one public key, in one line."))
    kind, _space, rest = text.partition(" ")
    if kind not in _KINDS:
        raise KeyRefused(
            "unknown_kind", _("Start with the kind of key, such as ssh-ed25519; options before it are not taken.")
        )
    _refuse_weak(f"{kind} {rest.split(' ')[0]}")
    return text


def _refuse_weak(key: str) -> None:
    try:
        loaded = load_ssh_public_key(key.encode())
    except (ValueError, UnsupportedAlgorithm) as unreadable:
        raise KeyRefused("invalid", _("This key cannot be read.")) from unreadable
    if isinstance(loaded, rsa.RSAPublicKey) and loaded.key_size < _LEAST_RSA_BITS:
        raise KeyRefused("too_weak", _("RSA keys need %(bits)s bits or more.") % {"bits": _LEAST_RSA_BITS})
