# Logs in through hvac with a signed token, by both methods, and works with the token that comes of it.
import hvac, os, sys
role, jwt = os.environ['ROLE'], os.environ['JWT']
def logged_in(login):
    c = hvac.Client(url=os.environ['VAULT_ADDR'])
    answer = login(c)
    assert c.is_authenticated() and c.token == answer['auth']['client_token']
    assert answer['auth']['renewable'] is True and 0 < answer['auth']['lease_duration'] <= 3600
    return c
for login in [
    lambda c: c.auth.jwt.jwt_login(role=role, jwt=jwt),
    lambda c: c.auth.kubernetes.login(role=role, jwt=jwt),
    lambda c: c.auth.jwt.jwt_login(role=role, jwt=jwt, path='jwt-ci'),
]:
    c = logged_in(login)
    ct = c.secrets.transit.encrypt_data(name=role, plaintext='aGVsbG8=')['data']['ciphertext']
    assert c.secrets.transit.decrypt_data(name=role, ciphertext=ct)['data']['plaintext'] == 'aGVsbG8='
    seen = c.auth.token.lookup_self()['data']
    assert seen['renewable'] is True and seen['meta']['service_account_name'] == role, seen
    assert 0 < c.auth.token.renew_self(increment='60s')['auth']['lease_duration'] <= 60
    assert c.auth.token.renew_self()['auth']['lease_duration'] > 3000
    c.auth.token.revoke_self()
    try:
        c.auth.token.lookup_self()
        sys.exit('expected a refusal')
    except hvac.exceptions.Forbidden:
        pass
try:
    hvac.Client(url=os.environ['VAULT_ADDR']).auth.jwt.jwt_login(role=role, jwt=os.environ['EXPIRED'])
    sys.exit('expected a refusal')
except hvac.exceptions.InvalidRequest as e:
    assert 'token is expired' in str(e), e
