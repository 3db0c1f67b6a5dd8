# Tink's AEAD of AWS KMS, and its envelope over it.
import os, sys
import boto3, tink
from tink import aead
from tink.integration import awskms
aead.register()
client = awskms.new_client(boto3_client=boto3.client('kms'), key_uri='aws-kms://' + os.environ['KEY_ARN'])
remote = client.get_aead('aws-kms://' + os.environ['KEY_ARN'])
envelope = aead.KmsEnvelopeAead(aead.aead_key_templates.AES256_GCM, remote)
for cipher in [remote, envelope]:
    for plaintext, data in [(b'payroll', b'row 7'), (b'payroll', b'')]:
        made = cipher.encrypt(plaintext, data)
        assert cipher.decrypt(made, data) == plaintext
        for wrong in [(made, b'row 8'), (made[:-1] + bytes([made[-1] ^ 1]), data)]:
            try:
                cipher.decrypt(*wrong)
                sys.exit('expected a refusal')
            except tink.TinkError:
                pass
