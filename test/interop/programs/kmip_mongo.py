"""Makes data keys of MongoDB's client-side encryption with libmongocrypt, and opens them: a KMIP server has the keys."""

import os
import socket
import ssl

import bson
from pymongocrypt.explicit_encrypter import ExplicitEncrypter
from pymongocrypt.mongocrypt import MongoCryptOptions
from pymongocrypt.state_machine import MongoCryptCallback

directory = os.environ["CLIENT"]
endpoint = f"localhost:{os.environ['PORT']}"


class Callback(MongoCryptCallback):
    def __init__(self):
        self.keys = []

    def kms_request(self, kms_context):
        context = ssl.create_default_context(cafile=os.environ["CA"])
        context.load_cert_chain(f"{directory}/client.crt", f"{directory}/client.key")
        host, port = kms_context.endpoint.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as plain:
            with context.wrap_socket(plain, server_hostname=host) as connection:
                connection.sendall(kms_context.message)
                while kms_context.bytes_needed > 0:
                    data = connection.recv(kms_context.bytes_needed)
                    if not data:
                        raise OSError("the connection was closed")
                    kms_context.feed(data)

    def collection_info(self, *_):
        return None

    def mark_command(self, *_):
        return None

    def fetch_keys(self, _):
        yield from self.keys

    def insert_data_key(self, data_key):
        key = bytes(data_key)
        self.keys.append(key)
        return bson.decode(key)["_id"]

    def bson_encode(self, doc):
        return bson.encode(doc)

    def close(self):
        pass


def crypt(callback):
    options = MongoCryptOptions({"kmip": {"endpoint": endpoint}})
    return ExplicitEncrypter(callback, options)


for master in ({}, {"delegated": True}):
    callback = Callback()
    encrypter = crypt(callback)
    key_id = encrypter.create_data_key("kmip", master_key=master)
    value = bson.encode({"v": "payroll"})
    sealed = encrypter.encrypt(value, "AEAD_AES_256_CBC_HMAC_SHA_512-Random", key_id=bytes(key_id))
    encrypter.close()
    again = crypt(callback)
    assert bson.decode(again.decrypt(sealed)) == {"v": "payroll"}, "a new instance opens it"
    again.close()
