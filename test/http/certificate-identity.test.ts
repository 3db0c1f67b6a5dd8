// A client certificate is one proof, the oldest that it fits: a proof that is added takes no program from its API key.
// Keys, names and authorities that can prove nothing are refused with the true reason.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { proofEndpoints } from '../../src/api/proofs.ts';
import { type AnyJson, type Appliance, testAppliance } from '../support/appliance.ts';
import { dns, TestCertificate, uri } from '../support/client-certificates.ts';

const day = 86_400_000;
const id = 'spiffe://prod.example/payroll';

/** Id of the proof that a record is about. */
const idOf = (record: { readonly props: AnyJson } | undefined) => record?.props.objects?.[0]?.id;

interface Key {
  readonly key: string;
  readonly keyid: string;
}

async function around() {
  const a = await testAppliance();
  return { a, now: a.world.now(), first: await a.keyWith('keyring.list'), second: await a.keyWith('keyring.list') };
}

const add = (a: Appliance, { keyid }: Key, body: object, more: object = {}) =>
  a.call('POST', `/auth/apikeys/${keyid}/proofs`, { kind: 'certificate', ...body }, more);

async function added(a: Appliance, key: Key, body: object): Promise<AnyJson> {
  const { status, body: proof } = await add(a, key, body);
  assert.equal(status, 200, JSON.stringify(proof));
  return proof;
}

const setActive = (a: Appliance, { keyid }: Key, proof: AnyJson, active: boolean) =>
  a.call('PATCH', `/auth/apikeys/${keyid}/proofs/${proof.id}`, { active });

const request = (a: Appliance, certificate: TestCertificate) =>
  a.call('GET', '/ks/keyrings', undefined, { key: null, env: certificate.shown });

const logIn = (a: Appliance, certificate: TestCertificate | undefined, role?: string) =>
  a.call(
    'POST',
    '/auth/workload/login',
    { certificate: true, ...(role !== undefined && { role }) },
    { key: null, env: { ...certificate?.shown } },
  );

/** The API key that the certificate is; undefined if it is refused. */
async function keyOf(a: Appliance, certificate: TestCertificate): Promise<string | undefined> {
  const [asked, login] = [await request(a, certificate), await logIn(a, certificate)];
  const isRefused = asked.status === 401;
  assert.equal(asked.status, isRefused ? 401 : 200, asked.text);
  assert.equal(login.status, isRefused ? 400 : 200, 'a login finds the same');
  return isRefused ? undefined : login.body.keyid;
}

const rsa = (modulusLength: number, hash = 'SHA-256') =>
  crypto.subtle.generateKey(
    { name: 'RSASSA-PKCS1-v1_5', modulusLength, publicExponent: new Uint8Array([1, 0, 1]), hash },
    true,
    ['sign', 'verify'],
  );

test('a certificate that fits proofs of several API keys is the oldest of them, whatever was added later', async () => {
  const { a, now, first, second } = await around();
  const authority = await TestCertificate.authority(now);
  const names = [uri(id), dns('other.example'), dns('app.example')];
  const program = await authority.signs({ names });
  await added(a, first, { ca: authority.pem, san: 'dns:app.example' });
  for (const san of ['dns:other.example', id, 'spiffe://prod.example/*']) {
    await added(a, second, { ca: authority.pem, san });
    assert.equal(await keyOf(a, program), first.keyid, san);
  }
  const starred = await authority.signs({ names: [uri('spiffe://prod.example/orders')] });
  assert.equal(await keyOf(a, starred), second.keyid);
  await added(a, second, { ca: authority.pem, san: 'spiffe://prod.example/orders' });
  assert.equal(await keyOf(a, starred), second.keyid, 'an exact name that is younger than one with a star');
});

test('a name that an older pattern of another key covers can never count, and is refused', async () => {
  const { a, now, first, second } = await around();
  const authority = await TestCertificate.authority(now);
  const pattern = 'spiffe://prod.example/ns/*/sa/app';
  const proof = await added(a, first, { ca: authority.pem, san: pattern });
  const { body: mallory } = await a.call('POST', '/auth/apikey', {
    accountId: a.accountId,
    flags: { 'apikey.update': true },
  });
  const coveredNames = ['spiffe://prod.example/ns/z/sa/app', 'spiffe://prod.example/ns/shop-*/sa/app'];
  const names = ['spiffe://prod.example/ns/z/sa/other', 'spiffe://prod.example/ns/z/*/app', 'spiffe://prod.example/*'];
  for (const active of [true, false]) {
    await setActive(a, first, proof, active);
    for (const san of coveredNames) {
      const told = await add(a, second, { ca: authority.pem, san });
      assert.equal(told.status, 400, san);
      const words = `certificates of that name are the proof ${proof.id} (uri:${pattern}) of the API key ${first.keyid}`;
      assert.ok(told.body.message.startsWith(words), told.body.message);
      const untold = await add(a, mallory, { ca: authority.pem, san }, { key: mallory.key });
      assert.match(untold.body.message, /^certificates of that name are an older proof of another API key already/);
      assert.ok(!untold.text.includes(first.keyid) && !untold.text.includes(proof.id));
    }
  }
  for (const san of names) assert.equal((await add(a, second, { ca: authority.pem, san })).status, 200, san);
  const other = await TestCertificate.authority(now);
  const exact = 'spiffe://prod.example/ns/z/sa/app';
  assert.equal((await add(a, second, { ca: other.pem, san: exact })).status, 200, 'another authority');
  assert.equal((await add(a, first, { ca: authority.pem, san: exact })).status, 200, 'its own key may narrow it');
});

test('the record of a login names the older proof that the certificate is', async () => {
  const { a, now, first, second } = await around();
  const authority = await TestCertificate.authority(now);
  const program = await authority.signs({ names: [dns('a.example'), dns('b.example')] });
  const older = await added(a, first, { ca: authority.pem, san: 'dns:a.example' });
  const meant = await added(a, second, { ca: authority.pem, san: 'dns:b.example' });
  const { body } = await logIn(a, program, second.keyid);
  assert.equal(body.check, 'role');
  assert.ok(!JSON.stringify(body).includes(older.id), 'a program learns nothing about other keys');
  const [record] = (await a.activity()).filter(
    ({ keyid, action }) => action === 'session.create' && keyid === second.keyid,
  );
  const { proof, refusedBy, olderProof, olderProofOf } = record?.props ?? {};
  assert.deepEqual([proof, refusedBy, olderProof, olderProofOf], [meant.id, 'role', older.id, first.keyid]);
});

test('a proof that is off, and one of a key that is off, refuse: no other key takes the program over', async () => {
  const { a, now, first, second } = await around();
  const authority = await TestCertificate.authority(now);
  const program = await authority.signs({ names: [uri(id)] });
  const proof = await added(a, first, { ca: authority.pem, san: id });
  const younger = await added(a, second, { ca: authority.pem, san: 'spiffe://prod.example/*' });
  const change = (fields: object) => a.call('PUT', '/auth/apikeyid', { apikeyid: first.keyid, op: 'merge', ...fields });
  const refusedEverywhere = async (what: string): Promise<void> => {
    assert.equal(await keyOf(a, program), undefined, what);
    for (const role of [second.keyid, younger.id]) {
      assert.equal((await logIn(a, program, role)).body.check, 'role', `${what}: nor as ${role}`);
    }
  };
  assert.equal(await keyOf(a, program), first.keyid);
  await setActive(a, first, proof, false);
  await refusedEverywhere('the proof is off');
  await setActive(a, first, proof, true);
  await change({ active: false });
  await refusedEverywhere('the key is off');
  await change({ active: true, expiresAt: now + 1000 });
  a.advance(2000);
  await refusedEverywhere('the key has expired');
  a.advance(-2000);
  assert.equal((await logIn(a, program, first.keyid)).status, 200);
  assert.equal((await logIn(a, program, proof.id)).status, 200);
  assert.equal((await a.call('DELETE', `/auth/apikeys/${first.keyid}/proofs/${proof.id}`)).status, 200);
  assert.equal(await keyOf(a, program), second.keyid, 'what is removed is none of its proofs any more');
});

test('nobody pins the certificate of another key, nor takes an authority and name of it', async () => {
  const { a, now, first, second } = await around();
  const authority = await TestCertificate.authority(now);
  const program = await authority.signs({ names: [dns('app.example')] });
  const alone = await TestCertificate.alone(now);
  const trust = { ca: authority.pem, san: 'dns:app.example' };
  await added(a, first, trust);
  const pin = await added(a, first, { certificate: alone.pem });
  await setActive(a, first, pin, false);
  const { body: mallory } = await a.call('POST', '/auth/apikey', {
    accountId: a.accountId,
    flags: { 'apikey.update': true },
  });
  for (const body of [{ certificate: program.pem }, { certificate: alone.pem }, trust]) {
    const told = await add(a, second, body);
    assert.equal(told.status, 400);
    assert.match(told.body.message, new RegExp(`it is a proof of the API key ${first.keyid} already`));
    const untold = await add(a, mallory, body, { key: mallory.key });
    assert.match(untold.body.message, /it is a proof of another API key already/);
    assert.ok(!untold.text.includes(first.keyid));
  }
  assert.equal(await keyOf(a, program), first.keyid);
  assert.equal(await keyOf(a, alone), undefined);
  assert.equal((await add(a, first, { certificate: program.pem })).status, 200, 'its own key may pin it');
  assert.equal(await keyOf(a, program), first.keyid);
});

test('a leaf whose key is too weak proves nothing, whoever signed it', async () => {
  const { a, now, first } = await around();
  const authority = await TestCertificate.authority(now);
  await added(a, first, { ca: authority.pem, san: id });
  for (const [bits, isGood] of [
    [1024, false],
    [2048, true],
  ] as const) {
    const program = await authority.signs({ names: [uri(id)], keys: await rsa(bits) });
    assert.equal(await keyOf(a, program), isGood ? first.keyid : undefined, String(bits));
    if (!isGood) assert.match((await logIn(a, program, first.keyid)).body.message, /its key is not RSA from 2048 bits/);
  }
});

test('an issued certificate ends when it says, also if its holder signs another; a pinned key has no end', async () => {
  const { a, now, first } = await around();
  const { privateKey, certificate, notAfter } = await added(a, first, { issue: true, days: 2 });
  assert.equal(new X509Certificate(certificate).validToDate.toISOString(), notAfter);
  const pkcs8 = Buffer.from(privateKey.replace(/-----[^-]+-----/g, ''), 'base64');
  const spki = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  const curve = { name: 'ECDSA', namedCurve: 'P-256' };
  const keys = {
    privateKey: await crypto.subtle.importKey('pkcs8', pkcs8, curve, true, ['sign']),
    publicKey: await crypto.subtle.importKey('spki', new Uint8Array(spki), curve, true, ['verify']),
  };
  const forever = await TestCertificate.alone(now, { keys, notAfter: now + 365 * day });
  const pinned = await TestCertificate.alone(now, { notAfter: now + 2 * day });
  await added(a, first, { certificate: pinned.pem });
  const renewed = await TestCertificate.alone(now, { keys: pinned.keys, notAfter: now + 365 * day });
  assert.equal(await keyOf(a, forever), first.keyid);
  assert.match((await add(a, first, { certificate: forever.pem })).body.message, /issued here.*: issue another$/);
  a.advance(2 * day + 1000);
  assert.equal(await keyOf(a, forever), undefined);
  assert.equal(await keyOf(a, pinned), undefined);
  assert.equal(await keyOf(a, renewed), first.keyid, 'the key is what is pinned');
});

test('a renewed certificate or authority renews its proof in place', async () => {
  const { a, now, first, second } = await around();
  const authority = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + 2 * day });
  const later = await TestCertificate.authority(now, 'CN=ca', { notAfter: now + 9 * day, keys: authority.keys });
  const renamed = await TestCertificate.authority(now, 'CN=cb', { notAfter: now + 9 * day, keys: authority.keys });
  const pinned = await TestCertificate.alone(now, { notAfter: now + 2 * day });
  const next = await TestCertificate.alone(now, { notAfter: now + 9 * day, keys: pinned.keys });
  const san = 'dns:app.example';
  for (const [before, after] of [
    [
      { ca: authority.pem, san },
      { ca: later.pem, san },
    ],
    [{ certificate: pinned.pem }, { certificate: next.pem }],
  ] as const) {
    const { id: proof } = await added(a, first, { ...before, name: 'app' });
    assert.match((await add(a, first, before)).body.message, /nothing is renewed/);
    assert.equal((await add(a, second, after)).status, 400, 'for another key it is a conflict');
    const renewed = await added(a, first, after);
    assert.deepEqual([renewed.id, renewed.name, renewed.active, renewed.renewed], [proof, 'app', true, true]);
    assert.equal(renewed.notAfter, new Date(now - (now % 1000) + 9 * day).toISOString());
    assert.match((await add(a, first, before)).body.message, /nothing is renewed/);
    const [record] = (await a.activity()).filter(({ props }) => props.proofChange === 'renew');
    assert.deepEqual([idOf(record), Object(record?.props.trust).notAfter], [proof, renewed.notAfter]);
  }
  const program = await authority.signs({ names: [dns('app.example')], notAfter: now + 20 * day });
  const ended = await authority.signs({ names: [dns('app.example')], notAfter: now + 2 * day });
  a.advance(3 * day);
  assert.equal(await keyOf(a, program), first.keyid);
  assert.equal(await keyOf(a, ended), undefined);
  assert.equal(await keyOf(a, next), first.keyid);
  assert.notEqual((await added(a, first, { ca: renamed.pem, san })).id, undefined, 'another name is another authority');
});

test('a key with all the proofs that it may have renews one of them', async () => {
  const { a, now, first } = await around();
  const pinned = await TestCertificate.alone(now);
  const { id: proof } = await added(a, first, { certificate: pinned.pem });
  let last = 200;
  while (last === 200) ({ status: last } = await add(a, first, { issue: true }));
  assert.equal(last, 403);
  const next = await TestCertificate.alone(now, { notAfter: now + 90 * day, keys: pinned.keys });
  assert.equal((await added(a, first, { certificate: next.pem })).id, proof);
});

test('records and lists say which authority, name and key a proof trusts', async () => {
  const { a, now, first } = await around();
  const authority = await TestCertificate.authority(now, 'CN=Programs, O=Acme');
  const alone = await TestCertificate.alone(now);
  const proofs = [
    await added(a, first, { ca: authority.pem, san: 'spiffe://prod.example/*' }),
    await added(a, first, { certificate: alone.pem }),
    await added(a, first, { issue: true }),
  ];
  const [byName, pinned, issued] = proofs;
  assert.equal(byName?.authority, 'CN=Programs, O=Acme');
  assert.deepEqual([byName?.issued, pinned?.issued, issued?.issued], [undefined, undefined, true]);
  const shown = (await a.call('GET', `/auth/apikeys/${first.keyid}/proofs`)).body.proofs.slice(1);
  for (const [n, { fingerprint, notAfter, san, authority: name, issued: isIssued, id: proof }] of proofs.entries()) {
    assert.match(fingerprint, /^[0-9a-f]{64}$/);
    const trust = JSON.parse(JSON.stringify({ fingerprint, notAfter, san, authority: name, issued: isIssued }));
    assert.deepEqual(JSON.parse(JSON.stringify({ ...trust, ...shown[n] })), shown[n]);
    await a.call('DELETE', `/auth/apikeys/${first.keyid}/proofs/${proof}`);
    const records = (await a.activity()).filter((each) => idOf(each) === proof);
    assert.deepEqual(records.map(({ props }) => props.proofChange).sort(), ['add', 'remove']);
    for (const { props } of records) assert.deepEqual(props.trust, trust);
  }
});

test('a certificate with too many names proves nothing, and everybody who asks is told so', async () => {
  const { a, now, first } = await around();
  const authority = await TestCertificate.authority(now);
  const many = (count: number) => Array.from({ length: count }, (_, n) => dns(`a${n}.example`));
  await added(a, first, { ca: authority.pem, san: 'dns:a0.example' });
  assert.equal(await keyOf(a, await authority.signs({ names: many(20) })), first.keyid);
  const program = await authority.signs({ names: many(21) });
  const reason = /it has more than 20 names/;
  const asked = await request(a, program);
  assert.equal(asked.status, 401);
  assert.match(asked.body.message, reason);
  for (const role of [undefined, first.keyid]) {
    const { status, body } = await logIn(a, program, role);
    assert.deepEqual([status, body.check], [400, 'certificate']);
    assert.match(body.message, reason);
  }
  assert.match((await add(a, first, { certificate: program.pem })).body.errors.certificate, reason);
});

test('an authority whose signatures never count is refused, with the reason', async () => {
  const { a, now, first } = await around();
  const root = await TestCertificate.authority(now, 'CN=root');
  const below = async (keys: CryptoKeyPair) => root.signs({ isAuthority: true, subject: 'CN=below', keys });
  const odd = await rsa(2560);
  const sha1 = { signing: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-1' }, keys: await rsa(2048, 'SHA-1') };
  const impostor = await TestCertificate.authority(now, 'CN=root');
  const unlike = await impostor.signs({ isAuthority: true, subject: 'CN=root' });
  for (const [ca, reason] of [
    [await below(odd), /signatures of its key do not count: those of RSA of 2048, 3072 or 4096 bits/],
    [await TestCertificate.authority(now, 'CN=root', sha1), /its signature does not count/],
    [unlike, /its signature is wrong/],
  ] as const) {
    const { status, body } = await add(a, first, { ca: ca.pem, san: id });
    assert.equal(status, 400);
    assert.match(body.errors.ca, reason);
  }
  await added(a, first, { ca: (await below(await rsa(3072))).pem, san: id });
});

test('a misfit is told in true words', async () => {
  const { a, now, first } = await around();
  const authority = await TestCertificate.authority(now);
  const { id: byHost } = await added(a, first, { ca: authority.pem, san: 'dns:app.example' });
  const { id: byId } = await added(a, first, { ca: authority.pem, san: id });
  const program = await authority.signs({ names: [dns('b.example'), uri(id), uri('https://b.example/')] });
  for (const [role, check, message] of [
    [byHost, 'name', /: it does not have the name dns:app\.example$/],
    [byId, 'name', /: it does not have uri:spiffe:\/\/prod\.example\/payroll as its only URI$/],
    ['nobody', 'role', /no API key of that name or id/],
  ] as const) {
    const { body } = await logIn(a, program, role);
    assert.equal(body.check, check);
    assert.match(body.message, message);
  }
  const { body } = await logIn(a, undefined, first.keyid);
  assert.equal(body.check, 'certificate');
  assert.match(body.message, /the connection shows none; it needs TLS .* to the appliance itself/);
});

test('a refused login is recorded under each key that it names, and once under one', async () => {
  const { a, now, first } = await around();
  const authority = await TestCertificate.authority(now);
  await added(a, first, { ca: authority.pem, san: id });
  const old = await authority.signs({ names: [uri(id)], notAfter: now - day });
  const records = async () =>
    (await a.activity()).filter(({ action, keyid }) => action === 'session.create' && keyid === first.keyid);
  assert.equal((await logIn(a, old, 'nobody')).body.check, 'role');
  assert.equal((await records()).length, 0);
  for (let n = 0; n < 3; n++) assert.equal((await logIn(a, old, first.keyid)).body.check, 'time');
  assert.equal((await records()).length, 1, 'another key than before is a record, the same again is none');
  await a.call('PUT', '/auth/apikeyid', { apikeyid: first.keyid, op: 'merge', active: false });
  const good = await authority.signs({ names: [uri(id)] });
  for (let n = 0; n < 3; n++) assert.equal((await logIn(a, good)).body.check, 'api-key');
  assert.equal((await records()).length, 2, 'a key that is off refuses like all else');
});

test('a key or proof that is off is refused for that by its name, too', async () => {
  const { a, now, first } = await around();
  const change = (fields: object) => a.call('PUT', '/auth/apikeyid', { apikeyid: first.keyid, op: 'merge', ...fields });
  await change({ name: 'till' });
  const program = await TestCertificate.alone(now);
  const proof = await added(a, first, { certificate: program.pem });
  const refusedAlike = async (what: string): Promise<void> => {
    for (const role of [first.keyid, 'till', proof.id]) {
      assert.equal((await logIn(a, program, role)).body.check, 'api-key', `${what}: ${role}`);
    }
    const stranger = await TestCertificate.alone(now);
    assert.equal((await logIn(a, stranger, 'till')).body.check, 'authority', what);
  };
  await change({ active: false });
  await refusedAlike('the key is disabled');
  await change({ active: true, expiresAt: now });
  await refusedAlike('the key has expired');
  await change({ expiresAt: null });
  await setActive(a, first, proof, false);
  await refusedAlike('the proof is off');
  await setActive(a, first, proof, true);
  assert.equal((await logIn(a, program, 'till')).status, 200);
});

test('a field of another kind of proof is refused, not lost', async () => {
  const { a, first } = await around();
  const fields: Readonly<Record<string, readonly [value: unknown, ...kinds: string[]]>> = {
    name: ['n', 'aws', 'certificate', 'jwt'],
    active: [false, 'aws', 'certificate', 'jwt'],
    certificate: ['x', 'certificate'],
    san: [id, 'certificate'],
    issue: [true, 'certificate'],
    days: [3, 'certificate'],
    ca: ['x', 'certificate', 'jwt'],
    issuer: ['https://issuer.example', 'jwt'],
    audience: ['kms', 'jwt'],
    subject: ['x', 'jwt'],
    claims: [{ a: 'b' }, 'jwt'],
    jwks: [{ keys: [] }, 'jwt'],
    jwksUrl: ['https://issuer.example/keys', 'jwt'],
    once: [true, 'jwt'],
    longest: [60, 'jwt'],
  };
  const { body: input } = proofEndpoints.find((each) => each.id === 'addProof') ?? assert.fail();
  const declared = Object.keys(input.shape);
  assert.deepEqual(declared.filter((field) => field !== 'kind').sort(), Object.keys(fields).sort());
  for (const kind of ['secret', 'aws', 'certificate', 'jwt']) {
    for (const [field, [value, ...kinds]] of Object.entries(fields)) {
      if (kinds.includes(kind)) continue;
      const { status, body } = await add(a, first, { kind, [field]: value });
      assert.equal(status, 400, `${kind} with ${field}`);
      assert.match(body.errors?.[field] ?? '', new RegExp(`not for proofs of the kind ${kind}`), `${kind}, ${field}`);
    }
  }
  assert.equal((await a.call('GET', `/auth/apikeys/${first.keyid}/proofs`)).body.proofs.length, 1);
});

test('an authority of the appliance that cannot sign is named, with the way out', async () => {
  const { a, first } = await around();
  await added(a, first, { issue: true });
  for (const state of ['suspended', 'deactivated']) {
    const { status, text } = await a.call('POST', '/managed-keys/client-ca/state', { state, used: true });
    assert.equal(status, 200, text);
    const refused = await add(a, first, { issue: true });
    assert.equal(refused.status, 400);
    assert.match(
      refused.body.message,
      /^client-ca, which issues client certificates, cannot be used: the key is .* delete any other, and the next/,
    );
  }
});

test('what a client of Vault is told about renewing its certificate is what the record says', async () => {
  const { a, now, first } = await around();
  const alone = await TestCertificate.alone(now);
  await added(a, first, { certificate: alone.pem });
  const renew = (more: object) => a.call('PUT', '/v1/auth/token/renew-self', {}, { key: null, ...more });
  const vault = { surface: 'vault' };
  for (const more of [{ env: { ...vault, ...alone.shown } }, { env: vault, headers: { 'X-Vault-Token': first.key } }]) {
    const answer = await renew(more);
    assert.deepEqual([answer.status, answer.body.errors], [400, ['invalid lease ID']]);
    const records = (await a.activity()).filter(({ action }) => action === 'session.refresh');
    assert.deepEqual([...new Set(records.map(({ status, validAction }) => `${status} ${validAction}`))], ['400 false']);
  }
});
