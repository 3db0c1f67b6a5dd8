// KMIP has no address that would name a tenant: a certificate belongs to the tenant of its oldest proof. Those who are
// refused leave a trace.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { encodeItem } from '../../src/dialects/kmip/ttlv.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { idsIn, KmipClient, requestOf, uid, withPassword } from '../support/kmip-client.ts';

const minute = 60_000;

/** A tenant whose administrator gives API keys their proofs. */
class Seat {
  readonly #a: Appliance;
  readonly #n: number;

  constructor(a: Appliance, n: number) {
    this.#a = a;
    this.#n = n;
  }

  async #call(method: string, path: string, body?: object) {
    const key = this.#a.tenants[this.#n]?.root.key ?? '';
    const answer = await this.#a.call(method, path, body, { key, host: `t${this.#n}.test` });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  async #newKey(): Promise<string> {
    const accountId = this.#a.tenants[this.#n]?.accountId;
    return (await this.#call('POST', '/auth/apikey', { accountId, flags: { 'kmip.*': true } })).keyid;
  }

  /** The answer to adding a proof to a new API key. */
  async tries(proof: object) {
    const key = this.#a.tenants[this.#n]?.root.key ?? '';
    const path = `/auth/apikeys/${await this.#newKey()}/proofs`;
    return this.#a.call('POST', path, { kind: 'certificate', ...proof }, { key, host: `t${this.#n}.test` });
  }

  /** Adds the certificate, or what else proves it, to a new API key. */
  async proves(proof: object) {
    const keyid = await this.#newKey();
    const path = `/auth/apikeys/${keyid}/proofs`;
    const answer = await this.#call('POST', path, { kind: 'certificate', ...proof });
    return {
      answer,
      also: (more: object) => this.#call('POST', path, { kind: 'certificate', ...more }),
      off: () => this.#call('PATCH', `${path}/${answer.id}`, { active: false }),
      remove: () => this.#call('DELETE', `${path}/${answer.id}`),
      disableKey: () => this.#call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, active: false }),
      removeKey: () => this.#call('DELETE', `/auth/apikeyid/${keyid}`),
    };
  }
}

const messageOf = (operation: string) => encodeItem(requestOf([{ operation }]));

async function severalTenants(): Promise<{ readonly a: Appliance; readonly seats: readonly [Seat, Seat, Seat] }> {
  const tenants = [0, 1, 2].map((n) => ({ name: `t${n}`, hosts: [`t${n}.test`] }));
  const a = await testAppliance({ tenants });
  return { a, seats: [new Seat(a, 0), new Seat(a, 1), new Seat(a, 2)] };
}

const warnings = (a: Appliance) => a.log.filter((line) => /proof in several tenants/.test(line));

test('no proof that is added in another tenant later takes a client over, in old and new connections', async () => {
  const { a, seats } = await severalTenants();
  const authority = await TestCertificate.authority(a.world.now());
  const certificate = await authority.signs({ names: [{ type: 'dns', value: 'vault.example' }] });
  const own = await seats[1].proves({ certificate: certificate.pem });
  const old = new KmipClient(a, certificate);
  const id = await old.aes();
  assert.deepEqual(warnings(a), []);
  a.advance(minute);
  await seats[0].proves({ certificate: certificate.pem });
  await seats[2].proves({ ca: authority.pem, san: 'dns:vault.example' });
  for (const client of [old, new KmipClient(a, certificate), new KmipClient(a, certificate)]) {
    assert.deepEqual(idsIn(await client.did('Locate')), [id]);
    assert.equal(await client.state(id), 1);
  }
  assert.match(warnings(a)[0] ?? '', /"tenant":"t1"/);
  await own.off();
  assert.equal(await old.refused('Locate'), reasons.authenticationNotSuccessful, 'its own proof is off');
  await own.remove();
  a.advance(minute);
  await seats[1].proves({ certificate: certificate.pem });
  assert.equal(await old.refused('Get', [uid(id)]), reasons.authenticationNotSuccessful, 'its connection is over');
  const fresh = new KmipClient(a, certificate);
  assert.equal(await fresh.refused('Get', [uid(id)]), reasons.itemNotFound, 'the next oldest proof counts');
});

test('a connection ends with its proof, and no other proof takes it over, be it of the same tenant', async () => {
  const { a, seats } = await severalTenants();
  const authority = await TestCertificate.authority(a.world.now());
  for (const end of ['remove', 'off', 'removeKey', 'disableKey'] as const) {
    const name = `${end.toLowerCase()}.example`;
    const certificate = await authority.signs({ names: [{ type: 'dns', value: name }] });
    const own = await seats[0].proves({ certificate: certificate.pem });
    // The same certificate by its name: of the same API key, and of another tenant.
    await own.also({ ca: authority.pem, san: `dns:${name}` });
    a.advance(minute);
    await seats[1].proves({ certificate: certificate.pem });
    const client = new KmipClient(a, certificate);
    await client.did('Locate');
    await own[end]();
    for (const operation of ['Locate', 'Query']) {
      const { status, ends } = await client.post(messageOf(operation));
      assert.deepEqual([status, ends], [200, true], `${end}, ${operation}`);
      assert.equal(await client.refused(operation), reasons.authenticationNotSuccessful, `${end}, ${operation}`);
    }
  }
});

test('the oldest proof counts by its time, in whatever order tenants are served', async () => {
  const { a, seats } = await severalTenants();
  const certificate = await TestCertificate.alone(a.world.now());
  await seats[2].proves({ certificate: certificate.pem });
  a.advance(minute);
  await seats[0].proves({ certificate: certificate.pem });
  const client = new KmipClient(a, certificate);
  const id = await client.aes();
  assert.match(warnings(a)[0] ?? '', /"tenant":"t2"/);
  assert.equal(await new KmipClient(a, certificate).state(id), 1);
});

test('a certificate that is issued here proves its own API key alone, whatever another tenant adds', async () => {
  const { a, seats } = await severalTenants();
  const own = await seats[1].proves({ issue: true });
  const issued = await TestCertificate.read(own.answer.certificate, a.world.now());
  const client = new KmipClient(a, issued);
  const id = await client.aes();
  const again = await seats[0].tries({ certificate: own.answer.certificate });
  assert.equal(again.status, 400);
  assert.match(again.body.message, /^an appliance issued it for the API key apik_\w{26}, and it proves that one alone/);
  assert.equal((await seats[1].tries({ certificate: own.answer.certificate })).status, 400, 'nor in its own tenant');
  // Another certificate of the same public key, which its maker need not have the private key of.
  const authority = await TestCertificate.authority(a.world.now());
  const wrapped = await authority.signs({ keys: { ...authority.keys, publicKey: issued.keys.publicKey } });
  await seats[0].proves({ certificate: wrapped.pem });
  assert.equal(await new KmipClient(a, issued).state(id), 1);
  await own.remove();
  const after = new KmipClient(a, issued);
  assert.equal(await after.refused('Locate'), reasons.authenticationNotSuccessful, 'of its authority alone now');
  assert.deepEqual(warnings(a), []);
});

test('who adds a proof learns that an older one elsewhere is for the same, and not where', async () => {
  const { a, seats } = await severalTenants();
  const authority = await TestCertificate.authority(a.world.now());
  const certificate = await TestCertificate.alone(a.world.now());
  const spiffe = (path: string) => ({ ca: authority.pem, san: `spiffe://prod.example/${path}` });
  const proofs = [{ certificate: certificate.pem }, { ca: authority.pem, san: 'dns:a.example' }];
  for (const proof of [...proofs, spiffe('pay/*')])
    assert.equal((await seats[0].proves(proof)).answer.otherTenant, undefined);
  a.advance(minute);
  for (const proof of [...proofs, spiffe('pay/roll'), spiffe('pay/*')]) {
    const { body } = await seats[1].tries(proof);
    assert.equal(body.otherTenant, true, JSON.stringify(body));
    // The authority is the one that was sent, and its base64 may contain any two characters.
    const { ca, ...told } = body;
    assert.equal(ca, Object(proof).ca);
    assert.doesNotMatch(JSON.stringify(told), /t0/);
  }
  for (const proof of [spiffe('other'), { ca: authority.pem, san: 'dns:b.example' }]) {
    assert.equal((await seats[1].proves(proof)).answer.otherTenant, undefined);
  }
});

test('a client with name and password works in the tenant of its API key, whoever knows its authority', async () => {
  const { a, seats } = await severalTenants();
  const authority = await TestCertificate.authority(a.world.now());
  for (const seat of seats) await seat.proves({ ca: authority.pem, san: 'dns:other.example' });
  const client = new KmipClient(a, await authority.signs({ names: [{ type: 'dns', value: 'vault.example' }] }));
  for (const { accountId, root } of a.tenants) {
    const host = `t${a.tenants.findIndex((each) => each.accountId === accountId)}.test`;
    const given = { accountId, flags: { 'kmip.*': true } };
    const { body } = await a.call('POST', '/auth/apikey', given, { key: root.key, host });
    assert.equal((await client.ask('Locate', [], withPassword(body.keyid, body.key))).status, 0, host);
  }
});

test('refused clients are logged, and wrong passwords are recorded once a minute and braked', async () => {
  const a = await testAppliance();
  const authority = await TestCertificate.authority(a.world.now());
  const key = await a.keyWith('kmip.*');
  const proof = { kind: 'certificate', ca: authority.pem, san: 'dns:storage.example' };
  assert.equal((await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, proof)).status, 200);
  const stranger = new KmipClient(a, await authority.signs({ names: [{ type: 'dns', value: 'other.example' }] }));
  const lines = () => a.log.filter((line) => /KMIP: a client was refused/.test(line));
  await stranger.did('Discover Versions');
  assert.deepEqual(lines(), []);
  assert.equal(await stranger.refused('Locate'), reasons.authenticationNotSuccessful);
  assert.match(lines()[0] ?? '', /"certificate":"[0-9a-f]{64}".*no API key has its certificate/);
  const refusals = async () =>
    (await a.activity()).filter(({ keyid, status }) => keyid === key.keyid && status === 401);
  for (let n = 0; n < 3; n++) {
    const { reason } = await stranger.ask('Locate', [], withPassword(key.keyid, `kms_${n}`));
    assert.equal(reason, reasons.authenticationNotSuccessful);
  }
  assert.equal(lines().length, 4);
  assert.ok(!lines().some((line) => line.includes('kms_0')), 'never the password');
  const [record, ...others] = await refusals();
  assert.deepEqual(others, []);
  assert.deepEqual([record?.action, record?.validAction, record?.props.refusedBy], ['key.list', false, 'password']);
  let braked: string | undefined;
  for (let n = 0; n < 60 && !braked; n++) {
    const { reason, message } = await stranger.ask('Locate', [], withPassword(key.keyid, `kms_more_${n}`));
    if (reason === reasons.generalFailure) braked = message;
  }
  assert.match(braked ?? '', /too many failed logins; try again in/);
  assert.equal(
    (await stranger.ask('Locate', [], withPassword(key.keyid, key.key))).status,
    0,
    'the right one is let in',
  );
});
