// The decision point: who is admitted, and what a refusal reveals and does not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authorize, type RingSubject } from '../../src/core/authorization.ts';
import { encrypt } from '../../src/core/encryption.ts';
import { createAsymKeyring, createKeyring, deleteKeyring } from '../../src/core/keyrings.ts';
import { type RingSource, ringSubject } from '../../src/core/ring-subject.ts';
import { KmsError } from '../../src/errors.ts';
import { callerWith, testTenant } from '../support/context.ts';

function verdict(action: string, subject: RingSubject | undefined, ...flags: string[]): string {
  try {
    authorize(callerWith(...flags), action, subject);
    return 'in';
  } catch (error) {
    assert.ok(error instanceof KmsError && error.code === 'forbidden');
    return error.message;
  }
}

const missing = (flag: string) => `the permission flag ${flag} is missing`;

test('without a ring the flag decides', () => {
  assert.equal(verdict('keyring.create', undefined, 'keyring.create'), 'in');
  assert.equal(verdict('keyring.create', undefined, 'keyring.*.*'), missing('keyring.create'));
  assert.equal(verdict('user.read', undefined), missing('user.read'));
});

test('a named ring is named in the refusal, unless the name could be none', () => {
  assert.equal(verdict('keyring.rotate', { kind: 'named', name: 'pay' }, 'keyring.pay.rotate'), 'in');
  assert.equal(
    verdict('keyring.rotate', { kind: 'named', name: 'pay' }, 'keyring.x.rotate'),
    missing('keyring.pay.rotate'),
  );
  assert.equal(verdict('keyring.rotate', { kind: 'named', name: 'a b' }), missing('keyring.<ringname>.rotate'));
});

test('a refusal is the same for a ring that there is and one that there is not', () => {
  for (const name of ['payroll', undefined]) {
    const hidden = { kind: 'hidden', name } as const;
    assert.equal(
      verdict('keyring.read', hidden, 'keyring.other.*', 'keyring.create'),
      missing('keyring.<ringname>.read'),
    );
    assert.equal(verdict('keyring.read', hidden, 'keyring.*.read'), 'in');
  }
  assert.equal(verdict('keyring.read', { kind: 'hidden', name: 'payroll' }, 'keyring.payroll.read'), 'in');
});

test('what stands for no ring lets in whoever holds the flag for some', () => {
  assert.equal(verdict('keyring.read', { kind: 'none' }, 'keyring.any.read'), 'in');
  assert.equal(verdict('keyring.read', { kind: 'none' }, 'keyring.any.encrypt'), missing('keyring.<ringname>.read'));
});

test('a request says its ring by name, id, hash or header', async () => {
  const tenant = await testTenant();
  const subject = (source: RingSource, action = 'keyring.read') =>
    tenant.run((ctx) => ringSubject(ctx, action, source).subject);
  const { ring } = await tenant.call(createKeyring, { name: 'Pay' });
  const asym = await tenant.call(createAsymKeyring, { name: 'Asy' });
  const one = await tenant.call(encrypt, { ringname: 'pay', asset: {} });
  const two = await tenant.call(encrypt, { ringname: 'pay' });
  const { hash, header } = one;
  const pay = { kind: 'hidden', name: 'pay' };
  const unknown = { kind: 'hidden', name: undefined };
  const none = { kind: 'none' };
  const swapped = header.slice(0, 20) + (header[20] === 'A' ? 'B' : 'A') + header.slice(21);
  const expected: [RingSource, object][] = [
    [{ name: 'PAY' }, { kind: 'named', name: 'pay' }],
    [{ name: 'nobody' }, { kind: 'named', name: 'nobody' }],
    [{ name: '' }, none],
    [{ name: 5 }, none],
    [{ name: undefined }, none],
    [{ id: ring.id }, pay],
    [{ id: asym.ring.id }, unknown],
    [{ id: 'x' }, unknown],
    [{ id: {} }, none],
    [{ hash }, pay],
    [{ hash: 'x' }, none],
    [{ hash: header }, none],
    [{ header }, pay],
    [{ header: swapped }, none],
    [{ header: hash }, none],
    [{ header: null }, none],
    [{ sealed: { hash } }, pay],
    [{ sealed: { header } }, pay],
    [{ sealed: { hash, header } }, pay],
    [{ sealed: { hash: two.hash, header } }, none],
    [{ sealed: {} }, none],
    [{ sealed: { hash: 1 } }, none],
    [{ sealed: { hash, header: 1 } }, none],
  ];
  for (const [source, wanted] of expected) assert.deepEqual(await subject(source), wanted, JSON.stringify(source));
  assert.deepEqual(await subject({ id: asym.ring.id }, 'asym.read'), { kind: 'hidden', name: 'asy' });
  assert.deepEqual(await subject({ id: ring.id }, 'asym.read'), unknown);
  // A caller who may read the deleted ring learns that it is gone; for all others it is like a ring that never existed.
  await tenant.call(deleteKeyring, { name: 'pay' });
  assert.deepEqual(await subject({ id: ring.id }), pay);
  assert.deepEqual(await subject({ hash }), pay);
});
