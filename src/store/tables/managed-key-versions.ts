// The table of managed keys' versions, each with its key sealed under one of the tenant's keys.
import type { KeyState } from '../../model/key-states.ts';
import type { KeyType } from '../../model/key-types.ts';
import type { Row, Sql } from '../sql.ts';
import type { KeyOrigin } from './managed-keys.ts';
import { endOfSlice } from './page.ts';

export interface KeyVersion {
  readonly seq: number;
  readonly id: string;
  readonly keyId: string;
  /** From 1 on. */
  readonly version: number;
  readonly state: KeyState;
  /** The state before its deletion was scheduled. */
  readonly formerState: KeyState | undefined;
  readonly origin: KeyOrigin;
  /** Epoch of the tenant key that it is sealed under. */
  readonly epoch: number;
  /** Empty if the key was destroyed, or if only its public key is known. */
  readonly sealed: string;
  /**
   * Base64 of SPKI DER; of keys made before 0.1.0's end, of the raw key. Empty for symmetric keys, but for an erased
   * one, which is known by it when it is imported again.
   */
  readonly publicKey: string;
  readonly deletedAt: number | undefined;
  readonly createdAt: number;
}

/** A version without its key. */
export interface ListedVersion extends Omit<KeyVersion, 'sealed'> {
  /** 0 where `sealed` is empty. */
  readonly sealedLength: number;
}

interface AnyRow extends Row {
  seq: number;
  id: string;
  key_id: string;
  version: number;
  state: KeyState;
  former_state: KeyState | null;
  origin: KeyOrigin;
  epoch: number;
  public_key: string;
  deleted_at: number | null;
  created_at: number;
}

interface VersionRow extends AnyRow {
  sealed: string;
}

interface ListedRow extends AnyRow {
  sealed_length: number;
}

/** Characters of a sealed key: longer ones are read each time, and no more than this of them at once. */
const longestCached = 8192;
const mostAtOnce = 128 * 1024;

type VersionState = Pick<KeyVersion, 'state' | 'formerState' | 'deletedAt'>;

const countMessage = 'UPDATE managed_key_versions SET message_count = message_count + ? WHERE id = ?';

export type KeyVersionTable = ReturnType<typeof keyVersionTable>;

export function keyVersionTable(sql: Sql) {
  return {
    insert(version: Omit<KeyVersion, 'seq' | 'formerState' | 'deletedAt'>): void {
      sql.run(
        `INSERT INTO managed_key_versions (id, key_id, version, state, origin, epoch, sealed, public_key,
          message_count, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`,
        version.id,
        version.keyId,
        version.version,
        version.state,
        version.origin,
        version.epoch,
        version.sealed,
        version.publicKey,
        version.createdAt,
      );
    },

    get(keyId: string, version: number): KeyVersion | undefined {
      let long: KeyVersion | undefined;
      const known = sql.remember('managed_key_versions', `${keyId} ${version}`, () => {
        const row = sql.get<VersionRow>(
          'SELECT * FROM managed_key_versions WHERE key_id = ? AND version = ?',
          keyId,
          version,
        );
        const stored = row && versionFrom(row);
        if (!stored || stored.sealed.length <= longestCached) return stored;
        long = stored;
        return undefined;
      });
      return known ?? long;
    },

    /** The newest version that is active; undefined if none is. */
    newestActive: (keyId: string): number | undefined =>
      sql.remember('managed_key_versions', `active ${keyId}`, () =>
        sql.get<{ version: number }>(
          `SELECT version FROM managed_key_versions WHERE key_id = ? AND state = 'active'
            ORDER BY version DESC LIMIT 1`,
          keyId,
        ),
      )?.version,

    /** Newest first, from version `from` down to `to`. */
    between(keyId: string, from: number, to: number): ListedVersion[] {
      const rows = sql.all<ListedRow>(
        `SELECT seq, id, key_id, version, state, former_state, origin, epoch, length(sealed) AS sealed_length,
          public_key, deleted_at, created_at FROM managed_key_versions
          WHERE key_id = ? AND version BETWEEN ? AND ? ORDER BY version DESC`,
        keyId,
        to,
        from,
      );
      return rows.map((row) => ({ ...listedFrom(row), sealedLength: row.sealed_length }));
    },

    /** The number of messages made under the version of that id. */
    messageCount(id: string): number {
      const stored = sql.remember('managed_key_versions', id, () =>
        sql.get<{ n: number }>('SELECT message_count AS n FROM managed_key_versions WHERE id = ?', id),
      );
      return (stored?.n ?? 0) + (sql.counted(countMessage, id)?.sum ?? 0);
    },

    countMessage: (id: string): void => sql.count(countMessage, id),

    setState(id: string, { state, formerState, deletedAt }: VersionState): void {
      sql.run(
        'UPDATE managed_key_versions SET state = ?, former_state = ?, deleted_at = ? WHERE id = ?',
        state,
        formerState ?? null,
        deletedAt ?? null,
        id,
      );
    },

    /** Leaves no byte of the key. */
    destroy(id: string): void {
      sql.run(`UPDATE managed_key_versions SET state = 'destroyed', former_state = NULL, sealed = '' WHERE id = ?`, id);
    },

    /** Leaves no byte of the key, but a text by which it is known again: see `bringBack`. */
    erase(id: string, known: string): void {
      sql.run(
        `UPDATE managed_key_versions SET state = 'destroyed', former_state = NULL, sealed = '', public_key = ?
          WHERE id = ?`,
        known,
        id,
      );
    },

    /** Gives an erased version its key again. */
    bringBack(id: string, { epoch, sealed, publicKey }: Pick<KeyVersion, 'epoch' | 'sealed' | 'publicKey'>): void {
      sql.run(
        `UPDATE managed_key_versions SET state = 'active', epoch = ?, sealed = ?, public_key = ? WHERE id = ?`,
        epoch,
        sealed,
        publicKey,
        id,
      );
    },

    /** Destroys the key's versions up to that one, if no more than 1,000 versions before it were left. */
    destroyOld(keyId: string, version: number): void {
      if (version < 1) return;
      sql.run(
        `UPDATE managed_key_versions SET state = 'destroyed', former_state = NULL, sealed = ''
          WHERE key_id = ? AND version BETWEEN ? AND ? AND state != 'destroyed'`,
        keyId,
        version - 1000,
        version,
      );
    },

    /** Destroys some of the key's versions, one slice; returns how many. */
    destroySome(keyId: string): number {
      const last = endOfSlice(
        sql,
        `SELECT seq AS place, 1000 AS bytes FROM managed_key_versions WHERE key_id = ? AND state != 'destroyed'
          AND seq > ? ORDER BY seq LIMIT ?`,
        [keyId],
        0,
      );
      if (last === undefined) return 0;
      return sql.run(
        `UPDATE managed_key_versions SET state = 'destroyed', former_state = NULL, sealed = ''
          WHERE key_id = ? AND seq <= ? AND state != 'destroyed'`,
        keyId,
        last,
      );
    },

    /** Erases some of the key's rows, one slice; returns how many. */
    eraseSome(keyId: string): number {
      const last = endOfSlice(
        sql,
        'SELECT seq AS place, 1000 AS bytes FROM managed_key_versions WHERE key_id = ? AND seq > ? ORDER BY seq LIMIT ?',
        [keyId],
        0,
      );
      if (last === undefined) return 0;
      return sql.run('DELETE FROM managed_key_versions WHERE key_id = ? AND seq <= ?', keyId, last);
    },

    /** Some versions that are sealed under tenant keys older than `epoch`, each with the type of its key. */
    before(epoch: number, most: number): (KeyVersion & { readonly type: KeyType })[] {
      let length = 0;
      const isEnough = ({ sealed }: VersionRow) => {
        length += sealed.length;
        return length >= mostAtOnce;
      };
      const rows = sql.some<VersionRow & { type: KeyType }>(
        isEnough,
        `SELECT v.*, k.type FROM managed_key_versions v JOIN managed_keys k ON k.id = v.key_id
          WHERE v.epoch < ? AND v.sealed != '' LIMIT ?`,
        epoch,
        most,
      );
      return rows.map((row) => ({ ...versionFrom(row), type: row.type }));
    },

    reseal(id: string, epoch: number, sealed: string): void {
      sql.run('UPDATE managed_key_versions SET epoch = ?, sealed = ? WHERE id = ?', epoch, sealed, id);
    },
  };
}

function versionFrom(row: VersionRow): KeyVersion {
  return { ...listedFrom(row), sealed: row.sealed };
}

function listedFrom(row: AnyRow): Omit<KeyVersion, 'sealed'> {
  return {
    seq: row.seq,
    id: row.id,
    keyId: row.key_id,
    version: row.version,
    state: row.state,
    formerState: row.former_state ?? undefined,
    origin: row.origin,
    epoch: row.epoch,
    publicKey: row.public_key,
    deletedAt: row.deleted_at ?? undefined,
    createdAt: row.created_at,
  };
}
