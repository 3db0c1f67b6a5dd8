// By which of its flags an API key may use a keyring.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namesRing, ringFlags } from '../../src/console/keyrings/ring-use.ts';

test('flags that name the ring and wildcards count, what is not granted and other rings do not', () => {
  const flags = {
    'Keyring.Payroll.encrypt': true,
    'keyring.payroll.*': true,
    'keyring.*.read': true,
    'keyring.payroll.delete': false,
    'keyring.payroll.eu.read': true,
    'keyring.pay.read': true,
    'keyring.create': true,
    'user.read': true,
  };
  const found = ringFlags(flags, 'payroll');
  assert.deepEqual(found, ['keyring.*.read', 'keyring.payroll.*', 'keyring.payroll.encrypt']);
  assert.ok(namesRing(found, 'payroll'));
  assert.deepEqual(ringFlags(flags, 'payroll.eu'), ['keyring.*.read', 'keyring.payroll.eu.read']);
});

test('a wildcard alone does not name the ring', () => {
  const found = ringFlags({ '*': true, 'keyring.*': true, 'keyring.*.*': true }, 'payroll');
  assert.deepEqual(found, ['*', 'keyring.*', 'keyring.*.*']);
  assert.ok(!namesRing(found, 'payroll'));
});
