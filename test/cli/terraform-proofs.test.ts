// Resources `kms_apikey_proof` whose configuration changes: what trusts the same stays the same proof, whatever its
// text, a renewal is one, and whatever is cut off or has to wait comes to rest.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Proof } from '../../src/api/proofs.ts';
import { makeRule } from '../http/samples.ts';
import { approver, ids, say } from '../support/approvers.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { type Plain, settled, startTofu, type Tofu } from './opentofu.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const type = 'kms_apikey_proof';
const day = 86_400_000;

async function keyed(): Promise<{ d: ServedDesk; tofu: Tofu; keyid: string }> {
  const d = await servedDesk();
  d.appliance.advance(Date.now() - d.appliance.world.now());
  await d.json('account create billing --json');
  const { keyid } = await d.json<{ keyid: string }>('apikey create --account billing --json');
  return { d, tofu: await startTofu(d, { env: { ...d.network().env, KMS_SERVER: d.url } }), keyid };
}

async function proofs(d: ServedDesk, keyid: string): Promise<readonly Proof[]> {
  const answer = await d.json<{ proofs: readonly Proof[] }>(`apikey proof list ${keyid} --json`);
  return answer.proofs.filter(({ kind }) => kind !== 'secret');
}

/** Two certificates of one key, the second of which ends later. */
async function renewal(make: 'authority' | 'alone'): Promise<readonly [string, string]> {
  const now = Date.now();
  const made = (wanted: object) =>
    make === 'alone' ? TestCertificate.alone(now, wanted) : TestCertificate.authority(now, 'CN=ca', wanted);
  const first = await made({ notAfter: now + 3 * day });
  return [first.pem, (await made({ notAfter: now + 9 * day, keys: first.keys })).pem];
}

const read = async (tofu: Tofu, state: Plain) => (await tofu.read(type, state)).state ?? assert.fail('it is gone');

/** Plans and applies until nothing is left to do: without a new object, without a problem, and once at most. */
async function rests(tofu: Tofu, state: Plain, config: Plain): Promise<Plain> {
  const before = await read(tofu, state);
  const plan = await tofu.plan(type, before, config);
  assert.deepEqual([plan.replaced, plan.problems], [[], []]);
  const after = await tofu.make(type, config, before);
  assert.equal(after.id, state.id);
  assert.deepEqual(await read(tofu, after), after);
  assert.deepEqual((await tofu.plan(type, after, config)).state, after);
  return after;
}

const imported = async (tofu: Tofu, { keyid, id }: Plain) =>
  read(tofu, (await tofu.importOf(type, `${keyid}/${id}`)).state ?? assert.fail('not imported'));

const jwt = { kind: 'jwt', name: 'forge', issuer: 'https://forge.example.org', audience: ['kms'], subject: 'acme/*' };

test('another text for the same proof changes nothing at the appliance, imported or not', async () => {
  const { d, tofu, keyid } = await keyed();
  await using _ = d;
  await using __ = tofu;
  const [ca] = await renewal('authority');
  const [certificate] = await renewal('alone');
  const san = 'spiffe://example.org/a';
  const authority = { keyid, kind: 'certificate', name: 'named', san };
  const pinned = { keyid, kind: 'certificate', name: 'pinned' };
  const texts = (pem: string) => [`# our own\n${pem}\n`, pem.replaceAll('\n', '\r\n'), pem.trim()];
  const claims = { environment: 'prod', branch: 'main' };
  const token = { keyid, ...jwt, jwks_url: 'https://forge.example.org/keys', claims: JSON.stringify(claims), ca };
  const { fingerprint } = await imported(tofu, await tofu.make(type, { ...pinned, certificate }));
  await tofu.apply(type, { ...pinned, id: (await proofs(d, keyid))[0]?.id }, null, null);
  for (const [first, ...others] of [
    [{ ...authority, ca }, ...texts(ca).map((each) => ({ ...authority, ca: each, san: `uri:${san}` }))],
    [
      { ...pinned, certificate },
      ...texts(certificate).map((each) => ({ ...pinned, certificate: each })),
      { ...pinned, certificate, fingerprint },
      { ...pinned, fingerprint },
    ],
    [
      token,
      ...texts(ca).map((each) => ({ ...token, ca: each })),
      { ...token, claims: JSON.stringify({ branch: ['main'], environment: 'prod' }), once: false, longest: 86_400 },
    ],
  ] as const) {
    let state = await settled(tofu, type, first);
    const shown = await proofs(d, keyid);
    for (const config of [...others, first]) {
      assert.deepEqual(await tofu.validate(type, config), []);
      state = await rests(tofu, state, config);
      await rests(tofu, await imported(tofu, state), config);
    }
    assert.deepEqual(await proofs(d, keyid), shown);
  }
});

test('an older certificate, or one that somebody has renewed already, is no renewal; one that has ended is none', async () => {
  const { d, tofu, keyid } = await keyed();
  await using _ = d;
  await using __ = tofu;
  for (const [make, field] of [
    ['authority', 'ca'],
    ['alone', 'certificate'],
  ] as const) {
    const [first, second] = await renewal(make);
    const common = { keyid, kind: 'certificate', name: make, ...(field === 'ca' && { san: 'dns:a.example.org' }) };
    const config = (text: string) => ({ ...common, [field]: text });
    let state = await settled(tofu, type, config(first));
    const { keyid: _, ...body } = { ...config(second) };
    const byHand = await d.appliance.call('POST', `/auth/apikeys/${keyid}/proofs`, body);
    assert.equal(byHand.status, 200);
    state = await rests(tofu, state, config(second));
    await rests(tofu, state, config(first));
    const { now: real } = Date;
    d.appliance.advance(20 * day);
    Date.now = () => real() + 20 * day;
    try {
      await rests(tofu, await imported(tofu, state), config(`${first}\n`));
    } finally {
      Date.now = real;
      d.appliance.advance(-20 * day);
    }
  }
});

test('what is another proof, is another one', async () => {
  const { d, tofu, keyid } = await keyed();
  await using _ = d;
  await using __ = tofu;
  const [ca] = await renewal('authority');
  const [certificate, renewed] = await renewal('alone');
  const [other] = await renewal('alone');
  const pinned = { keyid, kind: 'certificate', name: 'pinned', certificate };
  const state = await settled(tofu, type, pinned);
  const replaced = async (prior: Plain, config: Plain) => (await tofu.plan(type, prior, config)).replaced;
  assert.deepEqual(await replaced(state, { ...pinned, certificate: other }), ['certificate']);
  assert.deepEqual(await replaced(state, { ...pinned, certificate: null, ca, san: 'dns:a' }), [
    'ca',
    'certificate',
    'san',
  ]);
  const { fingerprint } = await imported(tofu, state);
  const wrong = await tofu.validate(type, { ...pinned, certificate: other, fingerprint });
  assert.match(wrong[0]?.message ?? '', /^fingerprint: is not that of the certificate$/);
  assert.match(
    JSON.stringify(await tofu.plan(type, null, { ...pinned, certificate: null, fingerprint })),
    /makes none/,
  );
  // The new cannot come first.
  const renamed = { ...pinned, certificate: renewed, name: 'program' };
  assert.deepEqual(await replaced(state, renamed), ['name', 'certificate']);
  const first = await tofu.apply(type, null, (await tofu.plan(type, null, renamed)).state, renamed);
  assert.match(
    first.problems[0]?.message ?? '',
    /import it as apik_\S+\/proof_\w+; if this renames it, .*create_before/,
  );
  const token = await settled(tofu, type, { keyid, ...jwt });
  assert.deepEqual(await replaced(token, { keyid, ...jwt, subject: 'other/*', longest: 60 }), ['subject', 'longest']);
});

async function renewedAndOff(tofu: Tofu, keyid: string, name: string) {
  const [first, second] = await renewal('authority');
  const config = { keyid, kind: 'certificate', name, san: `dns:${name}.example.org`, ca: first };
  return { state: await settled(tofu, type, config), config: { ...config, ca: second, active: false } };
}

async function mustBeRenewed(d: ServedDesk, { keyid, id }: Plain): Promise<void> {
  const found = (await proofs(d, String(keyid))).find((each) => each.id === id);
  assert.equal(found?.active, false);
  assert.ok(Date.parse(found.notAfter ?? '') > Date.now() + 8 * day);
}

for (const how of ['from', 'at'] as const) {
  test(`a renewal that is cut off ${how} any request is finished by the next run`, async () => {
    const { d, tofu, keyid } = await keyed();
    await using _ = d;
    await using __ = tofu;
    const { app } = d.appliance;
    const served = app.fetch;
    for (let last = 0, isOver = false; !isOver; last++) {
      const { state, config } = await renewedAndOff(tofu, keyid, `n${last}`);
      const plan = await tofu.plan(type, state, config);
      let seen = 0;
      app.fetch = async (request, env) => {
        const at = seen++;
        const isAway = how === 'at' ? at === last : at >= last;
        return isAway ? new Response('away', { status: 400 }) : served(request, env);
      };
      const cut = await tofu.apply(type, state, plan.state, config);
      app.fetch = served;
      isOver = seen <= last;
      assert.equal(cut.problems.length > 0, !isOver, `${last}`);
      await mustBeRenewed(d, await rests(tofu, cut.state ?? assert.fail('no state'), config));
    }
  });
}

test('under a rule, each act of a renewal is approved once', async () => {
  for (const window of ['once', 3600]) {
    const { d, tofu, keyid } = await keyed();
    await using _ = d;
    await using __ = tofu;
    const { state: before, config } = await renewedAndOff(tofu, keyid, 'ci');
    const grace = await approver(d.appliance);
    const approvers = { users: ids(grace) };
    await makeRule(d.appliance, { actions: ['apikey.update'], objects: ['*'], approvers, count: 1, window });
    const asked = new Set<string>();
    let state = before;
    for (let runs = 1; ; runs++) {
      assert.ok(runs <= 3);
      state = await read(tofu, state);
      const made = await tofu.apply(type, state, (await tofu.plan(type, state, config)).state, config);
      state = made.state ?? assert.fail('no state');
      if (made.problems.length === 0) break;
      const named = new Set(JSON.stringify(made.problems).match(/appr_[0-9a-z]{26}/g));
      assert.ok(named.size > 0, JSON.stringify(made.problems));
      for (const id of named) {
        asked.add(id);
        assert.equal((await say(d.appliance, grace, id)).status, 200);
      }
    }
    assert.equal(asked.size, 2);
    await mustBeRenewed(d, await rests(tofu, state, config));
  }
});
