// The tables of rings whose keys the appliance holds, and of their keys by version, each sealed under one of the
// tenant's keys. They are separate from the clients' rings, so that a look-up in one never finds the other. A deleted
// ring stays, hidden from look-ups by name, until it is purged.
import type { TransitType } from '../../model/transit.ts';
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { endOfSlice, readPart } from './page.ts';

export interface ManagedKey {
  readonly seq: number;
  readonly id: string;
  /** Lower case. */
  readonly name: string;
  readonly displayName: string;
  readonly type: TransitType;
  /** Whether each message has a key of its own, derived from its context. */
  readonly derived: boolean;
  /** Versions count from 1. */
  readonly latestVersion: number;
  readonly minDecryptionVersion: number;
  /** 0 = only the latest. */
  readonly minEncryptionVersion: number;
  readonly deletionAllowed: boolean;
  /** A version's time in service, in seconds; undefined = for ever. */
  readonly rotateAfter: number | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletedAt: number | undefined;
}

export interface KeyVersion {
  readonly seq: number;
  readonly id: string;
  readonly ringId: string;
  readonly version: number;
  /** Epoch of the tenant key that it is sealed under. */
  readonly epoch: number;
  readonly sealed: string;
  /** Base64; empty for encryption keys. */
  readonly publicKey: string;
  readonly createdAt: number;
}

interface RingRow extends Row {
  seq: number;
  id: string;
  name: string;
  display_name: string;
  type: TransitType;
  derived: number;
  latest_version: number;
  min_decryption: number;
  min_encryption: number;
  deletion_allowed: number;
  rotate_after: number | null;
  created_at: number;
  updated_at: number;
  deleted_at: number | null;
}

interface KeyRow extends Row {
  seq: number;
  id: string;
  ring_id: string;
  version: number;
  epoch: number;
  sealed: string;
  public_key: string;
  created_at: number;
}

type ManagedKeyChange = Pick<
  ManagedKey,
  'minDecryptionVersion' | 'minEncryptionVersion' | 'deletionAllowed' | 'rotateAfter' | 'updatedAt'
>;

const countMessage = 'UPDATE transit_keys SET message_count = message_count + ? WHERE id = ?';

export type ManagedKeyTable = ReturnType<typeof managedKeyTable>;

export function managedKeyTable(sql: Sql) {
  return {
    insert(ring: Omit<ManagedKey, 'seq' | 'deletedAt'>): void {
      sql.run(
        `INSERT INTO transit_rings (id, name, display_name, type, derived, latest_version, min_decryption,
          min_encryption, deletion_allowed, rotate_after, created_at, updated_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ring.id,
        ring.name,
        ring.displayName,
        ring.type,
        Number(ring.derived),
        ring.latestVersion,
        ring.minDecryptionVersion,
        ring.minEncryptionVersion,
        Number(ring.deletionAllowed),
        ring.rotateAfter ?? null,
        ring.createdAt,
        ring.updatedAt,
      );
    },

    insertKey(key: Omit<KeyVersion, 'seq'>): void {
      sql.run(
        `INSERT INTO transit_keys (id, ring_id, version, epoch, sealed, public_key, message_count, created_at)
          VALUES (?, ?, ?, ?, ?, ?, 0, ?)`,
        key.id,
        key.ringId,
        key.version,
        key.epoch,
        key.sealed,
        key.publicKey,
        key.createdAt,
      );
    },

    /** The ring of that lower-case name, unless deleted. */
    byName: (name: string): ManagedKey | undefined =>
      sql.remember('transit_rings', `name ${name}`, () =>
        ringOf(sql.get<RingRow>('SELECT * FROM transit_rings WHERE name = ? AND deleted_at IS NULL', name)),
      ),

    /** The ring of that id, deleted or not. */
    byId: (id: string): ManagedKey | undefined =>
      sql.remember('transit_rings', id, () => ringOf(sql.get<RingRow>('SELECT * FROM transit_rings WHERE id = ?', id))),

    key: (ringId: string, version: number): KeyVersion | undefined =>
      sql.remember('transit_keys', `${ringId} ${version}`, () => {
        const row = sql.get<KeyRow>('SELECT * FROM transit_keys WHERE ring_id = ? AND version = ?', ringId, version);
        return row && keyFrom(row);
      }),

    /** Newest first, from version `from` down to `to`. */
    keysBetween(ringId: string, from: number, to: number): KeyVersion[] {
      const rows = sql.all<KeyRow>(
        'SELECT * FROM transit_keys WHERE ring_id = ? AND version BETWEEN ? AND ? ORDER BY version DESC',
        ringId,
        to,
        from,
      );
      return rows.map(keyFrom);
    },

    /** The number of messages made under the key. */
    messageCount(id: string): number {
      const all = (row: { n: number } | undefined): number => (row?.n ?? 0) + (sql.counted(countMessage, id)?.sum ?? 0);
      const stored = sql.remember('transit_keys', id, () =>
        sql.get<{ n: number }>('SELECT message_count AS n FROM transit_keys WHERE id = ?', id),
      );
      return all(stored);
    },

    countMessage: (id: string): void => sql.count(countMessage, id),

    /** Oldest first: the rings that are not deleted, or those deleted after the given time. */
    list: <T>(page: PageRequest, deletedSince: number | undefined, answer: (ring: ManagedKey) => T): Page<T> =>
      deletedSince === undefined
        ? readPart(
            sql,
            page,
            (row: RingRow) => answer(fromRow(row)),
            'SELECT * FROM transit_rings WHERE deleted_at IS NULL AND seq > ? ORDER BY seq LIMIT ?',
          )
        : readPart(
            sql,
            page,
            (row: RingRow) => answer(fromRow(row)),
            'SELECT * FROM transit_rings WHERE deleted_at > ? AND seq > ? ORDER BY seq LIMIT ?',
            deletedSince,
          ),

    count(): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM transit_rings WHERE deleted_at IS NULL');
      return row?.n ?? 0;
    },

    countDeletedSince(time: number): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM transit_rings WHERE deleted_at > ?', time);
      return row?.n ?? 0;
    },

    setLatest(id: string, version: number, updatedAt: number): void {
      sql.run('UPDATE transit_rings SET latest_version = ?, updated_at = ? WHERE id = ?', version, updatedAt, id);
    },

    update(id: string, change: ManagedKeyChange): void {
      sql.run(
        `UPDATE transit_rings SET min_decryption = ?, min_encryption = ?, deletion_allowed = ?, rotate_after = ?,
          updated_at = ? WHERE id = ?`,
        change.minDecryptionVersion,
        change.minEncryptionVersion,
        Number(change.deletionAllowed),
        change.rotateAfter ?? null,
        change.updatedAt,
        id,
      );
    },

    setDeleted(id: string, deletedAt: number | undefined): void {
      sql.run('UPDATE transit_rings SET deleted_at = ? WHERE id = ?', deletedAt ?? null, id);
    },

    /** Some keys that are sealed under tenant keys older than `epoch`. */
    keysBefore(epoch: number, most: number): (KeyVersion & { readonly type: TransitType })[] {
      const rows = sql.all<KeyRow & { type: TransitType }>(
        `SELECT k.*, r.type FROM transit_keys k JOIN transit_rings r ON r.id = k.ring_id WHERE k.epoch < ? LIMIT ?`,
        epoch,
        most,
      );
      return rows.map((row) => ({ ...keyFrom(row), type: row.type }));
    },

    reseal(id: string, epoch: number, sealed: string): void {
      sql.run('UPDATE transit_keys SET epoch = ?, sealed = ? WHERE id = ?', epoch, sealed, id);
    },

    /** The id of a ring that was deleted at or before that time. */
    deletedUntil(time: number): string | undefined {
      const row = sql.get<{ id: string }>(
        'SELECT id FROM transit_rings WHERE deleted_at IS NOT NULL AND deleted_at <= ? ORDER BY deleted_at LIMIT 1',
        time,
      );
      return row?.id;
    },

    /** Erases some of the ring's keys, one slice; returns how many. */
    eraseSome(ringId: string): number {
      const last = endOfSlice(
        sql,
        'SELECT seq AS place, 1000 AS bytes FROM transit_keys WHERE ring_id = ? AND seq > ? ORDER BY seq LIMIT ?',
        [ringId],
        0,
      );
      if (last === undefined) return 0;
      return sql.run('DELETE FROM transit_keys WHERE ring_id = ? AND seq <= ?', ringId, last);
    },

    /** Erases the ring; the caller must erase its keys first. */
    erase(id: string): void {
      sql.run('DELETE FROM transit_rings WHERE id = ?', id);
    },
  };
}

function ringOf(row: RingRow | undefined): ManagedKey | undefined {
  return row && fromRow(row);
}

function fromRow(row: RingRow): ManagedKey {
  return {
    seq: row.seq,
    id: row.id,
    name: row.name,
    displayName: row.display_name,
    type: row.type,
    derived: row.derived === 1,
    latestVersion: row.latest_version,
    minDecryptionVersion: row.min_decryption,
    minEncryptionVersion: row.min_encryption,
    deletionAllowed: row.deletion_allowed === 1,
    rotateAfter: row.rotate_after ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at ?? undefined,
  };
}

function keyFrom(row: KeyRow): KeyVersion {
  return {
    seq: row.seq,
    id: row.id,
    ringId: row.ring_id,
    version: row.version,
    epoch: row.epoch,
    sealed: row.sealed,
    publicKey: row.public_key,
    createdAt: row.created_at,
  };
}
