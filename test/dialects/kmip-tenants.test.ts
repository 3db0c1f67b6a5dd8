// KMIP has no address that would name a tenant: a certificate belongs to the tenant of its oldest proof. Those who are
// refused leave a trace.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { enumeration, structure, text } from '../../src/dialects/kmip/ttlv.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { idsIn, KmipClient, uid } from '../support/kmip-client.ts';

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

  /** Adds the certificate, or what else proves it, to a new API key. */
  async proves(proof: object): Promise<{ readonly off: () => Promise<void>; readonly remove: () => Promise<void> }> {
    const accountId = this.#a.tenants[this.#n]?.accountId;
    const { keyid } = await this.#call('POST', '/auth/apikey', { accountId, flags: { 'kmip.*': true } });
    const path = `/auth/apikeys/${keyid}/proofs`;
    const { id } = await this.#call('POST', path, { kind: 'certificate', ...proof });
    return {
      off: () => this.#call('PATCH', `${path}/${id}`, { active: false }),
      remove: () => this.#call('DELETE', `${path}/${id}`),
    };
  }
}

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
  assert.equal(await old.refused('Get', [uid(id)]), reasons.itemNotFound, 'the next oldest proof counts');
});

const named = (name: string, password: string) => ({
  header: [
    structure(
      tags.authentication,
      structure(
        tags.credential,
        enumeration(tags.credentialType, 1),
        structure(tags.credentialValue, text(tags.username, name), text(tags.password, password)),
      ),
    ),
  ],
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
    assert.equal((await client.ask('Locate', [], named(body.keyid, body.key))).status, 0, host);
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
    const { reason } = await stranger.ask('Locate', [], named(key.keyid, `kms_${n}`));
    assert.equal(reason, reasons.authenticationNotSuccessful);
  }
  assert.equal(lines().length, 4);
  assert.ok(!lines().some((line) => line.includes('kms_0')), 'never the password');
  const [record, ...others] = await refusals();
  assert.deepEqual(others, []);
  assert.deepEqual([record?.action, record?.validAction, record?.props.refusedBy], ['key.list', false, 'password']);
  let braked: string | undefined;
  for (let n = 0; n < 60 && !braked; n++) {
    const { reason, message } = await stranger.ask('Locate', [], named(key.keyid, `kms_more_${n}`));
    if (reason === reasons.generalFailure) braked = message;
  }
  assert.match(braked ?? '', /too many failed logins; try again in/);
  assert.equal((await stranger.ask('Locate', [], named(key.keyid, key.key))).status, 0, 'the right one is let in');
});
