// Names, ids and aliases of managed keys, as they are looked up with each use of a key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lookUpManagedKey } from '../../src/core/managed-key-names.ts';
import type { ManagedKeyTable } from '../../src/store/tables/managed-keys.ts';

const id = `mkey_01h${'0'.repeat(23)}`;

type Found = ReturnType<ManagedKeyTable['byId']>;

/** Look-ups in a table where only `known` are found, and which of them were made. */
function tableOf(known: readonly string[]) {
  const asked: string[] = [];
  const look = (how: string) => (text: string) => {
    asked.push(`${how} ${text}`);
    // Cast: only whether a key is found counts.
    return known.includes(`${how} ${text}`) ? ({ id: `${how} ${text}` } as Found) : undefined;
  };
  const managedKeys = {
    byId: look('id'),
    byName: look('name'),
    deletedByName: look('deleted'),
    aliasOf: () => undefined,
  };
  // Cast: no other function is called.
  return { asked, tables: { managedKeys: managedKeys as unknown as ManagedKeyTable } };
}

test('an id is looked up as nothing else: what finds nothing is not cached, and would cost a statement each time', () => {
  for (const ref of [id, id.replace('mkey', 'ring')]) {
    const { asked, tables } = tableOf([`id ${ref}`]);
    assert.equal(lookUpManagedKey(tables, ref)?.id, `id ${ref}`);
    assert.deepEqual(asked, [`id ${ref}`]);
  }
});

test('a name is looked up first as that, whatever its case, and one that looks like an id is found all the same', () => {
  const { asked, tables } = tableOf(['name bench', `name ${id}`]);
  assert.equal(lookUpManagedKey(tables, 'Bench')?.id, 'name bench');
  assert.deepEqual(asked, ['name bench']);
  assert.equal(lookUpManagedKey(tables, id)?.id, `name ${id}`);
  assert.equal(lookUpManagedKey(tableOf(['deleted gone']).tables, 'gone')?.id, 'deleted gone');
  assert.equal(lookUpManagedKey(tableOf([]).tables, 'gone'), undefined);
});
