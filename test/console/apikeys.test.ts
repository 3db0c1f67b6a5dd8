// The console predicts what an API key will be after a change as the appliance computes it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressesIn, differences, endIn, endText, operations, stateOf } from '../../src/console/apikeys/key-change.ts';
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

test('when a key ends is a date in UTC, an age, or never', () => {
  const now = Date.UTC(2026, 0, 2);
  for (const [text, value] of [
    ['', null],
    ['2027-01-31', Date.UTC(2027, 0, 31)],
    ['2027-01-31 08:05', Date.UTC(2027, 0, 31, 8, 5)],
    ['2027-01-31T08:05:06', Date.UTC(2027, 0, 31, 8, 5, 6)],
    ['2027-01-31 08:05:06.007 UTC', Date.UTC(2027, 0, 31, 8, 5, 6, 7)],
    ['2027-01-31T08:05Z', Date.UTC(2027, 0, 31, 8, 5)],
    ['90d', now + 90 * 86_400_000],
    ['12h', now + 43_200_000],
  ] as const) {
    assert.deepEqual(endIn(text, now), { value }, text);
  }
  for (const text of [
    'soon',
    '2027',
    '2027-01',
    '2027-13-01',
    '2027-01-32',
    '2027-01-31 25:00',
    '31.1.2027',
    '90',
    'never',
  ]) {
    assert.match(endIn(text, now).problem ?? '', /^Enter a date/, text);
  }
  assert.deepEqual(endIn('1d', now + 1), { value: now + 86_460_000 }, 'a full minute can be typed again');
  // The text in a field parses back to the same time.
  for (const time of [0, now, now + 60_000, now + 1000, now + 1, 253_402_300_799_999]) {
    assert.deepEqual(endIn(endText(time), now), { value: time });
  }
  assert.deepEqual([endText(null), endText(now + 60_000)], ['', '2026-01-02 00:01 UTC']);
});

test('addresses stand apart by blanks, commas or lines', () => {
  assert.deepEqual(addressesIn(' 192.0.2.1,10.0.0.0/8\n\n::1 '), { value: ['192.0.2.1', '10.0.0.0/8', '::1'] });
  assert.deepEqual(addressesIn(' \n'), { value: [] });
  assert.match(addressesIn('192.0.2.1 home').problem ?? '', /^“home” is neither/);
});

test('a key is active, disabled or expired', () => {
  assert.equal(stateOf({ active: true, expiresAt: null }, 5), 'active');
  assert.equal(stateOf({ active: true, expiresAt: 6 }, 5), 'active');
  assert.equal(stateOf({ active: true, expiresAt: 5 }, 5), 'expired');
  assert.equal(stateOf({ active: false, expiresAt: 5 }, 5), 'disabled');
});
