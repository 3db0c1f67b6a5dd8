// The table of wrapping keys: RSA keys to which other keys are wrapped for import, each sealed under one of the
// tenant's keys.
import type { Row, Sql } from '../sql.ts';

export interface WrappingKey {
  /** The day in UTC on which it was made, such as `2026-01-02`. */
  readonly id: string;
  readonly epoch: number;
  readonly sealed: string;
  /** Base64 of SPKI DER. */
  readonly publicKey: string;
  readonly createdAt: number;
}

interface WrappingRow extends Row {
  id: string;
  epoch: number;
  sealed: string;
  public_key: string;
  created_at: number;
}

export type WrappingKeyTable = ReturnType<typeof wrappingKeyTable>;

export function wrappingKeyTable(sql: Sql) {
  return {
    /** Newest first. */
    list: (): WrappingKey[] =>
      sql.all<WrappingRow>('SELECT * FROM wrapping_keys ORDER BY seq DESC').map((row) => ({
        id: row.id,
        epoch: row.epoch,
        sealed: row.sealed,
        publicKey: row.public_key,
        createdAt: row.created_at,
      })),

    insert({ id, epoch, sealed, publicKey, createdAt }: WrappingKey): void {
      sql.run(
        'INSERT INTO wrapping_keys (id, epoch, sealed, public_key, created_at) VALUES (?, ?, ?, ?, ?)',
        id,
        epoch,
        sealed,
        publicKey,
        createdAt,
      );
    },

    reseal(id: string, epoch: number, sealed: string): void {
      sql.run('UPDATE wrapping_keys SET epoch = ?, sealed = ? WHERE id = ?', epoch, sealed, id);
    },

    /** Erases those made at or before that time, and writes nothing if there are none. */
    eraseUntil(time: number): void {
      const old = sql.get<{ seq: number }>('SELECT seq FROM wrapping_keys WHERE created_at <= ? LIMIT 1', time);
      if (old) sql.run('DELETE FROM wrapping_keys WHERE created_at <= ?', time);
    },
  };
}
