// The table of who could have got into a User's account: by an invite or a link that they were given, or a password
// that they were told.
import type { Sql } from '../sql.ts';

export type UserMakerTable = ReturnType<typeof userMakerTable>;

export function userMakerTable(sql: Sql) {
  return {
    /** Notes it, or that it happened again. */
    note(userId: string, maker: string, at: number): void {
      if (sql.run('UPDATE user_makers SET at = ? WHERE user_id = ? AND maker = ?', at, userId, maker) > 0) return;
      sql.run('INSERT INTO user_makers (user_id, maker, at) VALUES (?, ?, ?)', userId, maker, at);
    },

    of: (userId: string): { maker: string; at: number }[] =>
      sql.all<{ maker: string; at: number }>('SELECT maker, at FROM user_makers WHERE user_id = ?', userId),
  };
}
