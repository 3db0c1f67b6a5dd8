# Calls transit and KV through hvac, the Python client of Vault.
import hvac, os, sys
c = hvac.Client(url=os.environ['VAULT_ADDR'], token=os.environ['VAULT_TOKEN'])
assert c.is_authenticated()
assert not hvac.Client(url=os.environ['VAULT_ADDR'], token='x').is_authenticated()
assert c.sys.read_health_status().status_code == 200
assert c.sys.is_sealed() is False
t = c.secrets.transit
t.create_key(name='hvac')
ct = t.encrypt_data(name='hvac', plaintext='aGVsbG8=')['data']['ciphertext']
assert t.decrypt_data(name='hvac', ciphertext=ct)['data']['plaintext'] == 'aGVsbG8='
t.rotate_key(name='hvac')
new = t.rewrap_data(name='hvac', ciphertext=ct)['data']['ciphertext']
assert new.startswith('vault:v2:'), new
b = t.encrypt_data(name='hvac', batch_input=[{'plaintext': 'YQ=='}, {'plaintext': 'Yg=='}])['data']['batch_results']
assert [r['key_version'] for r in b] == [2, 2]
assert len(t.generate_data_key(name='hvac', key_type='plaintext')['data']['plaintext']) == 44
assert t.read_key(name='hvac')['data']['latest_version'] == 2
assert 'hvac' in t.list_keys()['data']['keys']
strict = hvac.Client(url=os.environ['VAULT_ADDR'], token=os.environ['VAULT_TOKEN'], strict_http=True)
assert strict.secrets.transit.list_keys()['data']['keys'] == t.list_keys()['data']['keys']
assert strict.list('transit/keys')['data'] == c.list('transit/keys')['data']
t.create_key(name='hvac-sign', key_type='ed25519')
s = t.sign_data(name='hvac-sign', hash_input='aGVsbG8=')['data']['signature']
assert t.verify_signed_data(name='hvac-sign', hash_input='aGVsbG8=', signature=s)['data']['valid'] is True
batch = [{'input': 'aGVsbG8=', 'reference': 'a'}, {'input': 'YQ=='}]
r = t.sign_data(name='hvac-sign', batch_input=batch)['data']['batch_results']
assert r[0]['reference'] == 'a' and r[1]['signature'].startswith('vault:v1:'), r
t.create_key(name='hvac-p256', key_type='ecdsa-p256', exportable=True)
s = t.sign_data(name='hvac-p256', hash_input='aGVsbG8=', marshaling_algorithm='jws')['data']['signature']
assert t.verify_signed_data(name='hvac-p256', hash_input='aGVsbG8=', signature=s, marshaling_algorithm='jws')['data']['valid']
assert t.export_key(name='hvac-p256', key_type='signing-key')['data']['keys']['1'].startswith('-----BEGIN EC PRIVATE')
t.create_key(name='hvac-rsa', key_type='rsa-2048')
s = t.sign_data(name='hvac-rsa', hash_input='aGVsbG8=', signature_algorithm='pkcs1v15', hash_algorithm='sha2-512')['data']['signature']
assert t.verify_signed_data(name='hvac-rsa', hash_input='aGVsbG8=', signature=s, signature_algorithm='pkcs1v15', hash_algorithm='sha2-512')['data']['valid']
c.write_data('transit/keys/hvac-mac', data={'type': 'hmac', 'key_size': 32})
m = t.generate_hmac(name='hvac-mac', hash_input='aGVsbG8=', algorithm='sha2-256')['data']['hmac']
assert t.verify_signed_data(name='hvac-mac', hash_input='aGVsbG8=', hmac=m)['data']['valid'] is True
assert len(t.generate_random_bytes(n_bytes=8, output_format='hex')['data']['random_bytes']) == 16
assert t.hash_data(hash_input='aGVsbG8=', algorithm='sha2-256', output_format='hex')['data']['sum'].startswith('2cf24dba')
t.rotate_key(name='hvac')
t.update_key_configuration(name='hvac', min_decryption_version=2, min_encryption_version=3)
t.trim_key(name='hvac', min_version=2)
assert list(t.read_key(name='hvac')['data']['keys']) == ['2', '3']
t.update_key_configuration(name='hvac', deletion_allowed=True)
t.delete_key(name='hvac')
try:
    t.decrypt_data(name='hvac', ciphertext=ct)
    sys.exit('expected a refusal')
except hvac.exceptions.InvalidRequest as e:
    assert 'encryption key not found' in str(e), e
try:
    hvac.Client(url=os.environ['VAULT_ADDR'], token='x').secrets.transit.read_key(name='x')
    sys.exit('expected a refusal')
except hvac.exceptions.Forbidden:
    pass
a = hvac.Client(url=os.environ['VAULT_ADDR'])
a.auth.approle.login(role_id=os.environ['ROLE_ID'], secret_id=os.environ['VAULT_TOKEN'])
assert a.is_authenticated()

# Secrets of the KV engine, version 2.
kv = c.secrets.kv.v2
assert kv.read_configuration()['data']['max_versions'] == 1000
assert kv.create_or_update_secret(path='hvac/one', secret={'key': 'a'}, cas=0)['data']['version'] == 1
try:
    kv.create_or_update_secret(path='hvac/one', secret={'key': 'b'}, cas=0)
    sys.exit('expected a refusal')
except hvac.exceptions.InvalidRequest as e:
    assert 'check-and-set parameter did not match the current version' in str(e), e
kv.create_or_update_secret(path='hvac/one', secret={'key': 'b'})
assert kv.patch(path='hvac/one', secret={'more': 'c'})['data']['version'] == 3
assert kv.read_secret_version(path='hvac/one', raise_on_deleted_version=True)['data']['data'] == {'key': 'b', 'more': 'c'}
assert kv.read_secret_version(path='hvac/one', version=1, raise_on_deleted_version=True)['data']['data'] == {'key': 'a'}
assert kv.list_secrets(path='hvac')['data']['keys'] == ['one']
kv.delete_latest_version_of_secret(path='hvac/one')
kv.delete_secret_versions(path='hvac/one', versions=[1])
try:
    kv.read_secret_version(path='hvac/one', raise_on_deleted_version=True)
    sys.exit('expected a refusal')
except hvac.exceptions.InvalidPath:
    pass
gone = kv.read_secret_version(path='hvac/one', raise_on_deleted_version=False)
assert gone['data']['data'] is None and gone['data']['metadata']['deletion_time'] != ''
kv.undelete_secret_versions(path='hvac/one', versions=[3])
assert kv.read_secret_version(path='hvac/one', raise_on_deleted_version=True)['data']['metadata']['version'] == 3
kv.destroy_secret_versions(path='hvac/one', versions=[1])
kv.update_metadata(path='hvac/one', max_versions=5, cas_required=True, custom_metadata={'owner': 'db'})
m = kv.read_secret_metadata(path='hvac/one')['data']
assert m['versions']['1']['destroyed'] is True and m['custom_metadata'] == {'owner': 'db'} and m['max_versions'] == 5
kv.delete_metadata_and_all_versions(path='hvac/one')
try:
    kv.read_secret_metadata(path='hvac/one')
    sys.exit('expected a refusal')
except hvac.exceptions.InvalidPath:
    pass
assert c.sys.list_mounted_secrets_engines()['data']['secret/']['options'] == {'version': '2'}
assert c.sys.read_mount_configuration('secret')['data']['options'] == {'version': '2'}
