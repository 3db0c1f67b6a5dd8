"""Works with a KMIP server through PyKMIP, in each version that it speaks."""

import os

from kmip.core import enums
from kmip.core.attributes import Name
from kmip.core.factories.attributes import AttributeFactory
from kmip.pie import objects
from kmip.pie.client import ProxyKmipClient
from kmip.pie.exceptions import KmipOperationFailure

directory = os.environ["CLIENT"]
mask = enums.CryptographicUsageMask
aes = enums.CryptographicAlgorithm.AES
rsa = enums.CryptographicAlgorithm.RSA
make = AttributeFactory().create_attribute


def client(version):
    return ProxyKmipClient(
        hostname="localhost",
        port=int(os.environ["PORT"]),
        cert=f"{directory}/client.crt",
        key=f"{directory}/client.key",
        ca=os.environ["CA"],
        ssl_version="PROTOCOL_TLSv1_2",
        kmip_version=version,
    )


def refused(reasons, call, *arguments):
    try:
        call(*arguments)
    except KmipOperationFailure as failure:
        assert failure.reason in reasons, failure
        return
    raise AssertionError("it was done")


def life(c, name):
    key = c.create(aes, 256, name=name, cryptographic_usage_mask=[mask.ENCRYPT, mask.DECRYPT, mask.DERIVE_KEY])
    assert len(c.get(key).value) == 32
    named = make(enums.AttributeType.NAME, Name.create(name, enums.NameType.UNINTERPRETED_TEXT_STRING))
    assert c.locate(attributes=[named]) == [key]
    assert "State" in c.get_attribute_list(key)
    c.activate(key)
    # Version 2.0 has a finer word for it.
    denied = (enums.ResultReason.PERMISSION_DENIED, enums.ResultReason.WRONG_KEY_LIFECYCLE_STATE)
    refused(denied, c.activate, key)
    next_key = c.rekey(uid=key, offset=0)
    assert next_key != key
    c.revoke(enums.RevocationReasonCode.CESSATION_OF_OPERATION, uid=key)
    c.destroy(key)
    return next_key


def registered(c, name):
    for given in (
        objects.SymmetricKey(aes, 128, b"\x01" * 16, masks=[mask.ENCRYPT], name=name + " key"),
        objects.SecretData(b"secret", enums.SecretDataType.PASSWORD, masks=[mask.DERIVE_KEY], name=name + " secret"),
        objects.OpaqueObject(b"opaque", enums.OpaqueDataType.NONE, name=name + " opaque"),
    ):
        uid = c.register(given)
        assert c.get(uid).value == given.value


def work(c, name):
    key = c.create(aes, 256, name=name + " works", cryptographic_usage_mask=[mask.ENCRYPT, mask.DECRYPT])
    c.activate(key)
    how = {
        "cryptographic_algorithm": aes,
        "block_cipher_mode": enums.BlockCipherMode.CBC,
        "padding_method": enums.PaddingMethod.PKCS5,
    }
    sealed, iv = c.encrypt(b"hello", uid=key, cryptographic_parameters=how)[:2]
    assert c.decrypt(sealed, uid=key, cryptographic_parameters=how, iv_counter_nonce=iv) == b"hello"
    public, private = c.create_key_pair(
        rsa, 2048, private_usage_mask=[mask.SIGN], public_usage_mask=[mask.VERIFY], public_name=name, private_name=name
    )
    c.activate(public)
    c.activate(private)
    scheme = {
        "cryptographic_algorithm": rsa,
        "padding_method": enums.PaddingMethod.PSS,
        "hashing_algorithm": enums.HashingAlgorithm.SHA_256,
    }
    signature = c.sign(b"message", uid=private, cryptographic_parameters=scheme)
    valid = c.signature_verify(b"message", signature, uid=public, cryptographic_parameters=scheme)
    assert valid == enums.ValidityIndicator.VALID
    hmac = enums.CryptographicAlgorithm.HMAC_SHA256
    mac = c.create(hmac, 256, name=name + " mac", cryptographic_usage_mask=[mask.MAC_GENERATE])
    c.activate(mac)
    assert len(c.mac(b"data", uid=mac, algorithm=hmac)[1]) == 32


for version in enums.KMIPVersion:
    with client(version) as c:
        life(c, f"key {version.name}")
        registered(c, version.name)
        if version not in (enums.KMIPVersion.KMIP_1_0, enums.KMIPVersion.KMIP_1_1):
            work(c, f"work {version.name}")
