// The table of who was given a way into an API key or a User's account: its maker, its owner, those who got a secret, a
// proof, an invite or a link. It stays noted when they are gone. Ways are numbered in the order in which they were
// given, so that no clock decides which came first.
import type { Sql } from '../sql.ts';

interface WayIn {
  /** The id of an API key or a User, or `local`. */
  readonly who: string;
  /** Numbers of the first and the last way that they were given; 0 if the first was not noted yet. */
  readonly first: number;
  readonly last: number;
}

/** Ways that are read of one identity. */
export const mostWays = 100;

export type WayInTable = ReturnType<typeof wayInTable>;

export function wayInTable(sql: Sql) {
  return {
    /** Notes it, or that it happened again. */
    note(identity: string, who: string): void {
      const known = sql.get<{ seq: number; first: number | null }>(
        'SELECT seq, first FROM ways_in WHERE identity = ? AND who = ?',
        identity,
        who,
      );
      if (known) sql.run('DELETE FROM ways_in WHERE seq = ?', known.seq);
      const first = known && (known.first ?? known.seq);
      sql.run('INSERT INTO ways_in (identity, who, first) VALUES (?, ?, ?)', identity, who, first ?? null);
    },

    /** Those given after the way of that number; one more than `mostWays` if there are more. */
    since: (identity: string, after: number): WayIn[] =>
      sql.all<{ who: string; first: number; last: number }>(
        'SELECT who, COALESCE(first, seq) AS first, seq AS last FROM ways_in WHERE identity = ? AND seq > ? LIMIT ?',
        identity,
        after,
        mostWays + 1,
      ),

    /** The number of the last way that was given into this identity; 0 if none was. */
    lastOf: (identity: string): number =>
      sql.get<{ last: number }>('SELECT MAX(seq) AS last FROM ways_in WHERE identity = ?', identity)?.last ?? 0,

    /** The number of the last way of all. */
    last: (): number => sql.get<{ last: number }>('SELECT MAX(seq) AS last FROM ways_in')?.last ?? 0,

    /** For an identity that is gone: forgets who could get in, unless it gave others a way, who lead back to it. */
    forget(identity: string): void {
      if (sql.get('SELECT 1 AS gave FROM ways_in WHERE who = ? LIMIT 1', identity)) return;
      sql.run('DELETE FROM ways_in WHERE identity = ?', identity);
    },
  };
}
