# boto3 with the token of a file instead of a stored secret: it asks the appliance for credentials, and uses them.
import boto3, os, sys
from botocore.exceptions import ClientError
sts = boto3.client('sts')
me = sts.get_caller_identity()
assert me['Account'] == os.environ['AWS_ROLE_ARN'].split(':')[4] and me['Arn'].startswith('arn:aws:'), me
kms, name = boto3.client('kms'), os.environ['KEY_ALIAS']
made = kms.generate_data_key(KeyId=name, KeySpec='AES_256', EncryptionContext={'pod': '7'})
opened = kms.decrypt(CiphertextBlob=made['CiphertextBlob'], EncryptionContext={'pod': '7'})
assert opened['Plaintext'] == made['Plaintext'] and opened['KeyId'] == made['KeyId']
try:
    kms.create_key()
    sys.exit('expected a refusal: the flags are those of one key')
except ClientError as e:
    assert e.response['Error']['Code'] == 'AccessDeniedException', e
role = {'RoleArn': os.environ['AWS_ROLE_ARN'], 'RoleSessionName': 'pod'}
for token, code in [(os.environ['EXPIRED'], 'ExpiredTokenException'), ('a.b.c', 'InvalidIdentityToken')]:
    try:
        sts.assume_role_with_web_identity(WebIdentityToken=token, **role)
        sys.exit('expected a refusal')
    except ClientError as e:
        assert e.response['Error']['Code'] == code, e
