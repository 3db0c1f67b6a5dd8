// The order in which the proofs of an API key change, its secret among them: where there is room for both, the new is
// live before the old goes, whatever waits for approval, fails or is cut off, and the next run comes to rest.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import type { Proof } from '../../src/api/proofs.ts';
import { makeRule } from '../http/samples.ts';
import { approver, ids, say } from '../support/approvers.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const jwt = (name: string, more: object = {}) => ({
  kind: 'jwt',
  name,
  issuer: `https://${name}.example.org`,
  audience: 'kms',
  subject: 'me',
  ...more,
});
const many = (count: number) => Array.from({ length: count }, (_, n) => jwt(`n${n}`));
const off = { active: false };

interface Change {
  readonly from: object;
  readonly to: object;
  /** How many are live at least, at any time. */
  readonly least: number;
}

const changes: Readonly<Record<string, Change>> = {
  'the secret goes for a token': {
    from: { secret: true },
    to: { secret: false, proofs: [jwt('a')] },
    least: 1,
  },
  'a token goes for the secret': {
    from: { secret: false, proofs: [jwt('a')] },
    to: { secret: true, proofs: [] },
    least: 1,
  },
  'the secret goes for an access key, and for a token that is switched on': {
    from: { secret: true, proofs: [jwt('a', off)] },
    to: { secret: false, proofs: [jwt('a'), { kind: 'aws', name: 's3' }] },
    least: 1,
  },
  'one is switched off for the other': {
    from: { secret: false, proofs: [jwt('a'), jwt('b', off)] },
    to: { secret: false, proofs: [jwt('a', off), jwt('b')] },
    least: 1,
  },
  'one is switched off for a new one': {
    from: { secret: false, proofs: [jwt('a')] },
    to: { secret: false, proofs: [jwt('a', off), jwt('b')] },
    least: 1,
  },
  'the secret makes room for the last of as many as may be': {
    from: { secret: true, proofs: many(19) },
    to: { secret: false, proofs: many(20) },
    least: 19,
  },
};

const isChange = ({ method }: Request): boolean => method !== 'GET';

/** A key as it was, with its file changed. `counts` are those of live proofs after each change. */
async function begun({ from, to }: Change): Promise<{ d: ServedDesk; counts: number[] }> {
  const d = await servedDesk();
  const key = { kind: 'apikey', name: 'k', accountId: 'admin' };
  await writeFile(d.path('f.json'), JSON.stringify({ ...key, ...from }));
  const made = await d.kms('apply -f f.json --secrets-out first');
  assert.equal(made.code, 0, made.stderr);
  await writeFile(d.path('f.json'), JSON.stringify({ ...key, ...to }));
  const { app } = d.appliance;
  const served = app.fetch.bind(app);
  const counts: number[] = [];
  app.fetch = async (request, env) => {
    const answer = await served(request, env);
    const path = /\/auth\/apikeys\/[^/]+\/proofs/.exec(request.url)?.[0];
    if (isChange(request) && path !== undefined) {
      const url = new URL(path, request.url);
      const list = await served(new Request(url, { headers: request.headers }), env);
      const { proofs }: { proofs: readonly Proof[] } = await list.json();
      counts.push(proofs.filter(({ active }) => active).length);
    }
    return answer;
  };
  return { d, counts };
}

async function mustRest(d: ServedDesk, { least }: Change, counts: readonly number[]): Promise<void> {
  assert.ok(counts.length > 0);
  assert.ok(Math.min(...counts) >= least, `live: ${counts}`);
  const { code, stdout } = await d.kms('plan -f f.json --drift');
  assert.deepEqual([code, stdout], [0, 'nothing to do: 1 object is as the files say\n']);
}

for (const [name, change] of Object.entries(changes)) {
  test(`${name}: done at once, or cut off at any request, by the files or by a saved plan`, async () => {
    for (const source of ['-f f.json', 'p.plan']) {
      for (let last = 0, isOver = false; !isOver; last++) {
        const { d, counts } = await begun(change);
        await using _ = d;
        assert.equal((await d.kms('plan -f f.json --out p.plan')).code, 2);
        const { app } = d.appliance;
        const { fetch } = app;
        let seen = 0;
        app.fetch = async (request, env) =>
          isChange(request) && seen++ >= last ? new Response('away', { status: 400 }) : fetch(request, env);
        const cut = await d.kms(`apply ${source} --yes --secrets-out second`);
        app.fetch = fetch;
        isOver = cut.code === 0;
        assert.ok(isOver || last < 20, cut.stderr);
        const again = await d.kms(`apply ${source} --yes --secrets-out third`);
        assert.equal(again.code, 0, `${last}: ${cut.stderr}${again.stderr}`);
        await mustRest(d, change, counts);
      }
    }
  });

  test(`${name}: under a rule`, async () => {
    const { d, counts } = await begun(change);
    await using _ = d;
    const grace = await approver(d.appliance);
    const approvers = { users: ids(grace) };
    await makeRule(d.appliance, { actions: ['apikey.update'], objects: ['*'], approvers, count: 1 });
    for (let left = 8; ; left--) {
      assert.ok(left > 0);
      const ran = await d.kms('apply -f f.json --yes --secrets-out second');
      if (ran.code === 0) break;
      const asked = new Set(ran.stderr.match(/appr_[0-9a-z]{26}/g));
      assert.ok(asked.size > 0, ran.stderr);
      for (const id of asked) assert.equal((await say(d.appliance, grace, id)).status, 200);
    }
    await mustRest(d, change, counts);
  });
}

test('the plan says where the secret has to go first', async () => {
  const line = /^ {4}proofs: ! secret goes before the new comes: there is no room for both$/m;
  for (const [name, change] of Object.entries(changes)) {
    const { d } = await begun(change);
    await using _ = d;
    assert.equal(line.test((await d.kms('plan -f f.json')).stdout), change.least > 1, name);
  }
});
