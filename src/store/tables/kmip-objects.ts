// The tables of KMIP's objects and their names. An object's key, state and dates are the managed key's.
import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';

/** Where the bytes of an object stand in its shape; `key` if they are the managed key's, in any format. */
export type KmipForm = 'key' | 'material' | 'structure' | 'wrapped' | 'value';

export interface KmipRow {
  readonly keyId: string;
  /** The API key that made it; empty for a key that was made otherwise. */
  readonly owner: string;
  readonly objectType: number;
  readonly form: KmipForm;
  /** Base64 of TTLV; empty for a key that was made otherwise. */
  readonly shape: string;
  /** By the attribute's name: pairs of an index and a value, as base64 of TTLV. */
  readonly attributes: JsonObject;
}

interface ObjectRow extends Row {
  seq: number;
  key_id: string;
  owner: string;
  object_type: number;
  form: KmipForm;
  shape: string;
  attributes: string;
}

export type KmipObjectTable = ReturnType<typeof kmipObjectTable>;

export function kmipObjectTable(sql: Sql) {
  return {
    insert({ keyId, owner, objectType, form, shape, attributes }: KmipRow): void {
      sql.run(
        'INSERT INTO kmip_objects (key_id, owner, object_type, form, shape, attributes) VALUES (?, ?, ?, ?, ?, ?)',
        keyId,
        owner,
        objectType,
        form,
        shape,
        toJson(attributes),
      );
    },

    byKey: (keyId: string): KmipRow | undefined =>
      sql.remember('kmip_objects', keyId, () => {
        const row = sql.get<ObjectRow>('SELECT * FROM kmip_objects WHERE key_id = ?', keyId);
        return row && objectFrom(row);
      }),

    setAttributes(keyId: string, attributes: JsonObject): void {
      sql.run('UPDATE kmip_objects SET attributes = ? WHERE key_id = ?', toJson(attributes), keyId);
    },

    /** Ids of the keys that a client made, newest first, before the one of that `seq`. */
    ofOwner(owner: string, before: number, most: number): { readonly seq: number; readonly keyId: string }[] {
      return sql
        .all<{ seq: number; key_id: string }>(
          'SELECT seq, key_id FROM kmip_objects WHERE owner = ? AND seq < ? ORDER BY seq DESC LIMIT ?',
          owner,
          before,
          most,
        )
        .map(({ seq, key_id: keyId }) => ({ seq, keyId }));
    },

    /** Ids of keys, newest first, before the one of that `seq`; destroyed ones too. */
    keysBefore(before: number, most: number): { readonly seq: number; readonly keyId: string }[] {
      return sql
        .all<{ seq: number; id: string }>(
          'SELECT seq, id FROM managed_keys WHERE seq < ? ORDER BY seq DESC LIMIT ?',
          before,
          most,
        )
        .map(({ seq, id: keyId }) => ({ seq, keyId }));
    },

    /** Ids of the keys with that name, of one client or of all, newest first, deleted ones too. */
    keysNamed(name: string, owner: string | undefined, most: number): string[] {
      const rows =
        owner === undefined
          ? sql.all<{ key_id: string }>(
              'SELECT DISTINCT key_id FROM kmip_names WHERE name = ? ORDER BY key_id DESC LIMIT ?',
              name,
              most,
            )
          : sql.all<{ key_id: string }>(
              'SELECT DISTINCT key_id FROM kmip_names WHERE name = ? AND owner = ? ORDER BY key_id DESC LIMIT ?',
              name,
              owner,
              most,
            );
      return rows.map(({ key_id }) => key_id);
    },

    /** Whether another key of the client, of that type and not deleted, has the name. */
    isTaken({ owner, objectType, keyId }: Pick<KmipRow, 'owner' | 'objectType' | 'keyId'>, name: string): boolean {
      const row = sql.get<{ seq: number }>(
        `SELECT n.seq FROM kmip_names n JOIN managed_keys k ON k.id = n.key_id
          WHERE n.name = ? AND n.owner = ? AND n.object_type = ? AND n.key_id != ? AND k.deleted_at IS NULL LIMIT 1`,
        name,
        owner,
        objectType,
        keyId,
      );
      return row !== undefined;
    },

    names: (keyId: string): string[] =>
      sql
        .all<{ name: string }>('SELECT name FROM kmip_names WHERE key_id = ? ORDER BY seq', keyId)
        .map(({ name }) => name),

    setNames({ keyId, owner, objectType }: Pick<KmipRow, 'owner' | 'objectType' | 'keyId'>, names: readonly string[]) {
      sql.run('DELETE FROM kmip_names WHERE key_id = ?', keyId);
      for (const name of names) {
        sql.run(
          'INSERT INTO kmip_names (key_id, owner, object_type, name) VALUES (?, ?, ?, ?)',
          keyId,
          owner,
          objectType,
          name,
        );
      }
    },

    erase(keyId: string): void {
      sql.run('DELETE FROM kmip_names WHERE key_id = ?', keyId);
      sql.run('DELETE FROM kmip_objects WHERE key_id = ?', keyId);
    },
  };
}

function objectFrom(row: ObjectRow): KmipRow {
  return {
    keyId: row.key_id,
    owner: row.owner,
    objectType: row.object_type,
    form: row.form,
    shape: row.shape,
    attributes: objectOf(row.attributes),
  };
}
