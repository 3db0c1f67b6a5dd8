// The one-time tokens of users, by their hashes: at most one invite and one reset each. One that is used or replaced is
// gone.
import type { Row, Sql } from '../sql.ts';

type UserTokenKind = 'invite' | 'reset';

interface UserToken {
  readonly kind: UserTokenKind;
  readonly tokenHash: string;
  readonly userId: string;
  readonly expiresAt: number;
}

interface UserTokenRow extends Row {
  user_id: string;
  expires_at: number;
}

export type UserTokenTable = ReturnType<typeof userTokenTable>;

export function userTokenTable(sql: Sql) {
  async function erase(userId: string, kind: UserTokenKind): Promise<void> {
    await sql.run('DELETE FROM user_tokens WHERE user_id = ? AND kind = ?', userId, kind);
  }

  return {
    /** Adds a token in place of the one of that user and kind. */
    async replace(token: UserToken): Promise<void> {
      await erase(token.userId, token.kind);
      await sql.run(
        'INSERT INTO user_tokens (kind, token_hash, user_id, expires_at) VALUES (?, ?, ?, ?)',
        token.kind,
        token.tokenHash,
        token.userId,
        token.expiresAt,
      );
    },

    async byHash(kind: UserTokenKind, tokenHash: string): Promise<UserToken | undefined> {
      const row = await sql.get<UserTokenRow>(
        'SELECT user_id, expires_at FROM user_tokens WHERE kind = ? AND token_hash = ?',
        kind,
        tokenHash,
      );
      return row && { kind, tokenHash, userId: row.user_id, expiresAt: row.expires_at };
    },

    erase,
  };
}
