// The table of key pairs with which Tang clients unlock their bound data, each sealed under one of the tenant's keys.
// The newest is advertised; earlier ones serve until they are deleted.
import type { Row, Sql } from '../sql.ts';

export interface TangPair {
  /** SHA-256 thumbprint of the signing key, which names the pair. */
  readonly thumbprint: string;
  /** The same by SHA-1, and both thumbprints of the exchange key. */
  readonly thumbprintS1: string;
  readonly exchange: string;
  readonly exchangeS1: string;
  /** Epoch of the tenant key that it is sealed under. */
  readonly epoch: number;
  readonly sealed: string;
  readonly createdAt: number;
  /** When a newer pair was first advertised. */
  readonly rotatedAt: number | undefined;
  readonly recoveries: number;
  readonly recoveredAt: number | undefined;
}

interface PairRow extends Row {
  thumbprint: string;
  thumbprint_s1: string;
  exchange: string;
  exchange_s1: string;
  epoch: number;
  sealed: string;
  created_at: number;
  rotated_at: number | null;
  recoveries: number;
  recovered_at: number | null;
}

export type TangTable = ReturnType<typeof tangTable>;

export function tangTable(sql: Sql) {
  const one = (condition: string, ...values: string[]): TangPair | undefined => {
    const row = sql.get<PairRow>(`SELECT * FROM tang_pairs WHERE ${condition}`, ...values);
    return row && fromRow(row);
  };
  return {
    /** Adds a pair, which is advertised from now on instead of the current one. */
    insert(pair: Omit<TangPair, 'rotatedAt' | 'recoveries' | 'recoveredAt'>): void {
      sql.run('UPDATE tang_pairs SET rotated_at = ? WHERE rotated_at IS NULL', pair.createdAt);
      sql.run(
        `INSERT INTO tang_pairs (thumbprint, thumbprint_s1, exchange, exchange_s1, epoch, sealed, created_at, recoveries)
          VALUES (?, ?, ?, ?, ?, ?, ?, 0)`,
        pair.thumbprint,
        pair.thumbprintS1,
        pair.exchange,
        pair.exchangeS1,
        pair.epoch,
        pair.sealed,
        pair.createdAt,
      );
    },

    advertised: (): TangPair | undefined => one('rotated_at IS NULL'),

    /** Finds a pair by a thumbprint of its signing key. */
    bySigning: (thumbprint: string): TangPair | undefined =>
      one('thumbprint = ? OR thumbprint_s1 = ?', thumbprint, thumbprint),

    byExchange: (thumbprint: string): TangPair | undefined =>
      one('exchange = ? OR exchange_s1 = ?', thumbprint, thumbprint),

    /** Newest first. The caller of `insert` keeps their number small. */
    all: (): TangPair[] => sql.all<PairRow>('SELECT * FROM tang_pairs ORDER BY seq DESC').map(fromRow),

    noteRecovery(thumbprint: string, at: number): void {
      const sets = 'recoveries = recoveries + 1, recovered_at = ?';
      sql.run(`UPDATE tang_pairs SET ${sets} WHERE thumbprint = ?`, at, thumbprint);
    },

    reseal(thumbprint: string, epoch: number, sealed: string): void {
      sql.run('UPDATE tang_pairs SET epoch = ?, sealed = ? WHERE thumbprint = ?', epoch, sealed, thumbprint);
    },

    erase(thumbprint: string): void {
      sql.run('DELETE FROM tang_pairs WHERE thumbprint = ?', thumbprint);
    },
  };
}

function fromRow(row: PairRow): TangPair {
  return {
    thumbprint: row.thumbprint,
    thumbprintS1: row.thumbprint_s1,
    exchange: row.exchange,
    exchangeS1: row.exchange_s1,
    epoch: row.epoch,
    sealed: row.sealed,
    createdAt: row.created_at,
    rotatedAt: row.rotated_at ?? undefined,
    recoveries: row.recoveries,
    recoveredAt: row.recovered_at ?? undefined,
  };
}
