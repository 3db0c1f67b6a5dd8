"""Keeps OpenStack's secrets in a KMIP server through Barbican's plugin."""

import base64
import os

from barbican.plugin import kmip_secret_store as kmip
from barbican.plugin.interface import secret_store as ss
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import rsa

directory = os.environ["CLIENT"]
settings = {
    "host": "localhost",
    "port": int(os.environ["PORT"]),
    "certfile": f"{directory}/client.crt",
    "keyfile": f"{directory}/client.key",
    "ca_certs": os.environ["CA"],
    # Sent beside the certificate, and no proof of anything.
    "username": "barbican",
    "password": "any",
}
# It refuses a key that its owner could change.
os.chmod(settings["keyfile"], 0o400)
for name, value in settings.items():
    kmip.CONF.set_override(name, value, "kmip_plugin")
store = kmip.KMIPSecretStore(kmip.CONF)

made = store.generate_symmetric_key(ss.KeySpec(ss.KeyAlgorithm.AES, 256))
assert len(base64.b64decode(store.get_secret(ss.SecretType.SYMMETRIC, made).secret)) == 32
store.delete_secret(made)
pair = store.generate_asymmetric_key(ss.KeySpec(ss.KeyAlgorithm.RSA, 2048))
for half in (pair.private_key_meta, pair.public_key_meta):
    store.delete_secret(half)

key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
private = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
public = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
with open(os.environ["CA"], "rb") as file:
    certificate = file.read()
spec = ss.KeySpec(ss.KeyAlgorithm.RSA, 2048)
for kind, secret, its in (
    (ss.SecretType.SYMMETRIC, bytes(range(32)), ss.KeySpec(ss.KeyAlgorithm.AES, 256)),
    (ss.SecretType.PASSPHRASE, b"a passphrase", ss.KeySpec()),
    (ss.SecretType.OPAQUE, os.urandom(100), ss.KeySpec()),
    (ss.SecretType.PRIVATE, private, spec),
    (ss.SecretType.PUBLIC, public, spec),
    (ss.SecretType.CERTIFICATE, certificate, ss.KeySpec()),
):
    kept = store.store_secret(ss.SecretDTO(kind, base64.b64encode(secret), its, None))
    read = base64.b64decode(store.get_secret(kind, kept).secret)
    assert read.strip() == secret.strip(), kind
    store.delete_secret(kept)
    try:
        store.get_secret(kind, kept)
    except ss.SecretGeneralException:
        continue
    raise AssertionError(f"{kind} was read after its deletion")
print("done")
