// The table of sessions, each found by its access token's hash. A refresh ends a row and adds one with the same id.
// Ended and expired sessions stay until they are purged.
import type { Row, Sql } from '../sql.ts';

interface Session {
  readonly tokenHash: string;
  /** The same for the login and all its refreshes. */
  readonly id: string;
  readonly userId: string;
  /** Whether an identity provider made the login. */
  readonly byProvider: boolean;
  /** Time of the login that this session and all its earlier refreshes go back to. */
  readonly chainStartedAt: number;
  readonly expiresAt: number;
  readonly endedAt: number | undefined;
  /** Accurate to a minute. */
  readonly usedAt: number;
  /** The address of that use; undefined from the machine itself. */
  readonly address: string | undefined;
  /** The second factor that was last proved in it, and when. */
  readonly factor: { readonly id: string; readonly at: number } | undefined;
}

interface SessionRow extends Row {
  token_hash: string;
  id: string;
  user_id: string;
  by_provider: number;
  chain_started_at: number;
  expires_at: number;
  ended_at: number | null;
  used_at: number;
  address: string | null;
  factor_id: string | null;
  factor_at: number | null;
}

const select = `SELECT token_hash, id, user_id, by_provider, chain_started_at, expires_at, ended_at, used_at, address, factor_id,
  factor_at FROM sessions`;

export type SessionTable = ReturnType<typeof sessionTable>;

export function sessionTable(sql: Sql) {
  return {
    insert(session: Omit<Session, 'endedAt'>): void {
      sql.run(
        `INSERT INTO sessions (token_hash, id, user_id, by_provider, chain_started_at, expires_at, used_at, address, factor_id,
          factor_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        session.tokenHash,
        session.id,
        session.userId,
        session.byProvider ? 1 : 0,
        session.chainStartedAt,
        session.expiresAt,
        session.usedAt,
        session.address ?? null,
        session.factor?.id ?? null,
        session.factor?.at ?? null,
      );
    },

    byTokenHash(tokenHash: string): Session | undefined {
      const row = sql.get<SessionRow>(`${select} WHERE token_hash = ?`, tokenHash);
      return row && fromRow(row);
    },

    /** The user's sessions that are open at that time, the oldest login first. */
    openOf(userId: string, now: number): Session[] {
      const rows = sql.all<SessionRow>(
        `${select} WHERE user_id = ? AND ended_at IS NULL AND expires_at > ? ORDER BY chain_started_at, seq`,
        userId,
        now,
      );
      return rows.map(fromRow);
    },

    noteUse(tokenHash: string, now: number, address: string | undefined): void {
      sql.run('UPDATE sessions SET used_at = ?, address = ? WHERE token_hash = ?', now, address ?? null, tokenHash);
    },

    noteFactor(tokenHash: string, id: string, now: number): void {
      sql.run('UPDATE sessions SET factor_id = ?, factor_at = ? WHERE token_hash = ?', id, now, tokenHash);
    },

    extend(tokenHash: string, expiresAt: number): void {
      sql.run('UPDATE sessions SET expires_at = ? WHERE token_hash = ?', expiresAt, tokenHash);
    },

    /** Ends a session; returns false if it had ended before. */
    end(tokenHash: string, now: number): boolean {
      const ended = sql.run(
        'UPDATE sessions SET ended_at = ? WHERE token_hash = ? AND ended_at IS NULL',
        now,
        tokenHash,
      );
      return ended === 1;
    },

    /** Ends the session of that id; returns false if the user has no such open session. */
    endById(userId: string, id: string, now: number): boolean {
      const ended = sql.run(
        'UPDATE sessions SET ended_at = ? WHERE user_id = ? AND ended_at IS NULL AND expires_at > ? AND id = ?',
        now,
        userId,
        now,
        id,
      );
      return ended > 0;
    },

    /** Ends all of the user's sessions except the one with that token. */
    endAllOf(userId: string, now: number, exceptTokenHash = ''): void {
      sql.run(
        'UPDATE sessions SET ended_at = ? WHERE user_id = ? AND ended_at IS NULL AND token_hash <> ?',
        now,
        userId,
        exceptTokenHash,
      );
    },

    /** Ends all but the newest `most` of the user's sessions that are open at that time. */
    endBeyond(userId: string, most: number, now: number): void {
      const row = sql.get<{ seq: number }>(
        `SELECT seq FROM sessions WHERE user_id = ? AND ended_at IS NULL AND expires_at > ?
          ORDER BY seq DESC LIMIT 1 OFFSET ?`,
        userId,
        now,
        most,
      );
      if (!row) return;
      sql.run(
        'UPDATE sessions SET ended_at = ? WHERE user_id = ? AND ended_at IS NULL AND seq <= ?',
        now,
        userId,
        row.seq,
      );
    },

    /** Erases the user's ended and expired sessions, except for the newest `most` sessions of any kind. */
    purgeBeyond(userId: string, most: number, now: number): void {
      const row = sql.get<{ seq: number }>(
        'SELECT seq FROM sessions WHERE user_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?',
        userId,
        most,
      );
      if (!row) return;
      sql.run(
        'DELETE FROM sessions WHERE user_id = ? AND seq <= ? AND (ended_at IS NOT NULL OR expires_at <= ?)',
        userId,
        row.seq,
        now,
      );
    },

    /** Erases up to `most` sessions that expired before `time`. */
    purge(time: number, most: number): void {
      sql.run(
        'DELETE FROM sessions WHERE seq IN (SELECT seq FROM sessions WHERE expires_at < ? ORDER BY expires_at, seq LIMIT ?)',
        time,
        most,
      );
    },
  };
}

function fromRow(row: SessionRow): Session {
  return {
    tokenHash: row.token_hash,
    id: row.id,
    userId: row.user_id,
    byProvider: row.by_provider === 1,
    chainStartedAt: row.chain_started_at,
    expiresAt: row.expires_at,
    endedAt: row.ended_at ?? undefined,
    usedAt: row.used_at,
    address: row.address ?? undefined,
    factor: row.factor_id === null ? undefined : { id: row.factor_id, at: row.factor_at ?? 0 },
  };
}
