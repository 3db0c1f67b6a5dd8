# MongoDB's client-side field level encryption with a master key of AWS KMS: libmongocrypt makes the requests, and a
# driver, here this program, carries them.
import os, socket, sys
from urllib.parse import urlparse
import bson
from bson.binary import Binary, UuidRepresentation
from bson.codec_options import CodecOptions
from pymongocrypt.binary import MongoCryptBinaryIn, MongoCryptBinaryOut
from pymongocrypt.errors import MongoCryptError
from pymongocrypt.mongocrypt import MongoCrypt, MongoCryptOptions
from pymongocrypt.options import DataKeyOpts
from pymongocrypt.synchronous.explicit_encrypter import ExplicitEncrypter
from pymongocrypt.synchronous.state_machine import MongoCryptCallback

address = urlparse(os.environ['AWS_ENDPOINT_URL_KMS'])

class Driver(MongoCryptCallback):
    def __init__(self):
        self.keys, self.altered = [], False

    def kms_request(self, request):
        with socket.create_connection((address.hostname, address.port)) as s:
            s.sendall(request.message)
            while request.bytes_needed > 0:
                request.feed(s.recv(min(request.bytes_needed, 4096)))

    def collection_info(self, database, filter):
        return None

    def mark_command(self, database, command):
        return command

    def fetch_keys(self, filter):
        for key in self.keys:
            if self.altered:
                document = bson.decode(key)
                document['keyMaterial'] = Binary(document['keyMaterial'][:-1] + bytes([document['keyMaterial'][-1] ^ 1]))
                yield bson.encode(document)
            else:
                yield key

    def insert_data_key(self, key):
        self.keys.append(bytes(key))
        return bson.decode(key)['_id']

    def bson_encode(self, document):
        return bson.encode(document)

    def close(self):
        pass

def encrypter(driver):
    secret = {'accessKeyId': os.environ['AWS_ACCESS_KEY_ID'], 'secretAccessKey': os.environ['AWS_SECRET_ACCESS_KEY']}
    return ExplicitEncrypter(driver, MongoCryptOptions({'aws': secret}))

driver = Driver()
one = encrypter(driver)
master = {'region': 'us-east-1', 'key': os.environ['KEY_ARN'], 'endpoint': address.netloc}
key_id = one.create_data_key('aws', master_key=master)
assert len(driver.keys) == 1
algorithm = 'AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic'
sealed = one.encrypt(bson.encode({'v': 'hunter2'}), algorithm, key_id=bytes(key_id))
assert b'hunter2' not in sealed
# Another client, that has to ask for the data key.
assert bson.decode(encrypter(driver).decrypt(sealed))['v'] == 'hunter2'
driver.altered = True
try:
    encrypter(driver).decrypt(sealed)
    sys.exit('expected a refusal')
except MongoCryptError:
    pass
