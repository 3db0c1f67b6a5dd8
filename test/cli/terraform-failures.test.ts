// Changes of the provider that fail, at each of their requests: a secret that the appliance told is in the state, or
// what it opens is gone; and nothing that others made becomes part of a state.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { unknown } from '../../src/cli/provider/values.ts';
import { makeRule } from '../http/samples.ts';
import { approver, ids, say } from '../support/approvers.ts';
import { type Plain, startTofu, type Tofu } from './opentofu.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const start = (d: ServedDesk): Promise<Tofu> => startTofu(d, { env: { ...d.network().env, KMS_SERVER: d.url } });

interface Line {
  /** Requests since it was cut. */
  readonly seen: readonly string[];
  mend(): void;
}

/** From its n-th request on the appliance is away, or only for that one. */
function cut({ appliance: { app } }: ServedDesk, n: number, how: 'from' | 'at'): Line {
  const served = app.fetch;
  const seen: string[] = [];
  app.fetch = async (request, env) => {
    const at = seen.push(`${request.method} ${new URL(request.url).pathname}`) - 1;
    if (how === 'at' ? at !== n : at < n) return served(request, env);
    // Not the appliance's, and not asked for again.
    return new Response('away', { status: 400 });
  };
  return {
    seen,
    mend() {
      app.fetch = served;
    },
  };
}

/** API keys and live access keys as they are, and secrets of the state; each of the former has one of the latter. */
async function mustBeKept(d: ServedDesk, name: string, state: Plain | null, when: string): Promise<void> {
  const { secrets } = state ?? {};
  const { data } = await d.json<{ data: readonly Plain[] }>('apikey list --json');
  for (const { keyid } of data.filter((key) => key.name === name)) {
    const { proofs } = await d.json<{ proofs: readonly Plain[] }>(`apikey proof list ${keyid} --json`);
    for (const { kind, name: label } of proofs) {
      const secret = String(Object(secrets)[kind === 'secret' ? 'apikey' : `${label}.aws`]);
      assert.match(secret, kind === 'secret' ? /^kms_/ : /^AWS_ACCESS_KEY_ID=/, `${when}: ${kind} ${label}`);
    }
  }
}

const { publicKey } = generateKeyPairSync('x25519', {
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const proofs = (...names: string[]) => names.map((name) => ({ kind: 'aws', name }));
const key = (name: string, more: object = {}) => ({ name, account_id: 'billing', keep_secrets: true, ...more });

for (const how of ['from', 'at'] as const) {
  test(`a change that fails ${how} any request: its secrets are kept, and the next one goes on`, async () => {
    await using d = await servedDesk();
    await d.json('account create billing --json');
    await using tofu = await start(d);
    for (let n = 0, isOver = false; !isOver; n++) {
      const name = `changed-${n}`;
      const state = await tofu.make('kms_apikey', key(name, { secret: false }));
      const config = key(name, { secret: true, flags: { 'asset.search': true }, proofs: proofs('a', 'b') });
      const plan = await tofu.plan('kms_apikey', state, config);
      const line = cut(d, n, how);
      const failed = await tofu.apply('kms_apikey', state, plan.state, config);
      line.mend();
      isOver = line.seen.length <= n;
      assert.equal(failed.problems.length > 0, !isOver, `${n}: ${line.seen}`);
      await mustBeKept(d, name, failed.state, `${n}: ${line.seen}`);
      const read = await tofu.read('kms_apikey', failed.state ?? assert.fail('no state'));
      const settled = await tofu.make('kms_apikey', config, read.state ?? assert.fail('gone'));
      await mustBeKept(d, name, settled, `${n}, again`);
      assert.deepEqual((await tofu.plan('kms_apikey', settled, config)).state, settled);
      assert.deepEqual((await tofu.apply('kms_apikey', settled, null, null)).problems, []);
    }
  });

  test(`a creation that fails ${how} any request: its secrets are kept, or nothing is there`, async () => {
    await using d = await servedDesk();
    await d.json('account create billing --json');
    await using tofu = await start(d);
    for (let n = 0, isOver = false; !isOver; n++) {
      const config = key(`new-${n}`, { proofs: proofs('a', 'b') });
      const plan = await tofu.plan('kms_apikey', null, config);
      const line = cut(d, n, how);
      const failed = await tofu.apply('kms_apikey', null, plan.state, config);
      line.mend();
      isOver = line.seen.length <= n;
      assert.equal(failed.problems.length > 0, !isOver, `${n}: ${line.seen}`);
      await mustBeKept(d, config.name, failed.state, `${n}: ${line.seen}`);
      if (!failed.state) {
        await tofu.make('kms_apikey', config);
        continue;
      }
      // The state has hold of it, and removes it.
      const { state } = await tofu.read('kms_apikey', failed.state);
      assert.match(String(state?.id), /^apik_/);
      assert.deepEqual((await tofu.apply('kms_apikey', state, null, null)).problems, []);
      assert.equal((await tofu.importOf('kms_apikey', config.name)).problems.length, 1);
    }
  });
}

test('a change that the appliance refuses half-way: what it made is shown, with its secret', async () => {
  await using d = await servedDesk();
  await d.json('account create billing --json');
  await using tofu = await start(d);
  const state = await tofu.make('kms_apikey', key('batch', { secret: false, proofs: proofs('a') }));
  const config = key('batch', { secret: false, proofs: proofs('a', 'b', 'c') });
  const failed = await tofu.apply('kms_apikey', state, { ...state, secrets: unknown, proofs: unknown }, config);
  assert.match(failed.problems[0]?.message ?? '', /at most 2 access keys/);
  await mustBeKept(d, 'batch', failed.state, 'refused');
  const settled = key('batch', { secret: false, proofs: proofs('a', 'b') });
  const plan = await tofu.plan('kms_apikey', failed.state, settled);
  assert.deepEqual(plan.state?.secrets, failed.state?.secrets);
});

test('what an update brings is made in one request, and goes on after each approval', async () => {
  await using d = await servedDesk();
  await d.json('account create billing --json');
  await using tofu = await start(d);
  const before = key('batch', { secret: false, props: { a: 1 }, proofs: proofs('a') });
  let state = await tofu.make('kms_apikey', before);
  const grace = await approver(d.appliance);
  const actions = ['apikey.update'];
  await makeRule(d.appliance, { actions, objects: ['*'], approvers: { users: ids(grace) }, count: 1 });
  const config = key('batch', { secret: true, props: { a: 2 }, proofs: proofs('b') });
  const asked = new Set<string>();
  for (;;) {
    const plan = await tofu.plan('kms_apikey', state, config);
    const made = await tofu.apply('kms_apikey', state, plan.state, config);
    state = made.state ?? assert.fail('no state');
    await mustBeKept(d, 'batch', state, `after ${asked.size} approvals`);
    if (made.problems.length === 0) break;
    const [id = ''] = made.problems[0]?.message.match(/appr_[0-9a-z]{26}/) ?? assert.fail(made.problems[0]?.message);
    assert.equal((await say(d.appliance, grace, id)).status, 200);
    asked.add(id);
    assert.ok(asked.size <= 4, [...asked].join());
  }
  assert.equal(asked.size, 4);
});

test('a taken name stays with what has it, whatever its mark', async () => {
  await using d = await servedDesk();
  await using tofu = await start(d);
  const state = await tofu.make('kms_account', { name: 'billing' });
  const plan = await tofu.plan('kms_account', null, { name: 'billing' });
  const other = await tofu.apply('kms_account', null, plan.state, { name: 'billing' });
  assert.match(other.problems[0]?.message ?? '', /billing already; import it/);
  assert.equal(other.state, null);
  assert.deepEqual(await tofu.read('kms_account', state), { state, problems: [] });
  // Two of one configuration, at the same time.
  const config = key('twin');
  const both = await Promise.all(
    [1, 2].map(async () => {
      const { state: planned } = await tofu.plan('kms_apikey', null, config);
      return tofu.apply('kms_apikey', null, planned, config);
    }),
  );
  assert.equal(both.filter(({ state }) => state).length, 1, JSON.stringify(both));
});

test('another that is faster keeps what it made', async () => {
  await using d = await servedDesk();
  await d.json('account create billing --json');
  for (const [type, config] of [
    ['kms_account', { name: 'navy' }],
    ['kms_managed_key', { name: 'orders' }],
    ['kms_keyring', { name: 'payroll', public_key: publicKey }],
    ['kms_apikey', key('batch')],
    ['kms_user', { name: 'ada', email: 'a@example.org', first_name: 'A', last_name: 'L', keep_secrets: true }],
  ] as const) {
    await using first = await start(d);
    await using second = await start(d);
    const { state: planned } = await first.plan(type, null, config);
    const served = d.appliance.app.fetch;
    let made: Plain | undefined;
    d.appliance.app.fetch = async (request, env) => {
      // After the first looked, and before it makes its own.
      if (request.method === 'POST' && made === undefined) {
        made = {};
        made = await second.make(type, config);
      }
      return served(request, env);
    };
    const late = await first.apply(type, null, planned, config);
    d.appliance.app.fetch = served;
    assert.equal(late.state, null, `${type}: ${JSON.stringify(late.problems)}`);
    assert.equal(late.problems.length, 1);
    assert.deepEqual(await second.read(type, made ?? assert.fail(type)), { state: made, problems: [] });
  }
});

test('a managed key whose deletion waits keeps its aliases, and the next one gets them once it is gone', async () => {
  await using d = await servedDesk();
  const ada = await approver(d.appliance);
  await using tofu = await start(d);
  const config = { name: 'main', aliases: ['app'], deletion_allowed: true };
  const state = await tofu.make('kms_managed_key', config);
  await makeRule(d.appliance, { actions: ['key.*.delete'], objects: ['*'], approvers: { users: ids(ada) } });
  const waiting = await tofu.apply('kms_managed_key', state, null, null);
  const [id = ''] = /appr_[0-9a-z]{26}/.exec(waiting.problems[0]?.message ?? '') ?? [];
  assert.deepEqual(await tofu.read('kms_managed_key', state), { state, problems: [] });
  await say(d.appliance, ada, id);
  assert.deepEqual((await tofu.apply('kms_managed_key', state, null, null)).problems, []);
  const next = await tofu.make('kms_managed_key', config);
  assert.notEqual(next.id, state.id);
  assert.deepEqual(next.aliases, ['app']);
});
