// Aliases of managed keys that move between the keys of a saved plan: each is a request of its own, so that a run may
// end between any two of them, and the plan is gone on with.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import { makeRule } from '../http/samples.ts';
import { approver, ids, say } from '../support/approvers.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const key = (name: string, aliases: string, more = '') =>
  `kind: managed-key\nname: ${name}\naliases: [${aliases}]\n${more}`;
const before = [key('m', 'a, b'), key('n', 'x'), key('o', 'y'), key('old', 'z, gone', 'deletionAllowed: true\n')];
const after = [key('m', 'c, B', 'tags: {q: r}\nstate: suspended\n'), key('n', 'y'), key('o', 'x'), key('new', 'z, v')];

/** A desk with a saved plan. */
async function planned(): Promise<ServedDesk> {
  const d = await servedDesk();
  await writeFile(d.path('f.yaml'), before.join('---\n'));
  assert.equal((await d.kms('apply -f f.yaml')).code, 0);
  await writeFile(d.path('f.yaml'), after.join('---\n'));
  assert.equal((await d.kms('plan -f f.yaml --prune --out p')).code, 2);
  return d;
}

async function mustBeDone(d: ServedDesk): Promise<void> {
  const { code, stdout } = await d.kms('plan -f f.yaml --drift');
  assert.equal(code, 0, stdout);
}

test('a saved plan that moves aliases goes on wherever it was cut off', async () => {
  let isOver = false;
  for (let last = 0; !isOver; last++) {
    await using d = await planned();
    const { app } = d.appliance;
    const served = app.fetch;
    let count = 0;
    app.fetch = async (request, env) =>
      request.method !== 'GET' && count++ >= last
        ? Response.json({ message: 'no' }, { status: 400 })
        : served(request, env);
    isOver = (await d.kms('apply p --yes')).code === 0;
    app.fetch = served;
    const again = await d.kms('apply p --yes');
    assert.equal(again.code, 0, `${last}: ${again.stderr}`);
    await mustBeDone(d);
    assert.ok(last < 20);
  }
});

test('it is refused once an alias is there that it neither found nor sets, or one is gone that it keeps', async () => {
  for (const change of ['key alias add m mine', 'key alias remove m b --yes', 'key alias add old mine']) {
    await using d = await planned();
    const done = await d.kms(change);
    assert.equal(done.code, 0, done.stderr);
    const { code, stderr } = await d.kms('apply p --yes');
    assert.equal(code, 1, change);
    assert.match(stderr, /is not as it was when the plan was made; nothing was done/);
  }
});

test('under a rule it comes to its end, asking for all aliases of a key at once', async () => {
  await using d = await planned();
  const grace = await approver(d.appliance);
  const approvers = { users: ids(grace) };
  await makeRule(d.appliance, { actions: ['key.*.config', 'key.*.delete'], objects: ['*'], approvers, count: 1 });
  for (let rounds = 0; ; rounds++) {
    const { code, stderr } = await d.kms('apply p --yes');
    if (code === 0) break;
    // Those that come, those that go, and the removed key after what it has passed on.
    assert.ok(rounds < 3, stderr);
    const requests = new Set(stderr.match(/appr_[0-9a-z]{26}/g) ?? []);
    assert.notEqual(requests.size, 0, stderr);
    for (const id of requests) assert.equal((await say(d.appliance, grace, id)).status, 200);
  }
  await mustBeDone(d);
});
