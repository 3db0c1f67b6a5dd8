# Calls AWS KMS through boto3: the life of keys, messages, data keys, signatures, MACs, names, errors. Prints what it made
# so that others check it.
import base64, json, boto3, sys
from botocore.exceptions import ClientError
c = boto3.client('kms')

def refused(name, call, said=''):
    try:
        call()
    except ClientError as e:
        assert e.response['Error']['Code'] == name, e
        assert isinstance(e, getattr(c.exceptions, name, ClientError)), type(e)
        assert said in str(e), e
        assert e.response['ResponseMetadata']['HTTPStatusCode'] < 500, e
        return
    sys.exit('expected ' + name)

key = c.create_key(Description='payroll', Tags=[{'TagKey': 'team', 'TagValue': 'pay'}])['KeyMetadata']
kid, arn = key['KeyId'], key['Arn']
assert key['KeyState'] == 'Enabled' and key['Enabled'] and key['EncryptionAlgorithms'] == ['SYMMETRIC_DEFAULT'], key
c.create_alias(AliasName='alias/boto3', TargetKeyId=kid)
refused('AlreadyExistsException', lambda: c.create_alias(AliasName='alias/boto3', TargetKeyId=arn))
refused('NotAuthorizedException', lambda: c.create_alias(AliasName='alias/aws/s3', TargetKeyId=kid))
alias_arn = [a['AliasArn'] for a in c.list_aliases(KeyId=kid)['Aliases'] if a['AliasName'] == 'alias/boto3'][0]
for ref in [kid, arn, 'alias/boto3', alias_arn]:
    assert c.describe_key(KeyId=ref)['KeyMetadata']['Arn'] == arn

# Messages.
context = {'app': 'pay', 'ü': 'ß', '\U0001f511': 'key', '\uffee': 'half'}
made = c.encrypt(KeyId='alias/boto3', Plaintext=b'hello', EncryptionContext=context)
assert made['KeyId'] == arn and made['EncryptionAlgorithm'] == 'SYMMETRIC_DEFAULT'
blob = made['CiphertextBlob']
turned = dict(reversed(list(context.items())))
for more in [{}, {'KeyId': arn}, {'KeyId': 'alias/boto3'}]:
    opened = c.decrypt(CiphertextBlob=blob, EncryptionContext=turned, **more)
    assert opened['Plaintext'] == b'hello' and opened['KeyId'] == arn
for wrong in [{}, {**context, 'app': 'pal'}, {**context, 'more': ''}]:
    refused('InvalidCiphertextException', lambda: c.decrypt(CiphertextBlob=blob, EncryptionContext=wrong))
for at in [0, 5, len(blob) // 2, len(blob) - 1]:
    altered = blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1:]
    try:
        c.decrypt(CiphertextBlob=altered, EncryptionContext=context)
        sys.exit('expected a refusal of an altered blob')
    except (c.exceptions.InvalidCiphertextException, ClientError) as e:
        assert e.response['Error']['Code'] in ['InvalidCiphertextException', 'AccessDeniedException'], e
refused('InvalidCiphertextException', lambda: c.decrypt(CiphertextBlob=b'no blob'))
other = c.create_key()['KeyMetadata']['KeyId']
refused('IncorrectKeyException', lambda: c.decrypt(KeyId=other, CiphertextBlob=blob, EncryptionContext=context))
moved = c.re_encrypt(CiphertextBlob=blob, SourceEncryptionContext=context, DestinationKeyId=other)
assert moved['SourceKeyId'] == arn and moved['KeyId'].endswith(other)
assert c.decrypt(CiphertextBlob=moved['CiphertextBlob'])['Plaintext'] == b'hello'
assert len(c.encrypt(KeyId=kid, Plaintext=b'x' * 4096)['CiphertextBlob']) <= 6144
refused('ValidationException', lambda: c.encrypt(KeyId=kid, Plaintext=b'x' * 4097))

# Data keys.
for ask, size in [({'KeySpec': 'AES_256'}, 32), ({'KeySpec': 'AES_128'}, 16), ({'NumberOfBytes': 64}, 64), ({'NumberOfBytes': 7}, 7)]:
    d = c.generate_data_key(KeyId=kid, EncryptionContext={'a': 'b'}, **ask)
    assert len(d['Plaintext']) == size and d['KeyId'] == arn
    assert c.decrypt(CiphertextBlob=d['CiphertextBlob'], EncryptionContext={'a': 'b'})['Plaintext'] == d['Plaintext']
wrapped = c.generate_data_key_without_plaintext(KeyId=kid, KeySpec='AES_256')
assert 'Plaintext' not in wrapped and len(c.decrypt(CiphertextBlob=wrapped['CiphertextBlob'])['Plaintext']) == 32
refused('ValidationException', lambda: c.generate_data_key(KeyId=kid))
assert len(c.generate_random(NumberOfBytes=100)['Plaintext']) == 100

# A new version: old messages stay open.
c.enable_key_rotation(KeyId=kid, RotationPeriodInDays=90)
status = c.get_key_rotation_status(KeyId=kid)
assert status['KeyRotationEnabled'] and status['RotationPeriodInDays'] == 90, status
c.rotate_key_on_demand(KeyId=kid)
assert len(c.list_key_rotations(KeyId=kid)['Rotations']) == 1
assert c.decrypt(CiphertextBlob=blob, EncryptionContext=context)['Plaintext'] == b'hello'
c.disable_key_rotation(KeyId=kid)

# Signatures, of messages and of digests.
import hashlib
message, shown = b'release', []
for spec, algorithms in [
    ('RSA_2048', ['RSASSA_PKCS1_V1_5_SHA_256', 'RSASSA_PSS_SHA_512']),
    ('ECC_NIST_P256', ['ECDSA_SHA_256']), ('ECC_NIST_P384', ['ECDSA_SHA_384']), ('ECC_NIST_P521', ['ECDSA_SHA_512']),
    ('ECC_SECG_P256K1', ['ECDSA_SHA_256']), ('ECC_NIST_EDWARDS25519', ['ED25519_SHA_512']), ('ML_DSA_65', ['ML_DSA_SHAKE_256']),
]:
    m = c.create_key(KeySpec=spec, KeyUsage='SIGN_VERIFY')['KeyMetadata']
    assert set(algorithms) <= set(m['SigningAlgorithms']), m
    public = c.get_public_key(KeyId=m['KeyId'])
    assert public['KeySpec'] == spec and public['SigningAlgorithms'] == m['SigningAlgorithms']
    assert c.get_key_rotation_status(KeyId=m['KeyId'])['KeyRotationEnabled'] is False
    for algorithm in algorithms:
        ask = {'KeyId': m['Arn'], 'SigningAlgorithm': algorithm}
        forms = [{'Message': message}]
        if 'ED25519' not in algorithm and 'ML_DSA' not in algorithm:
            digest = hashlib.new('sha' + algorithm[-3:], message).digest()
            forms.append({'Message': digest, 'MessageType': 'DIGEST'})
            refused('ValidationException', lambda: c.sign(Message=digest[1:], MessageType='DIGEST', **ask))
        for form in forms:
            s = c.sign(**form, **ask)['Signature']
            assert all(c.verify(Signature=s, **each, **ask)['SignatureValid'] for each in forms)
            refused('KMSInvalidSignatureException', lambda: c.verify(Message=b'other', Signature=s, **ask))
            shown.append({'algorithm': algorithm, 'key': base64.b64encode(public['PublicKey']).decode(), 'signature': base64.b64encode(s).decode()})
    refused('InvalidKeyUsageException', lambda: c.encrypt(KeyId=m['KeyId'], Plaintext=b'x', EncryptionAlgorithm='RSAES_OAEP_SHA_256'))

# RSA's ciphertexts, MACs, a shared secret.
rsa = c.create_key(KeySpec='RSA_2048', KeyUsage='ENCRYPT_DECRYPT')['KeyMetadata']['KeyId']
for algorithm in ['RSAES_OAEP_SHA_1', 'RSAES_OAEP_SHA_256']:
    e = c.encrypt(KeyId=rsa, Plaintext=b'x', EncryptionAlgorithm=algorithm)['CiphertextBlob']
    assert len(e) == 256 and c.decrypt(KeyId=rsa, CiphertextBlob=e, EncryptionAlgorithm=algorithm)['Plaintext'] == b'x'
mac = c.create_key(KeySpec='HMAC_256', KeyUsage='GENERATE_VERIFY_MAC')['KeyMetadata']['KeyId']
m = c.generate_mac(KeyId=mac, Message=message, MacAlgorithm='HMAC_SHA_256')['Mac']
assert c.verify_mac(KeyId=mac, Message=message, Mac=m, MacAlgorithm='HMAC_SHA_256')['MacValid']
refused('KMSInvalidMacException', lambda: c.verify_mac(KeyId=mac, Message=b'other', Mac=m, MacAlgorithm='HMAC_SHA_256'))
pair = [c.create_key(KeySpec='ECC_NIST_P256', KeyUsage='KEY_AGREEMENT')['KeyMetadata']['KeyId'] for _ in range(2)]
secret = [c.derive_shared_secret(KeyId=a, KeyAgreementAlgorithm='ECDH', PublicKey=c.get_public_key(KeyId=b)['PublicKey'])['SharedSecret'] for a, b in [pair, pair[::-1]]]
assert secret[0] == secret[1] and len(secret[0]) == 32

# Names, tags, policy, lists.
c.update_alias(AliasName='alias/boto3', TargetKeyId=other)
assert c.describe_key(KeyId='alias/boto3')['KeyMetadata']['KeyId'] == other
c.delete_alias(AliasName='alias/boto3')
refused('NotFoundException', lambda: c.describe_key(KeyId='alias/boto3'))
c.tag_resource(KeyId=kid, Tags=[{'TagKey': 'more', 'TagValue': '1'}])
c.untag_resource(KeyId=kid, TagKeys=['team'])
assert c.list_resource_tags(KeyId=kid)['Tags'] == [{'TagKey': 'more', 'TagValue': '1'}]
c.update_key_description(KeyId=kid, Description='wages')
assert c.describe_key(KeyId=kid)['KeyMetadata']['Description'] == 'wages'
policy = c.get_key_policy(KeyId=kid, PolicyName='default')['Policy']
c.put_key_policy(KeyId=kid, PolicyName='default', Policy=policy)
refused('MalformedPolicyDocumentException', lambda: c.put_key_policy(KeyId=kid, PolicyName='default', Policy=policy.replace('Allow', 'Deny')))
assert c.list_grants(KeyId=kid)['Grants'] == []
listed = [k['KeyId'] for page in c.get_paginator('list_keys').paginate(PaginationConfig={'PageSize': 3}) for k in page['Keys']]
assert len(set(listed)) == len(listed) and {kid, other, rsa, mac, *pair} <= set(listed)
refused('NotFoundException', lambda: c.describe_key(KeyId='11111111-1111-1111-1111-111111111111'))
refused('InvalidMarkerException', lambda: c.list_keys(Marker='nothing'))

# States.
c.disable_key(KeyId=kid)
refused('DisabledException', lambda: c.encrypt(KeyId=kid, Plaintext=b'x'))
c.enable_key(KeyId=kid)
pending = c.schedule_key_deletion(KeyId=kid, PendingWindowInDays=7)
assert pending['KeyState'] == 'PendingDeletion' and pending['KeyId'] == arn
refused('KMSInvalidStateException', lambda: c.encrypt(KeyId=kid, Plaintext=b'x'), 'is pending deletion')
refused('KMSInvalidStateException', lambda: c.schedule_key_deletion(KeyId=kid, PendingWindowInDays=7), 'is pending deletion')
c.cancel_key_deletion(KeyId=kid)
assert c.describe_key(KeyId=kid)['KeyMetadata']['KeyState'] == 'Disabled'
c.enable_key(KeyId=kid)
assert c.decrypt(CiphertextBlob=blob, EncryptionContext=context)['Plaintext'] == b'hello'

# In this order Terraform's provider for AWS makes a key, reads it, and destroys it.
made = c.create_key(KeySpec='SYMMETRIC_DEFAULT', KeyUsage='ENCRYPT_DECRYPT', Description='tf', Policy=policy, BypassPolicyLockoutSafetyCheck=False, Tags=[{'TagKey': 'by', 'TagValue': 'tf'}])['KeyMetadata']['KeyId']
c.enable_key_rotation(KeyId=made)
assert c.describe_key(KeyId=made)['KeyMetadata']['KeyManager'] == 'CUSTOMER'
assert json.loads(c.get_key_policy(KeyId=made, PolicyName='default')['Policy']) == json.loads(policy)
assert c.get_key_rotation_status(KeyId=made)['RotationPeriodInDays'] == 365
assert c.list_resource_tags(KeyId=made)['Tags'] == [{'TagKey': 'by', 'TagValue': 'tf'}]
c.create_alias(AliasName='alias/tf', TargetKeyId=made)
c.tag_resource(KeyId=made, Tags=[{'TagKey': 'by', 'TagValue': 'tofu'}])
assert c.list_resource_tags(KeyId=made)['Tags'] == [{'TagKey': 'by', 'TagValue': 'tofu'}]
assert 'alias/tf' in [a['AliasName'] for page in c.get_paginator('list_aliases').paginate() for a in page['Aliases']]
c.delete_alias(AliasName='alias/tf')
c.schedule_key_deletion(KeyId=made, PendingWindowInDays=30)
assert c.describe_key(KeyId=made)['KeyMetadata']['KeyState'] == 'PendingDeletion'
refused('KMSInvalidStateException', lambda: c.schedule_key_deletion(KeyId=made, PendingWindowInDays=30), 'is pending deletion')
wrong = boto3.client('kms', aws_secret_access_key='x' * 40, aws_access_key_id=boto3.Session().get_credentials().access_key)
refused('InvalidSignatureException', lambda: wrong.list_keys())
print(json.dumps(shown))
