// Sessions: what an access token stands for, found by the token's hash. Ended and expired ones stay until `purge`.
import type { Row, Sql } from '../sql.ts';

export interface SessionRecord {
  readonly tokenHash: string;
  readonly userId: string;
  /** When the login was that this session and all refreshes before it go back to. */
  readonly chainStartedAt: number;
  readonly expiresAt: number;
  readonly endedAt?: number;
}

export interface SessionTable {
  insert(session: SessionRecord): Promise<void>;
  find(tokenHash: string): Promise<SessionRecord | undefined>;
  /** Ends one; false where it has ended before. */
  end(tokenHash: string, now: number): Promise<boolean>;
  endAllOf(userId: string, now: number): Promise<void>;
  /** Removes up to `most` sessions that expired before `time`. */
  purge(time: number, most: number): Promise<void>;
}

type SessionRow = Row & {
  token_hash: string;
  user_id: string;
  chain_started_at: number;
  expires_at: number;
  ended_at: number | null;
};

export function sessionTable(sql: Sql): SessionTable {
  return {
    async insert(session) {
      await sql.run(
        'INSERT INTO sessions (token_hash, user_id, chain_started_at, expires_at) VALUES (?, ?, ?, ?)',
        session.tokenHash,
        session.userId,
        session.chainStartedAt,
        session.expiresAt,
      );
    },
    async find(tokenHash) {
      const row = await sql.get<SessionRow>(
        'SELECT token_hash, user_id, chain_started_at, expires_at, ended_at FROM sessions WHERE token_hash = ?',
        tokenHash,
      );
      if (!row) return undefined;
      const session = {
        tokenHash: row.token_hash,
        userId: row.user_id,
        chainStartedAt: row.chain_started_at,
        expiresAt: row.expires_at,
      };
      return row.ended_at === null ? session : { ...session, endedAt: row.ended_at };
    },
    async end(tokenHash, now) {
      const ended = await sql.run(
        'UPDATE sessions SET ended_at = ? WHERE token_hash = ? AND ended_at IS NULL',
        now,
        tokenHash,
      );
      return ended === 1;
    },
    async endAllOf(userId, now) {
      await sql.run('UPDATE sessions SET ended_at = ? WHERE user_id = ? AND ended_at IS NULL', now, userId);
    },
    async purge(time, most) {
      await sql.run(
        'DELETE FROM sessions WHERE seq IN (SELECT seq FROM sessions WHERE expires_at < ? ORDER BY expires_at LIMIT ?)',
        time,
        most,
      );
    },
  };
}
