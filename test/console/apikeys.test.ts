// What the console says that an API key will be after a change is what the appliance makes of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differences, operations } from '../../src/console/apikeys/key-change.ts';
import { changedFlags } from '../../src/model/flags.ts';
import { type ChangeOp, changedObject } from '../../src/model/json.ts';
import { testAppliance } from '../support/appliance.ts';

const flags = { 'user.read': true, 'App.Own': true, 'keyring.a.read': false };
const props = { team: 'a', nested: { x: 1, y: { z: [1] } }, list: [1, 2] };
const changes = [
  { flags: { 'USER.READ': false, 'keyring.a.read': true, more: true }, props: { nested: { y: { w: 2 } }, list: [3] } },
  { flags: {}, props: {} },
  { flags: { 'app.own': true, unknown: true }, props: { nested: 1, team: { now: 'object' }, unknown: null } },
];

test('the change that is shown is the change that is made', async () => {
  const { call, accountId } = await testAppliance();
  for (const op of Object.keys(operations) as ChangeOp[]) {
    for (const change of changes) {
      const made = await call('POST', '/auth/apikey', { accountId, flags, props });
      const { status, body } = await call('PUT', '/auth/apikeyid', { op, apikeyid: made.body.keyid, ...change });
      assert.equal(status, 200);
      assert.deepEqual(changedFlags(op, flags, change.flags), body.flags, op);
      assert.deepEqual(changedObject(op, props, change.props), body.props, op);
    }
  }
});

test('differences are named, sorted', () => {
  assert.deepEqual(differences({ a: 1, b: { c: 1 }, d: 1 }, { a: 1, b: { c: 2 }, z: 1, e: 1 }), [
    { name: 'b', kind: 'changed' },
    { name: 'd', kind: 'removed' },
    { name: 'e', kind: 'added' },
    { name: 'z', kind: 'added' },
  ]);
  assert.deepEqual(differences({}, {}), []);
});
