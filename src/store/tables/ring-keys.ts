// The table of ring keys, wrapped to their ring's public key. A ring keeps every key it ever had, and a key every way
// it was wrapped: the appliance cannot check that a later wrapping opens.

import type { JsonObject } from '../../model/json.ts';
import type { Kem } from '../../model/kems.ts';
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';
import { endOfSlice, readPart } from './page.ts';

export interface RingKey {
  readonly seq: number;
  readonly id: string;
  readonly ringId: string;
  readonly algorithm: string;
  /** The KEM that it is wrapped with. */
  readonly kem: Kem;
  /** The number of the ring's pair that it is wrapped to. */
  readonly pair: number;
  /** Base64 of the encapsulated key and the ciphertext. */
  readonly wrapped: string;
  /** Base64 of the HPKE base nonce. */
  readonly iv: string;
  readonly props: JsonObject;
  /** Number of times it was wrapped again. */
  readonly rewraps: number;
  /** The number of encrypts in its row; `encryptCount` has them all. */
  readonly storedCount: number;
  readonly createdAt: number;
}

type NewRingKey = Omit<RingKey, 'seq' | 'rewraps' | 'storedCount'>;

/** One wrapping of a key. */
type Wrapping = Pick<RingKey, 'kem' | 'pair' | 'wrapped' | 'iv'>;

/** A wrapping that another one replaced. */
export interface EarlierWrapping extends Wrapping {
  readonly publicKey: string;
  readonly replacedAt: number;
}

interface RingKeyRow extends Row {
  seq: number;
  id: string;
  ring_id: string;
  algorithm: string;
  kem: string;
  pair: number;
  wrapped: string;
  iv: string;
  props: string;
  rewraps: number;
  encrypt_count: number;
  created_at: number;
}

interface EarlierRow extends Row {
  kem: string;
  pair: number;
  wrapped: string;
  iv: string;
  public_key: string;
  replaced_at: number;
}

export type RingKeyTable = ReturnType<typeof ringKeyTable>;

const countEncrypt = 'UPDATE ring_keys SET encrypt_count = encrypt_count + ? WHERE id = ?';

export function ringKeyTable(sql: Sql) {
  return {
    insert(key: NewRingKey): void {
      sql.run(
        `INSERT INTO ring_keys (id, ring_id, algorithm, kem, pair, wrapped, iv, props, encrypt_count, created_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`,
        key.id,
        key.ringId,
        key.algorithm,
        key.kem,
        key.pair,
        key.wrapped,
        key.iv,
        toJson(key.props),
        key.createdAt,
      );
    },

    /** The key of that id, if it belongs to that ring. */
    byId(ringId: string, id: string): RingKey | undefined {
      const inRing = (key: RingKey | undefined) => (key?.ringId === ringId ? key : undefined);
      const key = sql.remember('ring_keys', id, () => {
        const row = sql.get<RingKeyRow>('SELECT * FROM ring_keys WHERE id = ?', id);
        return row && fromRow(row);
      });
      return inRing(key);
    },

    isThere: (id: string): boolean => sql.get('SELECT 1 AS one FROM ring_keys WHERE id = ?', id) !== undefined,

    /** The number of encrypts that it has served. */
    encryptCount(key: RingKey): number {
      return key.storedCount + (sql.counted(countEncrypt, key.id)?.sum ?? 0);
    },

    countEncrypt: (id: string): void => sql.count(countEncrypt, id),

    /** Oldest first, each key mapped by `answer` together with the public key that it is wrapped to. */
    list: <T>(ringId: string, page: PageRequest, answer: (key: RingKey, publicKey: string) => T): Page<T> =>
      readPart(
        sql,
        page,
        (row: RingKeyRow & { public_key: string }) => answer(fromRow(row), row.public_key),
        `SELECT k.*, coalesce(p.public_key, r.public_key) AS public_key FROM ring_keys k
          JOIN rings r ON r.id = k.ring_id
          LEFT JOIN ring_pairs p ON p.ring_id = k.ring_id AND p.pair = k.pair
          WHERE k.ring_id = ? AND k.seq > ? ORDER BY k.seq LIMIT ?`,
        ringId,
      ),

    /** Replaces the key's wrapping; the current one is kept as earlier. */
    rewrap(key: RingKey, next: Wrapping, now: number): void {
      keepPresent(sql, key, now);
      sql.run(`UPDATE ring_keys SET ${wrappedSo}, rewraps = rewraps + 1 WHERE seq = ?`, ...valuesOf(next), key.seq);
    },

    /**
     * Restores an earlier wrapping and keeps the current one as earlier. The first wrapping identifies the key and is
     * never removed, so there can be one row more than `rewraps`, never two.
     */
    putBack(key: RingKey, earlier: Wrapping, now: number): void {
      keepPresent(sql, key, now);
      sql.run(
        `DELETE FROM earlier_wrappings WHERE key_seq = ? AND wrapped = ?
          AND seq > (SELECT MIN(seq) FROM earlier_wrappings WHERE key_seq = ?)`,
        key.seq,
        earlier.wrapped,
        key.seq,
      );
      sql.run(`UPDATE ring_keys SET ${wrappedSo} WHERE seq = ?`, ...valuesOf(earlier), key.seq);
    },

    /** The earlier wrappings, oldest first; the first is the appliance's own. */
    earlierWrappings({ seq, ringId }: RingKey): EarlierWrapping[] {
      const rows = sql.all<EarlierRow>(
        `SELECT e.*, coalesce(p.public_key, r.public_key) AS public_key FROM earlier_wrappings e
          JOIN rings r ON r.id = ?
          LEFT JOIN ring_pairs p ON p.ring_id = r.id AND p.pair = e.pair
          WHERE e.key_seq = ? ORDER BY e.seq`,
        ringId,
        seq,
      );
      return rows.map(({ kem, pair, wrapped, iv, public_key: publicKey, replaced_at: replacedAt }) => ({
        // Cast: only KEM names are ever written.
        kem: kem as Kem,
        pair,
        wrapped,
        iv,
        publicKey,
        replacedAt,
      }));
    },

    /** Erases some of the ring's keys with all their data, one slice; returns the number of rows. */
    eraseSome(ringId: string): number {
      const last = endOfSlice(
        sql,
        // A key weighs as much as its stored days of use.
        `SELECT seq AS place, octet_length(props) + 10000 + 2000 * rewraps AS bytes FROM ring_keys
          WHERE ring_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
        [ringId],
        0,
      );
      if (last === undefined) return 0;
      const theirs = 'key_seq IN (SELECT seq FROM ring_keys WHERE ring_id = ? AND seq <= ?)';
      return (
        sql.run(`DELETE FROM key_days WHERE ${theirs}`, ringId, last) +
        sql.run(`DELETE FROM key_uses WHERE ${theirs}`, ringId, last) +
        sql.run(`DELETE FROM earlier_wrappings WHERE ${theirs}`, ringId, last) +
        sql.run('DELETE FROM ring_keys WHERE ring_id = ? AND seq <= ?', ringId, last)
      );
    },

    count(ringId: string): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM ring_keys WHERE ring_id = ?', ringId);
      return row?.n ?? 0;
    },
  };
}

const wrappedSo = 'kem = ?, pair = ?, wrapped = ?, iv = ?';

const valuesOf = ({ kem, pair, wrapped, iv }: Wrapping) => [kem, pair, wrapped, iv] as const;

/** Keeps the current wrapping among the earlier ones, once. */
function keepPresent(sql: Sql, key: RingKey, now: number): void {
  const isThere = 'SELECT seq FROM earlier_wrappings WHERE key_seq = ? AND wrapped = ?';
  if (sql.get(isThere, key.seq, key.wrapped)) return;
  sql.run(
    'INSERT INTO earlier_wrappings (key_seq, kem, pair, wrapped, iv, replaced_at) VALUES (?, ?, ?, ?, ?, ?)',
    key.seq,
    ...valuesOf(key),
    now,
  );
}

function fromRow(row: RingKeyRow): RingKey {
  return {
    seq: row.seq,
    id: row.id,
    ringId: row.ring_id,
    algorithm: row.algorithm,
    // Cast: only KEM names are ever written.
    kem: row.kem as Kem,
    pair: row.pair,
    wrapped: row.wrapped,
    iv: row.iv,
    props: objectOf(row.props),
    rewraps: row.rewraps,
    storedCount: row.encrypt_count,
    createdAt: row.created_at,
  };
}
