# AWS's Encryption SDK for Python: envelopes under data keys of the appliance. Prints one for another SDK.
import base64, os, sys
import aws_encryption_sdk
from aws_encryption_sdk import CommitmentPolicy, DiscoveryAwsKmsMasterKeyProvider, StrictAwsKmsMasterKeyProvider
client = aws_encryption_sdk.EncryptionSDKClient(commitment_policy=CommitmentPolicy.REQUIRE_ENCRYPT_REQUIRE_DECRYPT)
strict = StrictAwsKmsMasterKeyProvider(key_ids=[os.environ['KEY_ARN']])
other = StrictAwsKmsMasterKeyProvider(key_ids=[os.environ['OTHER_ARN']])
text = b'hunter2 ' * 1000
message, _ = client.encrypt(source=text, key_provider=strict, encryption_context={'app': 'pay'})
for provider in [strict, DiscoveryAwsKmsMasterKeyProvider()]:
    opened, header = client.decrypt(source=message, key_provider=provider)
    assert opened == text and header.encryption_context['app'] == 'pay'
both = StrictAwsKmsMasterKeyProvider(key_ids=[os.environ['KEY_ARN'], os.environ['OTHER_ARN']])
twice, _ = client.encrypt(source=text, key_provider=both)
assert client.decrypt(source=twice, key_provider=other)[0] == text
altered = message[:-200] + bytes([message[-200] ^ 1]) + message[-199:]
for wrong in [(message, other), (altered, strict)]:
    try:
        client.decrypt(source=wrong[0], key_provider=wrong[1])
        sys.exit('expected a refusal')
    except aws_encryption_sdk.exceptions.AWSEncryptionSDKClientError:
        pass
    except Exception as e:
        assert type(e).__name__ in ['InvalidTag', 'InvalidSignature'], repr(e)
print(base64.b64encode(client.encrypt(source=b'from Python', key_provider=strict)[0]).decode())
