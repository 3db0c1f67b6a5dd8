// The key pairs by which Tang clients unlock what they bound, each sealed under a key of the tenant's. The newest is
// advertised; those before it serve until they are deleted.
import type { Row, Sql } from '../sql.ts';

export interface TangPair {
  /** Of the key that signs, by SHA-256: what the pair is called. */
  readonly thumbprint: string;
  /** The same by SHA-1, and those of the key that exchanges. */
  readonly thumbprintS1: string;
  readonly exchange: string;
  readonly exchangeS1: string;
  /** Of the tenant key that it is sealed under. */
  readonly epoch: number;
  readonly sealed: string;
  readonly createdAt: number;
  /** Since when another is advertised. */
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
    /** It is advertised from now on, in place of the one before. */
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

    /** By what the key that signs is called. */
    bySigning: (thumbprint: string): TangPair | undefined =>
      one('thumbprint = ? OR thumbprint_s1 = ?', thumbprint, thumbprint),

    byExchange: (thumbprint: string): TangPair | undefined =>
      one('exchange = ? OR exchange_s1 = ?', thumbprint, thumbprint),

    /** The newest first. There are few: whoever makes one sees to it. */
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
