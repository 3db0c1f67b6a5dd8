// The table of who was given a way into an API key or a User's account: its maker, its owner, those who got a secret, a
// proof, an invite or a link. Ways are numbered in the order in which they were given, so that no clock decides which
// came first. API keys are no persons: a way given to one is given to those who could use it by then, and those
// that are gone do not count.
import type { Row, Sql } from '../sql.ts';

interface WayIn {
  /** The id of a User or an API key, or `local`. */
  readonly who: string;
  /** Numbers of the first and the last way that they were given; 0 if the first was not noted yet. */
  readonly first: number;
  readonly last: number;
  /** Those who had a way into `who` by this number had one by it. */
  readonly reach: number;
}

interface WayRow extends Row {
  who: string;
  first: number;
  last: number;
  reach: number;
}

/** Ways that are read of one identity. */
export const mostWays = 500;

const columns = 'who, COALESCE(first, seq) AS first, COALESCE(last, seq) AS last, COALESCE(reach, seq) AS reach';

export type WayInTable = ReturnType<typeof wayInTable>;

export function wayInTable(sql: Sql) {
  /** Notes a way, together with one that is known; what is left out is the way's own number. */
  function add(identity: string, who: string, { first, last, reach }: Partial<WayIn> = {}): void {
    if (who === identity) return;
    const text = `SELECT ${columns} FROM ways_in WHERE identity = ? AND who = ?`;
    const known = sql.get<WayRow>(text, identity, who);
    if (known) sql.run('DELETE FROM ways_in WHERE identity = ? AND who = ?', identity, who);
    sql.run(
      'INSERT INTO ways_in (identity, who, first, last, reach) VALUES (?, ?, ?, ?, ?)',
      identity,
      who,
      known ? Math.min(known.first, first ?? known.first) : (first ?? null),
      last === undefined ? null : Math.max(last, known?.last ?? 0),
      reach === undefined ? null : Math.max(reach, known?.reach ?? 0),
    );
  }

  const waysInto = (identity: string): WayRow[] =>
    sql.all<WayRow>(`SELECT ${columns} FROM ways_in WHERE identity = ?`, identity);

  return {
    /** Notes it, or that it happened again. */
    note(identity: string, who: string): void {
      const key = sql.get<{ created_by: string | null }>('SELECT created_by FROM api_keys WHERE id = ?', who);
      const ways = key ? waysInto(who) : [];
      // Those who hold an API key without a known maker are not known. A User's own API key is told apart from others'.
      if (key?.created_by === null || ways.length === 0 || ways.some((way) => way.who === identity)) add(identity, who);
      else for (const way of ways) add(identity, way.who, { reach: way.reach });
    },

    /** Those given after the way of that number; one more than `mostWays` if there are more. */
    since: (identity: string, after: number): WayIn[] =>
      sql.all<WayRow>(
        `SELECT ${columns} FROM ways_in WHERE identity = ? AND COALESCE(last, seq) > ? LIMIT ?`,
        identity,
        after,
        mostWays + 1,
      ),

    /** The number of the last way that was given into this identity; 0 if none was. */
    lastOf: (identity: string): number =>
      sql.get<{ last: number }>('SELECT MAX(COALESCE(last, seq)) AS last FROM ways_in WHERE identity = ?', identity)
        ?.last ?? 0,

    /** The number of the last way of all. */
    last: (): number => sql.get<{ last: number }>('SELECT MAX(seq) AS last FROM ways_in')?.last ?? 0,

    /** For an API key that is gone: forgets who could get in, unless it gave others a way, who lead back to it. */
    forget(identity: string): void {
      if (sql.get('SELECT 1 AS gave FROM ways_in WHERE who = ? LIMIT 1', identity)) return;
      sql.run('DELETE FROM ways_in WHERE identity = ?', identity);
    },

    /** For a User who is gone: the ways that they were given are those of who could get into their account. */
    replace(userId: string): void {
      const ways = waysInto(userId);
      const given =
        'SELECT identity, COALESCE(first, seq) AS first, COALESCE(last, seq) AS last, ' +
        'COALESCE(reach, seq) AS reach FROM ways_in WHERE who = ?';
      for (const { identity, first, last, reach } of sql.all<WayRow & { identity: string }>(given, userId)) {
        for (const way of ways) {
          if (way.first <= reach) add(identity, way.who, { first, last, reach: Math.min(reach, way.reach) });
        }
      }
      sql.run('DELETE FROM ways_in WHERE who = ? OR identity = ?', userId, userId);
    },
  };
}
