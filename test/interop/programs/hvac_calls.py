# Calls transit through hvac, the Python client of Vault.
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
