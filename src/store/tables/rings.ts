// The table of the rings of both services. A deleted ring stays, hidden from look-ups by name, until it is purged.

import type { JsonObject } from '../../model/json.ts';
import type { Kem } from '../../model/kems.ts';
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';
import { readPart } from './page.ts';

export type RingService = 'ks' | 'asym';

export interface Ring {
  readonly seq: number;
  readonly id: string;
  readonly service: RingService;
  /** Lower case. */
  readonly name: string;
  readonly displayName: string;
  readonly algorithm: string;
  /** The id of the key that encrypts. */
  readonly activeKey: string;
  /** The KEM that wraps new keys to `publicKey`. */
  readonly kem: Kem;
  /** Base64 SPKI DER. */
  readonly publicKey: string;
  /** The number of the pair of `publicKey`, from 0. */
  readonly pair: number;
  readonly props: JsonObject;
  /** The props that new keys get. */
  readonly keyProps: JsonObject;
  readonly maxEncryptCount: number;
  /** A key's time in service, in seconds; undefined = for ever. */
  readonly rotateAfter: number | undefined;
  /** Whether files may be sealed to the ring so that its private key alone opens them. */
  readonly offlineDecrypt: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletedAt: number | undefined;
}

type NewRing = Omit<Ring, 'seq' | 'pair' | 'rotateAfter' | 'offlineDecrypt' | 'deletedAt'>;

interface RingChange {
  readonly props: JsonObject;
  readonly keyProps: JsonObject;
  readonly maxEncryptCount: number;
  readonly rotateAfter: number | undefined;
  readonly offlineDecrypt: boolean;
  readonly updatedAt: number;
}

/** The fields that an encrypt needs. */
interface ActiveKey {
  readonly ringId: string;
  readonly keyId: string;
  readonly maxEncryptCount: number;
  readonly rotateAfter: number | undefined;
}

interface RingRow extends Row {
  seq: number;
  id: string;
  service: RingService;
  name: string;
  display_name: string;
  algorithm: string;
  active_key: string;
  kem: string;
  public_key: string;
  pair: number;
  props: string;
  key_props: string;
  max_encrypt_count: number;
  rotate_after: number | null;
  offline_decrypt: number;
  created_at: number;
  updated_at: number;
  deleted_at: number | null;
}

/** Some 2 kB each. */
const pairsAtOnce = 100;

export type RingTable = ReturnType<typeof ringTable>;

export function ringTable(sql: Sql) {
  return {
    insert(ring: NewRing): void {
      sql.run(
        `INSERT INTO rings (id, service, name, display_name, algorithm, active_key, kem, public_key, props, key_props,
          max_encrypt_count, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ring.id,
        ring.service,
        ring.name,
        ring.displayName,
        ring.algorithm,
        ring.activeKey,
        ring.kem,
        ring.publicKey,
        toJson(ring.props),
        toJson(ring.keyProps),
        ring.maxEncryptCount,
        ring.createdAt,
        ring.updatedAt,
      );
    },

    /** The ring of that lower-case name, unless deleted. */
    byName(service: RingService, name: string): Ring | undefined {
      return ringOf(
        sql.get<RingRow>('SELECT * FROM rings WHERE service = ? AND name = ? AND deleted_at IS NULL', service, name),
      );
    },

    /** The fields that an encrypt needs, of the ring of that lower-case name, unless deleted. */
    activeKeyOf: (service: RingService, name: string): ActiveKey | undefined =>
      sql.remember('rings', `${service} ${name}`, () => {
        const row = sql.get<Pick<RingRow, 'id' | 'active_key' | 'max_encrypt_count' | 'rotate_after'>>(
          `SELECT id, active_key, max_encrypt_count, rotate_after FROM rings
            WHERE service = ? AND name = ? AND deleted_at IS NULL`,
          service,
          name,
        );
        return (
          row && {
            ringId: row.id,
            keyId: row.active_key,
            maxEncryptCount: row.max_encrypt_count,
            rotateAfter: row.rotate_after ?? undefined,
          }
        );
      }),

    /** The ring of that id, deleted or not. */
    byId(service: RingService, id: string): Ring | undefined {
      const ofService = (ring: Ring | undefined) => (ring?.service === service ? ring : undefined);
      const ring = sql.remember('rings', id, () => ringOf(sql.get<RingRow>('SELECT * FROM rings WHERE id = ?', id)));
      return ofService(ring);
    },

    /** Oldest first, without deleted rings, each mapped by `answer`. */
    list: <T>(service: RingService, page: PageRequest, answer: (ring: Ring) => T): Page<T> =>
      readPart(
        sql,
        page,
        (row: RingRow) => answer(fromRow(row)),
        'SELECT * FROM rings WHERE service = ? AND seq > ? AND deleted_at IS NULL ORDER BY seq LIMIT ?',
        service,
      ),

    /** Rings deleted after that time, oldest first, each mapped by `answer`. */
    listDeletedSince: <T>(service: RingService, time: number, page: PageRequest, answer: (ring: Ring) => T): Page<T> =>
      readPart(
        sql,
        page,
        (row: RingRow) => answer(fromRow(row)),
        `SELECT * FROM rings WHERE service = ? AND deleted_at IS NOT NULL AND deleted_at > ? AND seq > ?
          ORDER BY seq LIMIT ?`,
        service,
        time,
      ),

    /** Number of rings of both services, without deleted ones. */
    count(): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM rings WHERE deleted_at IS NULL');
      return row?.n ?? 0;
    },

    /** Number of rings of both services deleted after that time, which can be restored. */
    countDeletedSince(time: number): number {
      const row = sql.get<{ n: number }>(
        'SELECT COUNT(*) AS n FROM rings WHERE deleted_at IS NOT NULL AND deleted_at > ?',
        time,
      );
      return row?.n ?? 0;
    },

    setActiveKey(id: string, keyId: string, updatedAt: number): void {
      sql.run('UPDATE rings SET active_key = ?, updated_at = ? WHERE id = ?', keyId, updatedAt, id);
    },

    update(id: string, change: RingChange): void {
      sql.run(
        `UPDATE rings SET props = ?, key_props = ?, max_encrypt_count = ?, rotate_after = ?, offline_decrypt = ?,
          updated_at = ? WHERE id = ?`,
        toJson(change.props),
        toJson(change.keyProps),
        change.maxEncryptCount,
        change.rotateAfter ?? null,
        change.offlineDecrypt ? 1 : 0,
        change.updatedAt,
        id,
      );
    },

    /** Gives the ring the public key of its next pair. The previous one is kept, since keys may be wrapped to it. */
    changePublicKey(before: Ring, { kem, publicKey }: Pick<Ring, 'kem' | 'publicKey'>): void {
      sql.run(
        'INSERT INTO ring_pairs (ring_id, pair, kem, public_key) VALUES (?, ?, ?, ?)',
        before.id,
        before.pair,
        before.kem,
        before.publicKey,
      );
      sql.run('UPDATE rings SET kem = ?, public_key = ?, pair = pair + 1 WHERE id = ?', kem, publicKey, before.id);
    },

    /** Replaces the ring's public key, to which no key is wrapped. */
    replacePublicKey(id: string, { kem, publicKey }: Pick<Ring, 'kem' | 'publicKey'>): void {
      sql.run('UPDATE rings SET kem = ?, public_key = ? WHERE id = ?', kem, publicKey, id);
    },

    /** The public key of an earlier pair of the ring. */
    earlierPublicKey(id: string, pair: number): string | undefined {
      const row = sql.get<{ public_key: string }>(
        'SELECT public_key FROM ring_pairs WHERE ring_id = ? AND pair = ?',
        id,
        pair,
      );
      return row?.public_key;
    },

    markDeleted(id: string, deletedAt: number): void {
      sql.run('UPDATE rings SET deleted_at = ? WHERE id = ?', deletedAt, id);
    },

    unmarkDeleted(id: string): void {
      sql.run('UPDATE rings SET deleted_at = NULL WHERE id = ?', id);
    },

    /** The id of a ring that was deleted at or before that time. */
    deletedUntil(time: number): string | undefined {
      const row = sql.get<{ id: string }>(
        'SELECT id FROM rings WHERE deleted_at IS NOT NULL AND deleted_at <= ? ORDER BY deleted_at LIMIT 1',
        time,
      );
      return row?.id;
    },

    /** Erases some of the ring's earlier public keys, one slice; returns how many. */
    erasePairs(id: string): number {
      return sql.run(
        `DELETE FROM ring_pairs WHERE seq IN (SELECT seq FROM ring_pairs WHERE ring_id = ? LIMIT ${pairsAtOnce})`,
        id,
      );
    },

    /** Erases the ring; the caller must erase its keys and earlier public keys first. */
    erase(id: string): void {
      sql.run('DELETE FROM rings WHERE id = ?', id);
    },
  };
}

function ringOf(row: RingRow | undefined): Ring | undefined {
  return row && fromRow(row);
}

function fromRow(row: RingRow): Ring {
  return {
    seq: row.seq,
    id: row.id,
    service: row.service,
    name: row.name,
    displayName: row.display_name,
    algorithm: row.algorithm,
    activeKey: row.active_key,
    // Cast: only KEM names are ever written.
    kem: row.kem as Kem,
    publicKey: row.public_key,
    pair: row.pair,
    props: objectOf(row.props),
    keyProps: objectOf(row.key_props),
    maxEncryptCount: row.max_encrypt_count,
    rotateAfter: row.rotate_after ?? undefined,
    offlineDecrypt: row.offline_decrypt === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at ?? undefined,
  };
}
