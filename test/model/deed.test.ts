// Details of what was done in an activity record, written and read again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ActivityDetails, detailsIn, detailsProps } from '../../src/model/activity-details.ts';

const user = { type: 'user', id: 'user_1', name: 'ada' } as const;
const key = { type: 'apikey', id: 'apik_1' } as const;

test('what is put into props is read out of them', () => {
  const deed: ActivityDetails = {
    object: user,
    objects: [key],
    changed: ['email'],
    granted: ['keyring.list'],
    revoked: ['keyring.create'],
  };
  assert.deepEqual(detailsIn(detailsProps(deed)), deed);
  assert.deepEqual(detailsIn({}), { changed: [], granted: [], revoked: [] });
});

test('props of another form say nothing of a deed', () => {
  for (const object of [null, 'user_1', {}, { type: 'user' }, { type: 1, id: 'user_1' }]) {
    const props = {
      object,
      objects: [object, key],
      objectCount: '3',
      changed: 'email',
      granted: [1, 'a'],
      revoked: {},
    };
    assert.deepEqual(detailsIn(props), { objects: [key], changed: [], granted: ['a'], revoked: [] });
  }
});
