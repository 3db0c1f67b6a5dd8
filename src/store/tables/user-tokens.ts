// The table of users' one-time tokens, by their hashes: at most one invite and one reset each. A used or replaced token
// is deleted.
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
  function erase(userId: string, kind: UserTokenKind): void {
    sql.run('DELETE FROM user_tokens WHERE user_id = ? AND kind = ?', userId, kind);
  }

  return {
    /** Replaces the token of the same user and kind. */
    replace(token: UserToken): void {
      erase(token.userId, token.kind);
      sql.run(
        'INSERT INTO user_tokens (kind, token_hash, user_id, expires_at) VALUES (?, ?, ?, ?)',
        token.kind,
        token.tokenHash,
        token.userId,
        token.expiresAt,
      );
    },

    byHash(kind: UserTokenKind, tokenHash: string): UserToken | undefined {
      const row = sql.get<UserTokenRow>(
        'SELECT user_id, expires_at FROM user_tokens WHERE kind = ? AND token_hash = ?',
        kind,
        tokenHash,
      );
      return row && { kind, tokenHash, userId: row.user_id, expiresAt: row.expires_at };
    },

    erase,
  };
}
