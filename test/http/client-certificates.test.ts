// Client certificates as proofs of API keys: which are let in, which never are, and that whatever ends one ends it from
// the next request on, in connections that are open too.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import * as x509 from '@peculiar/x509';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { dns, email, TestCertificate, uri } from '../support/client-certificates.ts';

const day = 86_400_000;
/** Certificates have whole seconds. */
const seconds = (time: number): number => time - (time % 1000);

interface Around {
  readonly a: Appliance;
  readonly key: { readonly key: string; readonly keyid: string };
  readonly now: number;
}

async function around(...flags: string[]): Promise<Around> {
  const a = await testAppliance();
  return { a, key: await a.keyWith('keyring.list', ...flags), now: a.world.now() };
}

const add = (a: Appliance, keyid: string, body: object, more: object = {}) =>
  a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'certificate', ...body }, more);

async function added(a: Appliance, keyid: string, body: object): Promise<AnyJson> {
  const { status, body: proof } = await add(a, keyid, body);
  assert.equal(status, 200, JSON.stringify(proof));
  return proof;
}

/** The status that a request gets which has the certificate alone. */
async function get(a: Appliance, certificate: TestCertificate | undefined, more: object = {}): Promise<number> {
  const { env, ...rest } = more as { env?: object };
  const answer = await a.call('GET', '/ks/keyrings', undefined, {
    key: null,
    env: { ...certificate?.shown, ...env },
    ...rest,
  });
  return answer.status;
}

test('a pinned certificate is its API key in every request, and the records say so', async () => {
  const { a, key, now } = await around();
  const certificate = await TestCertificate.alone(now);
  const proof = await added(a, key.keyid, { certificate: certificate.pem, name: 'payroll' });
  assert.match(proof.fingerprint, /^[0-9a-f]{64}$/);
  assert.equal(proof.notAfter, new Date(seconds(now) + 30 * day).toISOString());
  assert.equal(await get(a, certificate), 200);
  assert.equal(await get(a, undefined), 401);
  assert.equal(
    (await a.call('GET', '/auth/users', undefined, { key: null, env: certificate.shown })).status,
    403,
    'with the flags of the key alone',
  );
  const [refused, let_] = (await a.activity()).filter(({ keyid }) => keyid === key.keyid);
  for (const record of [refused, let_]) {
    assert.equal(record?.props.proof, proof.id);
    assert.equal(record?.props.subject, proof.fingerprint);
  }
  const [shown] = (await a.call('GET', `/auth/apikeys/${key.keyid}/proofs`)).body.proofs.slice(1);
  assert.equal(shown.fingerprint, proof.fingerprint);
  assert.equal(shown.lastUsedAt, a.world.now());
  assert.equal((await a.call('GET', '/nowhere-else', undefined, { key: null, env: certificate.shown })).status, 404);
});

test('a pin is of the key: serial, names and issuer stand for nothing', async () => {
  const { a, key, now } = await around();
  const serial = '0123456789abcdef';
  const authority = await TestCertificate.authority(now);
  const wanted = { serial, subject: 'CN=payroll', names: [dns('payroll.example')] };
  const pinned = await authority.signs(wanted);
  await added(a, key.keyid, { certificate: pinned.chainPem });
  assert.equal(await get(a, pinned), 200);
  assert.equal(await get(a, await authority.signs(wanted)), 401, 'the same serial, another key');
  assert.equal(await get(a, authority), 401, 'nor its authority');
  const renewed = await authority.signs({ ...wanted, keys: pinned.keys, serial: '0456' });
  assert.equal(await get(a, renewed), 200, 'a new certificate of the same key');
});

test('whatever ends a proof ends it in open connections too', async () => {
  const { a, key, now } = await around();
  const certificate = await TestCertificate.alone(now, { notAfter: now + 2 * day });
  const proof = await added(a, key.keyid, { certificate: certificate.pem });
  const path = `/auth/apikeys/${key.keyid}/proofs/${proof.id}`;
  const open = { env: certificate.shown };
  assert.equal(await get(a, undefined, open), 200);
  await a.call('PATCH', path, { active: false });
  assert.equal(await get(a, undefined, open), 401);
  await a.call('PATCH', path, { active: true });
  assert.equal(await get(a, undefined, open), 200);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', active: false });
  assert.equal(await get(a, undefined, open), 401);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', active: true });
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', allowedAddresses: ['10.0.0.0/8'] });
  assert.equal(await get(a, undefined, { env: { ...open.env, remoteAddress: '192.0.2.1' } }), 401);
  assert.equal(await get(a, undefined, { env: { ...open.env, remoteAddress: '10.1.2.3' } }), 200);
  await a.call('PUT', '/auth/apikeyid', { apikeyid: key.keyid, op: 'merge', allowedAddresses: [] });
  a.advance(2 * day + 1000);
  assert.equal(await get(a, undefined, open), 401, 'the certificate has expired meanwhile');
  a.advance(-2 * day - 1000);
  assert.equal(await get(a, undefined, open), 200);
  a.advance(-2 * day);
  assert.equal(await get(a, undefined, open), 401, 'it is not valid yet');
  a.advance(2 * day);
  await a.call('DELETE', path);
  assert.equal(await get(a, undefined, open), 401);
  const refused = (await a.activity()).filter(({ keyid, status }) => keyid === key.keyid && status === 401);
  assert.equal(refused.length, 5, 'refusals of a known proof are recorded');
});

const id = 'spiffe://prod.example/payroll';

test('an authority lets in the certificates that have the exact name', async () => {
  const { a, key, now } = await around();
  const authority = await TestCertificate.authority(now);
  const names = {
    'dns:payroll.example': dns('Payroll.example'),
    'email:pay@example.org': email('pay@example.org'),
    'uri:https://example.org/payroll': uri('https://example.org/payroll'),
    [id]: uri(id),
  };
  for (const [san, name] of Object.entries(names)) {
    const proof = await added(a, key.keyid, { ca: authority.pem, san });
    assert.equal(proof.san, san === id ? `uri:${id}` : san);
    assert.equal(await get(a, await authority.signs({ names: [name] })), 200, san);
    const others = [
      { ...name, value: `${name.value}.evil` },
      { ...name, value: `x${name.value}` },
      { ...(name.type === 'dns' ? email(name.value) : dns(name.value)) },
    ];
    for (const other of others) {
      assert.equal(await get(a, await authority.signs({ names: [other] })), 401, JSON.stringify(other));
    }
    assert.equal(await get(a, await authority.signs({ subject: `CN=${name.value}` })), 401, 'a common name is no name');
    const [record] = (await a.activity()).filter(({ keyid, status }) => keyid === key.keyid && status === 200);
    assert.equal(record?.props.subject, name.value);
    await a.call('DELETE', `/auth/apikeys/${key.keyid}/proofs/${proof.id}`);
  }
});

test('names that read like others in print are other names', async () => {
  const { a, key, now } = await around();
  const authority = await TestCertificate.authority(now);
  await added(a, key.keyid, { ca: authority.pem, san: 'dns:good.example' });
  await added(a, key.keyid, { ca: authority.pem, san: id });
  const tricks = [
    dns('evil.example, DNS:good.example'),
    dns('good.example\0.evil.example'),
    dns('good.example\0'),
    dns('good.example '),
    dns('good.example.'),
    dns('*.example'),
    uri('https://evil/, DNS:good.example'),
    email('DNS:good.example'),
    uri(`${id}\0`),
    uri(`https://evil/, URI:${id}`),
    uri('spiffe://prod.example/./payroll'),
    uri('spiffe://prod.example//payroll'),
    uri('spiffe://prod.example/payroll/'),
    uri('SPIFFE://prod.example/payroll'),
    uri('spiffe://PROD.example/payroll'),
    uri('spiffe://prod.example/pay%72oll'),
    uri('spiffe://user@prod.example/payroll'),
    uri('spiffe://prod.example:443/payroll'),
  ];
  for (const name of tricks) {
    assert.equal(await get(a, await authority.signs({ names: [name] })), 401, JSON.stringify(name));
  }
  assert.equal(await get(a, await authority.signs({ names: [dns('good.example')] })), 200);
});

test('an X.509-SVID has one URI and needs no subject; a star stops at a slash', async () => {
  const { a, key, now } = await around();
  const authority = await TestCertificate.authority(now);
  await added(a, key.keyid, { ca: authority.pem, san: 'spiffe://prod.example/ns/*/pay-*' });
  const show = async (...ids: string[]) => get(a, await authority.signs({ subject: '', names: ids.map(uri) }));
  assert.equal(await show('spiffe://prod.example/ns/a/pay-1'), 200);
  for (const wrong of [
    ['spiffe://prod.example/ns/a/b/pay-1'],
    ['spiffe://prod.example/ns/a/pay-1/x'],
    ['spiffe://prod.example/ns/a/roll'],
    ['spiffe://other.example/ns/a/pay-1'],
    ['spiffe://prod.example/ns/a/pay-1', 'spiffe://prod.example/ns/a/pay-2'],
    ['spiffe://prod.example/ns/a/pay-1', 'https://example.org/'],
  ]) {
    assert.equal(await show(...wrong), 401, wrong.join(' '));
  }
  const mixed = { names: [uri('spiffe://prod.example/ns/a/pay-1'), dns('pod.example')] };
  assert.equal(await get(a, await authority.signs(mixed)), 200, 'other kinds of names do not matter');
  const signer = { ...mixed, usage: x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.cRLSign };
  assert.equal(await get(a, await authority.signs(signer)), 401);
});

test('every certificate of a chain must be what its place asks for', async () => {
  const { a, key, now } = await around();
  const root = await TestCertificate.authority(now, 'CN=root');
  await added(a, key.keyid, { ca: root.pem, san: id });
  const names = [uri(id)];
  const { digitalSignature, keyCertSign, keyAgreement } = x509.KeyUsageFlags;
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const below = (wanted: object) => root.signs({ isAuthority: true, subject: 'CN=below', ...wanted });
  const good = {
    'under the authority': root.signs({ names, usage: digitalSignature, purposes: [clientAuth, serverAuth] }),
    'one below': (await below({})).signs({ names }),
    'one below with a path length': (await below({ pathLength: 0 })).signs({ names }),
    'three below': (
      await (
        await (await below({})).signs({ isAuthority: true, subject: 'CN=b' })
      ).signs({ isAuthority: true, subject: 'CN=c' })
    ).signs({ names }),
  };
  for (const [what, made] of Object.entries(good)) assert.equal(await get(a, await made), 200, what);
  const impostor = await TestCertificate.authority(now, 'CN=root');
  const deep = await (await (await below({})).signs({ isAuthority: true, subject: 'CN=b' })).signs({
    isAuthority: true,
    subject: 'CN=c',
  });
  const constraints = new x509.Extension('2.5.29.30', false, new Uint8Array([0x30, 0]));
  const unknown = new x509.Extension('1.2.3.4', true, new Uint8Array([5, 0]));
  const wrong = {
    'another authority of that name': impostor.signs({ names }),
    'signed by itself': TestCertificate.alone(now, { names, subject: 'CN=root' }),
    'a leaf that is an authority': root.signs({ names, isAuthority: true }),
    'a leaf that signs certificates': root.signs({ names, usage: digitalSignature | keyCertSign }),
    'a leaf whose key does not sign': root.signs({ names, usage: keyAgreement }),
    'a leaf of a server': root.signs({ names, purposes: [serverAuth] }),
    'an expired leaf': root.signs({ names, notAfter: now - 1000 }),
    'a leaf of tomorrow': root.signs({ names, notBefore: now + day }),
    'under a leaf': (await root.signs({ subject: 'CN=leaf' })).signs({ names }),
    'under a leaf that may sign': (await root.signs({ subject: 'CN=l', usage: keyCertSign })).signs({ names }),
    'under one that may not sign': (await below({ usage: digitalSignature })).signs({ names }),
    'under one for servers': (await below({ purposes: [serverAuth] })).signs({ names }),
    'under an expired one': (await below({ notAfter: now - 1000 })).signs({ names }),
    'below a path length': (await (await below({ pathLength: 0 })).signs({ isAuthority: true, subject: 'CN=x' })).signs(
      { names },
    ),
    'too deep': (await deep.signs({ isAuthority: true, subject: 'CN=d' })).signs({ names }),
    'constraints on names': (await below({ extensions: [constraints] })).signs({ names }),
    'an unknown critical extension': root.signs({ names, extensions: [unknown] }),
  };
  for (const [what, made] of Object.entries(wrong)) assert.equal(await get(a, await made), 401, what);
  const reasons = {
    'another authority of that name': 'the signature by CN=root is wrong',
    'signed by itself': 'the signature by CN=root is wrong',
    'under a leaf': 'CN=leaf cannot be in it: it is no authority: basicConstraints say CA:FALSE, or nothing',
    'under one that may not sign': 'CN=below cannot be in it: its key does not sign certificates',
    'under one for servers': 'CN=below cannot be in it: it is not for clients',
    'below a path length': 'CN=below cannot be in it: its chain is too long',
    'too deep': 'it would have more than 5 certificates',
    'constraints on names':
      'CN=below cannot be in it: it has restrictions that are not understood, such as constraints on names',
  } as const;
  for (const [what, reason] of Object.entries(reasons)) {
    const { shown } = await wrong[what as keyof typeof wrong];
    const login = { certificate: true, role: key.keyid };
    const { body } = await a.call('POST', '/auth/workload/login', login, { key: null, env: shown });
    assert.deepEqual(
      [body.check, body.message],
      ['authority', `the client certificate was refused: no chain leads to the authority: ${reason}`],
      what,
    );
  }
  const whole = await (await below({})).signs({ names });
  const { leaf } = whole.shown.certificate;
  assert.equal(await get(a, undefined, { env: { certificate: { leaf, chain: [] } } }), 401, 'without the one between');
  const altered = leaf.slice();
  altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
  assert.equal(await get(a, undefined, { env: { certificate: { ...whole.shown.certificate, leaf: altered } } }), 401);
});

test('an authority that expires ends what it signed', async () => {
  const { a, key, now } = await around();
  const authority = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + day });
  await added(a, key.keyid, { ca: authority.pem, san: id });
  const certificate = await authority.signs({ names: [uri(id)] });
  const open = { env: certificate.shown };
  assert.equal(await get(a, undefined, open), 200);
  a.advance(day + 1000);
  assert.equal(await get(a, undefined, open), 401);
});

test('authorities and pins are of one tenant', async () => {
  const tenants = [
    { name: 'one', hosts: ['one.test'] },
    { name: 'two', hosts: ['two.test'] },
  ];
  const a = await testAppliance({ tenants });
  const now = a.world.now();
  const key = async (seat: number, host: string, body: object) => {
    const { accountId, root } = a.tenants[seat] ?? assert.fail();
    const options = { key: root.key, host };
    const made = await a.call('POST', '/auth/apikey', { accountId, flags: { 'keyring.list': true } }, options);
    assert.equal((await add(a, made.body.keyid, body, options)).status, 200);
    return made.body.keyid;
  };
  const authorities = [await TestCertificate.authority(now), await TestCertificate.authority(now)] as const;
  await key(0, 'one.test', { ca: authorities[0].pem, san: id });
  await key(1, 'two.test', { ca: authorities[1].pem, san: id });
  const pinned = await TestCertificate.alone(now);
  await key(0, 'one.test', { certificate: pinned.pem });
  const own = await authorities[0].signs({ names: [uri(id)] });
  for (const certificate of [own, pinned]) {
    const open = { env: certificate.shown };
    assert.equal(await get(a, undefined, { ...open, host: 'one.test' }), 200);
    assert.equal(await get(a, undefined, { ...open, host: 'two.test' }), 401, 'nor in the same connection');
  }
});

test('a certificate counts only if nothing else does, and never for a page', async () => {
  const { a, key, now } = await around();
  const certificate = await TestCertificate.alone(now);
  await added(a, key.keyid, { certificate: certificate.pem });
  const other = await a.keyWith();
  for (const header of [`Bearer ${other.key}`, 'Bearer nonsense', 'Basic YTpi', '']) {
    const status = await get(a, certificate, { headers: { Authorization: header } });
    assert.equal(status, header.includes(other.key) ? 403 : 401, header);
  }
  const page = [{ 'Sec-Fetch-Site': 'same-origin' }, { 'Sec-Fetch-Site': 'none' }, { Origin: 'https://evil.example' }];
  for (const headers of [...page, { 'X-Vault-Token': 'nonsense' }]) {
    assert.equal(await get(a, certificate, { headers }), 401, JSON.stringify(headers));
  }
  const named = {
    'X-Forwarded-Client-Cert': encodeURIComponent(certificate.pem),
    'X-SSL-Client-Cert': certificate.pem.replaceAll('\n', ' '),
  };
  assert.equal(await get(a, undefined, { headers: named }), 401);
});

test('a proof that proves nothing, or too much, is not made', async () => {
  const { a, key, now } = await around();
  const authority = await TestCertificate.authority(now);
  const leaf = await authority.signs({ names: [dns('a.example')] });
  const old = await TestCertificate.alone(now, { notAfter: now - day });
  const rsa = await crypto.subtle.generateKey(
    { name: 'RSASSA-PKCS1-v1_5', modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
    true,
    ['sign', 'verify'],
  );
  const weak = await authority.signs({ keys: rsa });
  const constrained = await TestCertificate.authority(now, 'CN=c', {
    extensions: [new x509.Extension('2.5.29.30', true, new Uint8Array([0x30, 0]))],
  });
  const wrong: readonly (readonly [object, string, RegExp])[] = [
    [{}, 'certificate', /expected one of/],
    [{ certificate: leaf.pem, issue: true }, 'certificate', /expected one of/],
    [{ certificate: leaf.pem, days: 3 }, 'days', /issued/],
    [{ certificate: 'nothing' }, 'certificate', /in PEM/],
    [{ certificate: leaf.pem.slice(0, 200) }, 'certificate', /malformed/],
    [{ certificate: leaf.pem + (await leaf.keyPem()) }, 'certificate', /private key/],
    [{ ca: authority.pem + (await authority.keyPem()), san: id }, 'ca', /private key/],
    [{ certificate: old.pem }, 'certificate', /expired/],
    [{ certificate: weak.pem }, 'certificate', /its key is not RSA from 2048 bits/],
    [{ ca: authority.pem }, 'san', /required/],
    [{ san: id }, 'ca', /required/],
    [{ ca: leaf.pem, san: id }, 'ca', /no authority/],
    [{ ca: authority.pem + leaf.pem, san: id }, 'ca', /one certificate/],
    [{ ca: constrained.pem, san: id }, 'ca', /constraints on names/],
    ...[
      'payroll',
      'cn:payroll',
      'dns:*.example',
      'dns:a b',
      'dns:',
      'email:example.org',
      'uri:nothing',
      'uri:https://a/*',
      'spiffe://prod.example',
      'spiffe://prod.example/',
      'spiffe://*/payroll',
      'spiffe://prod.example/**',
      'spiffe://prod.example/a//b',
      'spiffe://prod.example/../b',
      'SPIFFE://prod.example/payroll',
    ].map((san) => [{ ca: authority.pem, san }, 'san', /expected|star/] as const),
  ];
  for (const [body, field, reason] of wrong) {
    const answer = await add(a, key.keyid, body);
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.match(answer.body.errors[field] ?? '', reason, `${field}: ${JSON.stringify(answer.body)}`);
  }
  await added(a, key.keyid, { certificate: leaf.pem });
  await added(a, key.keyid, { ca: authority.pem, san: id });
  const other = await a.keyWith();
  for (const body of [{ certificate: leaf.pem }, { ca: authority.pem, san: `uri:${id}` }]) {
    assert.match((await add(a, other.keyid, body)).body.message, /already/);
  }
  const second = await TestCertificate.authority(now);
  await added(a, other.keyid, { ca: second.pem, san: id });
  assert.equal(await get(a, await second.signs({ names: [uri(id)] })), 403, 'each authority has its own');
  const small = await a.keyWith('apikey.update');
  const refused = await add(a, key.keyid, { certificate: (await TestCertificate.alone(now)).pem }, { key: small.key });
  assert.equal(refused.status, 403, 'a proof hands out the flags of the key');
});

test('the appliance issues certificates; its authority signs nothing else and can be replaced', async () => {
  const { a, key, now } = await around('key.*');
  const first = await added(a, key.keyid, { issue: true });
  const leaf = new X509Certificate(first.certificate);
  const authority = new X509Certificate(first.caCertificate);
  assert.ok(leaf.checkIssued(authority) && leaf.verify(authority.publicKey));
  assert.ok(authority.ca && authority.verify(authority.publicKey));
  assert.equal(leaf.ca, false);
  assert.equal(leaf.validToDate.getTime(), seconds(now) + 90 * day);
  assert.equal(first.notAfter, new Date(seconds(now) + 90 * day).toISOString());
  assert.match(first.privateKey, /^-----BEGIN PRIVATE KEY-----\n/);
  const shown = (certificate: X509Certificate) => ({ env: { certificate: { leaf: certificate.raw, chain: [] } } });
  assert.equal(await get(a, undefined, shown(leaf)), 200);
  const { body } = await a.call('GET', `/auth/apikeys/${key.keyid}/proofs`);
  assert.ok(!JSON.stringify([body, a.log, await a.activity()]).includes(first.privateKey.slice(30, 90)));

  const managed = (await a.call('GET', '/managed-keys/client-ca')).body.key;
  assert.deepEqual([managed.type, managed.uses, managed.exportable], ['ecdsa-p256', ['sign', 'verify'], false]);
  const input = Buffer.from('x').toString('base64');
  const vault = { key: null, env: { surface: 'vault' }, headers: { 'X-Vault-Token': key.key } };
  for (const answer of [
    await a.call('POST', '/managed-keys/client-ca/sign', { input }),
    await a.call('POST', '/managed-keys/client-ca/sign', { items: [{ input }] }),
    await a.call('POST', `/managed-keys/${managed.id}/sign`, { input }, { key: key.key }),
    await a.call('POST', '/v1/transit/sign/client-ca', { input }, vault),
    await a.call('POST', '/v1/transit/sign/client-ca/sha2-256', { batch_input: [{ input }] }, vault),
  ]) {
    assert.equal(answer.status, 400, answer.text);
    assert.match(answer.text, /authority for client certificates, and signs nothing else/);
  }
  assert.ok((await a.call('POST', '/managed-keys/client-ca/export', {})).status >= 400);
  assert.equal((await a.call('POST', '/managed-keys/client-ca/rotate')).status, 200);
  const second = await added(a, key.keyid, { issue: true, days: 825 });
  const next = new X509Certificate(second.certificate);
  assert.notEqual(second.caCertificate, first.caCertificate);
  assert.ok(next.verify(new X509Certificate(second.caCertificate).publicKey) && !next.verify(authority.publicKey));
  assert.equal(await get(a, undefined, shown(next)), 200);
  assert.equal(await get(a, undefined, shown(leaf)), 200, 'old certificates stay good');
  assert.equal((await added(a, key.keyid, { issue: true })).caCertificate, second.caCertificate);
  a.advance(90 * day + 1000);
  assert.equal(await get(a, undefined, shown(leaf)), 401);
  for (const days of [0, 826, 1.5]) assert.equal((await add(a, key.keyid, { issue: true, days })).status, 400);
});

test('the authority takes another name if its own is taken, and another key if its own is deleted', async () => {
  const { a, key } = await around();
  await a.call('POST', '/managed-keys', { name: 'client-ca', type: 'ecdsa-p256' });
  await added(a, key.keyid, { issue: true });
  const input = Buffer.from('x').toString('base64');
  assert.equal((await a.call('POST', '/managed-keys/client-ca/sign', { input })).status, 200, "it is somebody's own");
  assert.equal((await a.call('POST', '/managed-keys/client-ca-2/sign', { input })).status, 400);
  await a.call('PUT', '/managed-keys/client-ca-2/config', { deletionAllowed: true });
  const deleted = await a.call('DELETE', '/managed-keys/client-ca-2', { used: true });
  assert.equal(deleted.status, 200, deleted.text);
  await added(a, key.keyid, { issue: true });
  assert.equal((await a.call('POST', '/managed-keys/client-ca-2/sign', { input })).status, 400);
});
