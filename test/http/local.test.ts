// Answers of the local administrator's endpoints when the machine itself is at fault.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { testAppliance } from '../support/appliance.ts';

test('what the machine refuses is told, with what to do', async () => {
  const failures = [
    [Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }), /the disk is full$/],
    [Object.assign(new Error('EROFS: read-only file system'), { code: 'EROFS' }), /the file system is read-only$/],
    [new KmsError('refused', '/data: permission denied', { hint: 'change its owner' }), /^\/data: permission denied$/],
  ] as const;
  for (const [failure, message] of failures) {
    const a = await testAppliance({ local: { drillBackup: () => Promise.reject(failure) } });
    const { status, body } = await a.call('POST', '/local/drill', {}, { key: null, env: { local: true } });
    assert.equal(status, 503);
    assert.match(body.message, message);
    assert.ok(body.hint.length > 5);
  }
});

test('a defect is not', async () => {
  const drillBackup = () => Promise.reject(new TypeError('a is not a function'));
  const a = await testAppliance({ local: { drillBackup } });
  const { status, body } = await a.call('POST', '/local/drill', {}, { key: null, env: { local: true } });
  assert.deepEqual([status, body], [500, { message: 'internal error' }]);
});
