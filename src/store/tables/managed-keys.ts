// The table of managed keys, and of their aliases. It is separate from the keyrings', so that a look-up in one never
// finds the other. A deleted key stays, hidden from look-ups among the living, until it is destroyed; a destroyed one
// leaves its row.
import type { JsonObject } from '../../model/json.ts';
import type { KeyState } from '../../model/key-states.ts';
import type { KeyType, KeyUse } from '../../model/key-types.ts';
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';
import { readPart } from './page.ts';

export type KeyOrigin = 'generated' | 'imported';

export interface ManagedKey {
  readonly seq: number;
  readonly id: string;
  /** Lower case. */
  readonly name: string;
  readonly displayName: string;
  /** Where KV clients find a secret; undefined for all that was not made by one. */
  readonly path: string | undefined;
  readonly type: KeyType;
  readonly uses: readonly KeyUse[];
  /** The stored one: `stateAt` of model/key-states.ts says what the dates have made of it. */
  readonly state: KeyState;
  /** The state before its deletion was scheduled. */
  readonly formerState: KeyState | undefined;
  /** Whether each message has a key of its own, derived from its context. */
  readonly derived: boolean;
  readonly exportable: boolean;
  readonly origin: KeyOrigin;
  /** Whether it opens messages that Vault or OpenBao made with the same key. */
  readonly vaultFormat: boolean;
  /** Versions count from 1; 0 while there is none. */
  readonly latestVersion: number;
  readonly minDecryptVersion: number;
  /** 0 = any that decrypts. */
  readonly minEncryptVersion: number;
  readonly deletionAllowed: boolean;
  /** A version's time in service, in seconds; undefined = for ever. */
  readonly rotateAfter: number | undefined;
  readonly tags: JsonObject;
  readonly props: JsonObject;
  readonly activateAt: number | undefined;
  readonly deactivateAt: number | undefined;
  readonly deletedAt: number | undefined;
  readonly destroyAt: number | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
}

interface KeyRow extends Row {
  seq: number;
  id: string;
  name: string;
  display_name: string;
  path: string | null;
  type: KeyType;
  uses: string;
  state: KeyState;
  former_state: KeyState | null;
  derived: number;
  exportable: number;
  origin: KeyOrigin;
  vault_format: number;
  latest_version: number;
  min_decrypt: number;
  min_encrypt: number;
  deletion_allowed: number;
  rotate_after: number | null;
  tags: string;
  props: string;
  activate_at: number | null;
  deactivate_at: number | null;
  deleted_at: number | null;
  destroy_at: number | null;
  created_at: number;
  updated_at: number;
}

interface AliasRow extends Row {
  alias: string;
  /** Null for one that an earlier program stored. */
  display_name: string | null;
}

/** The fields that a configuration changes. */
type KeyChange = Pick<
  ManagedKey,
  | 'displayName'
  | 'exportable'
  | 'minDecryptVersion'
  | 'minEncryptVersion'
  | 'deletionAllowed'
  | 'rotateAfter'
  | 'tags'
  | 'props'
  | 'activateAt'
  | 'deactivateAt'
  | 'updatedAt'
>;

type StateChange = Pick<ManagedKey, 'state' | 'formerState' | 'deletedAt' | 'destroyAt' | 'updatedAt'>;

interface ListedKeys {
  readonly which: 'living' | 'deleted' | 'both';
  readonly now: number;
}

const livingKeys: ListedKeys = { which: 'living', now: 0 };

export type ManagedKeyTable = ReturnType<typeof managedKeyTable>;

export function managedKeyTable(sql: Sql) {
  const one = (where: string, ...params: (string | number)[]): ManagedKey | undefined => {
    const row = sql.get<KeyRow>(`SELECT * FROM managed_keys WHERE ${where}`, ...params);
    return row && keyFrom(row);
  };

  return {
    insert(key: Omit<ManagedKey, 'seq' | 'formerState' | 'deletedAt' | 'destroyAt'>): void {
      sql.run(
        `INSERT INTO managed_keys (id, name, display_name, path, type, uses, state, derived, exportable, origin,
          vault_format, latest_version, min_decrypt, min_encrypt, deletion_allowed, rotate_after, tags, props,
          activate_at, deactivate_at, created_at, updated_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        key.id,
        key.name,
        key.displayName,
        key.path ?? null,
        key.type,
        key.uses.join(' '),
        key.state,
        Number(key.derived),
        Number(key.exportable),
        key.origin,
        Number(key.vaultFormat),
        key.latestVersion,
        key.minDecryptVersion,
        key.minEncryptVersion,
        Number(key.deletionAllowed),
        key.rotateAfter ?? null,
        toJson(key.tags),
        toJson(key.props),
        key.activateAt ?? null,
        key.deactivateAt ?? null,
        key.createdAt,
        key.updatedAt,
      );
    },

    /** The key of that lower-case name, unless deleted. */
    byName: (name: string): ManagedKey | undefined =>
      sql.remember('managed_keys', `name ${name}`, () => one('name = ? AND deleted_at IS NULL', name)),

    /** The key of that id, deleted and destroyed ones too. */
    byId: (id: string): ManagedKey | undefined => sql.remember('managed_keys', id, () => one('id = ?', id)),

    /** The one of that lower-case name that was deleted last, and is not destroyed. */
    deletedByName: (name: string): ManagedKey | undefined =>
      sql.remember('managed_keys', `deleted ${name}`, () =>
        one('name = ? AND deleted_at IS NOT NULL AND destroy_at IS NOT NULL ORDER BY deleted_at DESC LIMIT 1', name),
      ),

    /** The id of the key that has the alias, deleted keys too. */
    aliasOf: (alias: string): string | undefined =>
      sql.remember('managed_key_aliases', `alias ${alias}`, () =>
        sql.get<{ key_id: string }>('SELECT key_id FROM managed_key_aliases WHERE alias = ?', alias),
      )?.key_id,

    /** The aliases as they were given, in alphabetical order. */
    aliases: (id: string): readonly string[] =>
      sql
        .all<AliasRow>('SELECT alias, display_name FROM managed_key_aliases WHERE key_id = ? ORDER BY alias', id)
        .map(({ alias, display_name: displayName }) => displayName ?? alias),

    /** @param displayName the alias as it was given; `alias` is that in lower case. */
    addAlias(alias: string, id: string, createdAt: number, displayName: string): void {
      sql.run(
        'INSERT INTO managed_key_aliases (alias, key_id, created_at, display_name) VALUES (?, ?, ?, ?)',
        alias,
        id,
        createdAt,
        displayName,
      );
    },

    removeAlias(alias: string): void {
      sql.run('DELETE FROM managed_key_aliases WHERE alias = ?', alias);
    },

    removeAliases(id: string): void {
      sql.run('DELETE FROM managed_key_aliases WHERE key_id = ?', id);
    },

    /** The key that KV clients find there, unless deleted. */
    byPath: (path: string): ManagedKey | undefined =>
      sql.remember('managed_keys', `path ${path}`, () => one('path = ? AND deleted_at IS NULL', path)),

    /** Up to `most` paths after `after` that begin with `prefix`, in the order of their bytes. */
    paths(prefix: string, after: string, most: number): string[] {
      const rows = sql.all<{ path: string }>(
        `SELECT path FROM managed_keys WHERE path > ? AND path >= ? AND path < ? AND deleted_at IS NULL
          ORDER BY path LIMIT ?`,
        after,
        prefix,
        `${prefix}\u{10ffff}`,
        most,
      );
      return rows.map(({ path }) => path);
    },

    /** Oldest first: the keys that are not deleted, those deleted that can still be restored, or both. */
    list<T>(page: PageRequest, wanted: ListedKeys | undefined, answer: (key: ManagedKey) => T): Page<T> {
      const { which, now } = wanted ?? livingKeys;
      const read = (row: KeyRow) => answer(keyFrom(row));
      const rest = 'AND seq > ? ORDER BY seq LIMIT ?';
      if (which === 'living') {
        return readPart(sql, page, read, `SELECT * FROM managed_keys WHERE deleted_at IS NULL ${rest}`);
      }
      const deleted = which === 'both' ? '(deleted_at IS NULL OR destroy_at > ?)' : 'destroy_at > ?';
      return readPart(sql, page, read, `SELECT * FROM managed_keys WHERE ${deleted} ${rest}`, now);
    },

    count(): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM managed_keys WHERE deleted_at IS NULL');
      return row?.n ?? 0;
    },

    /** Deleted keys that can still be restored then. */
    countDeleted(now: number): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM managed_keys WHERE destroy_at > ?', now);
      return row?.n ?? 0;
    },

    setLatest(id: string, version: number, updatedAt: number): void {
      sql.run('UPDATE managed_keys SET latest_version = ?, updated_at = ? WHERE id = ?', version, updatedAt, id);
    },

    update(id: string, change: KeyChange): void {
      sql.run(
        `UPDATE managed_keys SET display_name = ?, exportable = ?, min_decrypt = ?, min_encrypt = ?,
          deletion_allowed = ?, rotate_after = ?, tags = ?, props = ?, activate_at = ?, deactivate_at = ?,
          updated_at = ? WHERE id = ?`,
        change.displayName,
        Number(change.exportable),
        change.minDecryptVersion,
        change.minEncryptVersion,
        Number(change.deletionAllowed),
        change.rotateAfter ?? null,
        toJson(change.tags),
        toJson(change.props),
        change.activateAt ?? null,
        change.deactivateAt ?? null,
        change.updatedAt,
        id,
      );
    },

    /** From now on it opens messages that Vault made, too. */
    setVaultFormat(id: string): void {
      sql.run('UPDATE managed_keys SET vault_format = 1 WHERE id = ?', id);
    },

    setState(id: string, { state, formerState, deletedAt, destroyAt, updatedAt }: StateChange): void {
      sql.run(
        `UPDATE managed_keys SET state = ?, former_state = ?, deleted_at = ?, destroy_at = ?, updated_at = ?
          WHERE id = ?`,
        state,
        formerState ?? null,
        deletedAt ?? null,
        destroyAt ?? null,
        updatedAt,
        id,
      );
    },

    /** The id of a key whose time to be restored ended at or before that time. */
    toDestroy(time: number): string | undefined {
      const row = sql.get<{ id: string }>(
        'SELECT id FROM managed_keys WHERE destroy_at IS NOT NULL AND destroy_at <= ? ORDER BY destroy_at LIMIT 1',
        time,
      );
      return row?.id;
    },

    /** The id of the destroyed key that was deleted first, if more than `most` are kept. */
    destroyedBeyond(most: number): string | undefined {
      const row = sql.get<{ id: string }>(
        `SELECT id FROM managed_keys WHERE deleted_at IS NOT NULL AND destroy_at IS NULL
          ORDER BY deleted_at DESC LIMIT 1 OFFSET ?`,
        most,
      );
      return row?.id;
    },

    /** Erases the row; the caller must erase its versions first. */
    erase(id: string): void {
      sql.run('DELETE FROM managed_keys WHERE id = ?', id);
    },
  };
}

function keyFrom(row: KeyRow): ManagedKey {
  return {
    seq: row.seq,
    id: row.id,
    name: row.name,
    displayName: row.display_name,
    path: row.path ?? undefined,
    type: row.type,
    // Cast: nothing else is written.
    uses: row.uses.split(' ') as KeyUse[],
    state: row.state,
    formerState: row.former_state ?? undefined,
    derived: row.derived === 1,
    exportable: row.exportable === 1,
    origin: row.origin,
    vaultFormat: row.vault_format === 1,
    latestVersion: row.latest_version,
    minDecryptVersion: row.min_decrypt,
    minEncryptVersion: row.min_encrypt,
    deletionAllowed: row.deletion_allowed === 1,
    rotateAfter: row.rotate_after ?? undefined,
    tags: objectOf(row.tags),
    props: objectOf(row.props),
    activateAt: row.activate_at ?? undefined,
    deactivateAt: row.deactivate_at ?? undefined,
    deletedAt: row.deleted_at ?? undefined,
    destroyAt: row.destroy_at ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
