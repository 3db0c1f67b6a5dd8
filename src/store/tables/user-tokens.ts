// The one-time tokens of users, by their hashes: at most one invite and one reset each. One that is used or replaced is gone.
import type { Row, Sql } from '../sql.ts';

export type UserTokenKind = 'invite' | 'reset';

export interface UserTokenRecord {
  readonly kind: UserTokenKind;
  readonly tokenHash: string;
  readonly userId: string;
  readonly expiresAt: number;
}

export interface UserTokenTable {
  /** Adds a token in place of the one of that user and kind. */
  replace(token: UserTokenRecord): Promise<void>;
  find(kind: UserTokenKind, tokenHash: string): Promise<UserTokenRecord | undefined>;
  remove(userId: string, kind: UserTokenKind): Promise<void>;
}

type UserTokenRow = Row & { user_id: string; expires_at: number };

export function userTokenTable(sql: Sql): UserTokenTable {
  async function remove(userId: string, kind: UserTokenKind): Promise<void> {
    await sql.run('DELETE FROM user_tokens WHERE user_id = ? AND kind = ?', userId, kind);
  }

  return {
    async replace({ kind, tokenHash, userId, expiresAt }) {
      await remove(userId, kind);
      await sql.run(
        'INSERT INTO user_tokens (kind, token_hash, user_id, expires_at) VALUES (?, ?, ?, ?)',
        kind,
        tokenHash,
        userId,
        expiresAt,
      );
    },
    async find(kind, tokenHash) {
      const row = await sql.get<UserTokenRow>(
        'SELECT user_id, expires_at FROM user_tokens WHERE kind = ? AND token_hash = ?',
        kind,
        tokenHash,
      );
      return row && { kind, tokenHash, userId: row.user_id, expiresAt: row.expires_at };
    },
    remove,
  };
}
