"""Keys that renters put on machines: one strong public key without options, or a clear word why not."""

import base64
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from marketplace.ssh_keys import KeyRefused, checked_key


def public(private) -> str:
    return private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def on_a_token(kind: str, *parts: bytes) -> str:
    """Return a key of a security token, as `ssh-keygen -t ed25519-sk` writes it."""
    blob = b"".join(struct.pack(">I", len(part)) + part for part in (kind.encode(), *parts))
    return f"{kind} {base64.b64encode(blob).decode()}"


ED25519 = public(ed25519.Ed25519PrivateKey.from_private_bytes(b"\x05" * 32))  # the same one each run: it names tests
RSA_3072 = public(rsa.generate_private_key(public_exponent=65537, key_size=3072))
RSA_2048 = public(rsa.generate_private_key(public_exponent=65537, key_size=2048))
P256 = public(ec.generate_private_key(ec.SECP256R1()))
POINT = ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
SK_ED25519 = on_a_token("sk-ssh-ed25519@openssh.com", b"\x07" * 32, b"ssh:")
SK_P256 = on_a_token("sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", POINT, b"ssh:")


@pytest.mark.parametrize(
    "key", [ED25519, RSA_3072, P256, SK_ED25519, SK_P256], ids=["ed25519", "rsa", "p256", "sk-ed25519", "sk-p256"]
)
def test_a_key_that_is_strong_today_is_taken_with_its_comment(key):
    assert checked_key(f"  {key} ana@laptop é\n") == f"{key} ana@laptop é"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "unknown_kind"),
        ("ssh-ed25519", "invalid"),
        ("ssh-ed25519 ", "invalid"),
        ("ssh-ed25519 AAAA", "invalid"),
        ("ssh-ed25519 not-base64!", "invalid"),
        (f"ssh-rsa {ED25519.split()[1]}", "invalid"),
        (RSA_2048, "too_weak"),
        ("ssh-dss AAAAB3NzaC1kc3M", "unknown_kind"),
        (f'command="rm -rf /" {ED25519}', "unknown_kind"),
        (f"no-pty,{ED25519}", "unknown_kind"),
        (f"{ED25519}\n{ED25519}", "invalid"),
        (f"{ED25519} tab\there", "invalid"),
        (f"{ED25519} {'x' * 800}", "invalid"),
        (f"{ED25519} \x00", "invalid"),
        ("sk-ssh-ed25519@openssh.com AAAA", "invalid"),
        ("sk-ssh-ed25519@openssh.com whatever", "invalid"),
        (f"sk-ssh-ed25519@openssh.com {ED25519.split()[1]}", "invalid"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "unknown_kind"),
    ],
)
def test_everything_else_is_refused_with_a_reason(text, code):
    with pytest.raises(KeyRefused) as refused:
        checked_key(text)
    assert refused.value.code == code
    assert str(refused.value)


def test_a_private_key_is_never_taken():
    private = ed25519.Ed25519PrivateKey.generate()
    text = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    with pytest.raises(KeyRefused):
        checked_key(text)
