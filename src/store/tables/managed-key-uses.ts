// The uses of managed keys: who used which version for what, through which dialect, how often and when last. They are
// counted beside the log, and tell who depends on a key before it goes.
import type { Row, Sql } from '../sql.ts';

/** Rows kept of a key. One more takes the place of those of deleted callers, or else of those used least recently. */
const mostOfKey = 2000;
/** Rows dropped at once, so that the next new one need not look for them again. */
const mostDropped = 100;

/** True for a row `u` whose caller was an API key or a user that is deleted. Such a caller depends on nothing. */
const isGone = `u.caller GLOB 'apik_*' AND NOT EXISTS (SELECT 1 FROM api_keys k WHERE k.id = u.caller)
  OR u.caller GLOB 'user_*' AND NOT EXISTS (SELECT 1 FROM users p WHERE p.id = u.caller)`;

interface UsedKey {
  readonly keyId: string;
  readonly version: number;
  /** The caller's id: an API key, a user, or `local`. */
  readonly caller: string;
  /** `native`, or the dialect that the caller spoke. */
  readonly dialect: string;
  readonly operation: string;
}

interface KeyUses extends UsedKey {
  readonly count: number;
  /** Time of the last use, epoch milliseconds. */
  readonly usedAt: number;
}

interface UsesRow extends Row {
  seq: number;
  key_id: string;
  version: number;
  caller: string;
  dialect: string;
  operation: string;
  count: number;
  used_at: number;
}

const countUse = 'UPDATE managed_key_uses SET count = count + ?1, used_at = ?3 WHERE seq = ?2';

export type ManagedKeyUseTable = ReturnType<typeof managedKeyUseTable>;

export function managedKeyUseTable(sql: Sql) {
  function rowOf({ keyId, version, caller, dialect, operation }: UsedKey): number | undefined {
    return sql.remember('managed_key_uses', `${keyId} ${version} ${caller} ${dialect} ${operation}`, () =>
      sql.get<{ seq: number }>(
        `SELECT seq FROM managed_key_uses WHERE key_id = ? AND version = ? AND caller = ? AND dialect = ?
          AND operation = ?`,
        keyId,
        version,
        caller,
        dialect,
        operation,
      ),
    )?.seq;
  }

  /** Drops rows if another one of the key needs room. Its latest use stays, even if the caller is deleted. */
  function makeRoom(keyId: string): void {
    const last = 'SELECT seq FROM managed_key_uses WHERE key_id = ? LIMIT 1 OFFSET ?';
    if (!sql.get<{ seq: number }>(last, keyId, mostOfKey - 1)) return;
    const rows = sql
      .all<{ seq: number; used_at: number; gone: number }>(
        `SELECT u.seq, u.used_at, (${isGone}) AS gone FROM managed_key_uses u WHERE u.key_id = ?`,
        keyId,
      )
      .map(({ seq, used_at, gone }) => ({ seq, gone: gone === 1, usedAt: latestOf(seq) ?? used_at }))
      .sort((a, b) => a.usedAt - b.usedAt);
    rows.pop();
    const gone = rows.filter((row) => row.gone);
    const dropped = (gone.length > 0 ? gone : rows).slice(0, mostDropped);
    for (const { seq } of dropped) sql.run('DELETE FROM managed_key_uses WHERE seq = ?', seq);
  }

  /** Time of the latest of the uses that are counted beside the table. */
  function latestOf(seq: number): number | undefined {
    const tally = sql.counted(countUse, String(seq));
    return tally && Number(tally.latest[0]);
  }

  return {
    /** Counts a use; only the first of its kind runs a statement. */
    count(use: UsedKey, at: number): void {
      const known = rowOf(use);
      if (known !== undefined) {
        sql.count(countUse, String(known), at);
        return;
      }
      const { keyId, version, caller, dialect, operation } = use;
      makeRoom(keyId);
      sql.run(
        `INSERT INTO managed_key_uses (key_id, version, caller, dialect, operation, count, used_at)
          VALUES (?, ?, ?, ?, ?, 1, ?)`,
        keyId,
        version,
        caller,
        dialect,
        operation,
        at,
      );
    },

    /** The uses of a key since then, the most recent first. */
    since(keyId: string, since: number): KeyUses[] {
      const rows = sql.all<UsesRow>('SELECT * FROM managed_key_uses WHERE key_id = ?', keyId);
      return rows
        .map(usesFrom)
        .filter(({ usedAt }) => usedAt >= since)
        .sort((a, b) => b.usedAt - a.usedAt);
    },

    /** The last use of a key through a dialect for one operation. */
    last(keyId: string, dialect: string, operation: string): KeyUses | undefined {
      const rows = sql.all<UsesRow>(
        'SELECT * FROM managed_key_uses WHERE key_id = ? AND dialect = ? AND operation = ?',
        keyId,
        dialect,
        operation,
      );
      return rows.map(usesFrom).toSorted((a, b) => b.usedAt - a.usedAt)[0];
    },

    eraseAll(keyId: string): void {
      sql.run('DELETE FROM managed_key_uses WHERE key_id = ?', keyId);
    },
  };

  function usesFrom(row: UsesRow): KeyUses {
    const tally = sql.counted(countUse, String(row.seq));
    return {
      keyId: row.key_id,
      version: row.version,
      caller: row.caller,
      dialect: row.dialect,
      operation: row.operation,
      count: row.count + (tally?.sum ?? 0),
      usedAt: tally ? Number(tally.latest[0]) : row.used_at,
    };
  }
}
