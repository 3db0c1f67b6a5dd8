// Sessions: what an access token stands for, found by the token's hash. Ended and expired ones stay until `purge`.
import type { Row, Sql } from '../sql.ts';

interface Session {
  readonly tokenHash: string;
  readonly userId: string;
  /** When the login was that this session and all refreshes before it go back to. */
  readonly chainStartedAt: number;
  readonly expiresAt: number;
  readonly endedAt: number | undefined;
}

interface SessionRow extends Row {
  token_hash: string;
  user_id: string;
  chain_started_at: number;
  expires_at: number;
  ended_at: number | null;
}

export type SessionTable = ReturnType<typeof sessionTable>;

export function sessionTable(sql: Sql) {
  return {
    async insert(session: Omit<Session, 'endedAt'>): Promise<void> {
      await sql.run(
        'INSERT INTO sessions (token_hash, user_id, chain_started_at, expires_at) VALUES (?, ?, ?, ?)',
        session.tokenHash,
        session.userId,
        session.chainStartedAt,
        session.expiresAt,
      );
    },

    async byTokenHash(tokenHash: string): Promise<Session | undefined> {
      const row = await sql.get<SessionRow>(
        'SELECT token_hash, user_id, chain_started_at, expires_at, ended_at FROM sessions WHERE token_hash = ?',
        tokenHash,
      );
      return (
        row && {
          tokenHash: row.token_hash,
          userId: row.user_id,
          chainStartedAt: row.chain_started_at,
          expiresAt: row.expires_at,
          endedAt: row.ended_at ?? undefined,
        }
      );
    },

    /** Ends one; false where it has ended before. */
    async end(tokenHash: string, now: number): Promise<boolean> {
      const ended = await sql.run(
        'UPDATE sessions SET ended_at = ? WHERE token_hash = ? AND ended_at IS NULL',
        now,
        tokenHash,
      );
      return ended === 1;
    },

    async endAllOf(userId: string, now: number): Promise<void> {
      await sql.run('UPDATE sessions SET ended_at = ? WHERE user_id = ? AND ended_at IS NULL', now, userId);
    },

    /** Ends all but the newest `most` of the user's sessions that are open at that time. */
    async endBeyond(userId: string, most: number, now: number): Promise<void> {
      const row = await sql.get<{ seq: number }>(
        `SELECT seq FROM sessions WHERE user_id = ? AND ended_at IS NULL AND expires_at > ?
          ORDER BY seq DESC LIMIT 1 OFFSET ?`,
        userId,
        now,
        most,
      );
      if (!row) return;
      await sql.run(
        'UPDATE sessions SET ended_at = ? WHERE user_id = ? AND ended_at IS NULL AND seq <= ?',
        now,
        userId,
        row.seq,
      );
    },

    /** Erases what has ended or expired of the user's sessions, but for the newest `most` of all. */
    async purgeBeyond(userId: string, most: number, now: number): Promise<void> {
      const row = await sql.get<{ seq: number }>(
        'SELECT seq FROM sessions WHERE user_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?',
        userId,
        most,
      );
      if (!row) return;
      await sql.run(
        'DELETE FROM sessions WHERE user_id = ? AND seq <= ? AND (ended_at IS NOT NULL OR expires_at <= ?)',
        userId,
        row.seq,
        now,
      );
    },

    /** Erases up to `most` sessions that expired before `time`. */
    async purge(time: number, most: number): Promise<void> {
      await sql.run(
        'DELETE FROM sessions WHERE seq IN (SELECT seq FROM sessions WHERE expires_at < ? ORDER BY expires_at, seq LIMIT ?)',
        time,
        most,
      );
    },
  };
}
