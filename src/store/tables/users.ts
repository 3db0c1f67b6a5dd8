// The table of users. Names and e-mail addresses are unique and found without regard to case. A record holds no
// password material: the hash is read separately.
import { sameDomain } from '../../model/hosts.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { holdsAll, objectOf, textsOf, toJson } from './columns.ts';
import { readPart } from './page.ts';
import { wayInTable } from './ways-in.ts';

export interface User {
  readonly seq: number;
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly displayName: string;
  /** JSON text of the flags as given; also the cache key of compiled flags. */
  readonly flagsText: string;
  readonly props: JsonObject;
  /** Ids of the API keys that the user owns, oldest first. */
  readonly keys: readonly string[];
  /** False from the invite until its completion. */
  readonly hasPassword: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Undefined before the first login. */
  readonly lastLoginAt: number | undefined;
}

interface NewUser extends Omit<User, 'seq' | 'keys' | 'hasPassword' | 'lastLoginAt'> {
  /** Undefined for an invited user. */
  readonly passwordHash: string | undefined;
}

type UserChange = Pick<User, 'email' | 'firstName' | 'lastName' | 'displayName' | 'flagsText' | 'props' | 'updatedAt'>;

/** UTF-16 units; longer than any name. Composing takes time quadratic in the number of combining characters. */
const longestCompared = 1024;

/**
 * The form in which user names and e-mail addresses are compared: case-insensitive, with one form of the domain after
 * an @. A text longer than any name is its own key.
 */
export function nameKey(name: string): string {
  if (name.length > longestCompared) return name;
  return sameDomain(name.normalize('NFC')).toLowerCase();
}

interface UserRow extends Row {
  seq: number;
  id: string;
  username: string;
  email: string;
  first_name: string;
  last_name: string;
  display_name: string;
  flags: string;
  props: string;
  has_password: number;
  keys: string | null;
  created_at: number;
  updated_at: number;
  last_login_at: number | null;
}

const select = `SELECT seq, id, username, email, first_name, last_name, display_name, flags, props, created_at, updated_at,
  last_login_at, password_hash IS NOT NULL AS has_password,
  (SELECT group_concat(id, ' ') FROM (SELECT id FROM api_keys k WHERE k.user_id = users.id ORDER BY k.seq)) AS keys
  FROM users`;

const ofUser = ['user_tokens', 'second_factors', 'recovery_codes'].map(
  (table) => `DELETE FROM ${table} WHERE user_id = ?`,
);

export type UserTable = ReturnType<typeof userTable>;

export function userTable(sql: Sql) {
  const waysIn = wayInTable(sql);
  return {
    insert(user: NewUser): void {
      sql.run(
        `INSERT INTO users (id, username, username_key, email, email_key, first_name, last_name, display_name, flags, props,
          password_hash, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        user.id,
        user.username,
        nameKey(user.username),
        user.email,
        nameKey(user.email),
        user.firstName,
        user.lastName,
        user.displayName,
        user.flagsText,
        toJson(user.props),
        user.passwordHash ?? null,
        user.createdAt,
        user.updatedAt,
      );
    },

    byId(id: string): User | undefined {
      const row = sql.get<UserRow>(`${select} WHERE id = ?`, id);
      return row && fromRow(row);
    },

    byUsername(username: string): User | undefined {
      const row = sql.get<UserRow>(`${select} WHERE username_key = ?`, nameKey(username));
      return row && fromRow(row);
    },

    byEmail(email: string): User | undefined {
      const row = sql.get<UserRow>(`${select} WHERE email_key = ?`, nameKey(email));
      return row && fromRow(row);
    },

    /** The flags of the user behind an access token; undefined if there is no such user. */
    flagsText(id: string): string | undefined {
      const row = sql.get<{ flags: string }>('SELECT flags FROM users WHERE id = ?', id);
      return row?.flags;
    },

    /** The same without flags from an identity provider's claims. */
    ownFlagsText(id: string): string | undefined {
      const row = sql.get<{ flags: string; granted: string | null }>(
        'SELECT flags, (SELECT granted FROM oidc_users WHERE user_id = users.id) AS granted FROM users WHERE id = ?',
        id,
      );
      const granted = new Set(row?.granted == null ? [] : textsOf(row.granted));
      if (!row || granted.size === 0) return row?.flags;
      const own = Object.entries(objectOf(row.flags)).filter(([name]) => !granted.has(name.toLowerCase()));
      return toJson(Object.fromEntries(own));
    },

    /** The stored hash; undefined if there is no such user or no password yet. */
    passwordHash(id: string): string | undefined {
      const row = sql.get<{ password_hash: string | null }>('SELECT password_hash FROM users WHERE id = ?', id);
      return row?.password_hash ?? undefined;
    },

    setPasswordHash(id: string, passwordHash: string, now: number): void {
      sql.run('UPDATE users SET password_hash = ?, updated_at = ? WHERE id = ?', passwordHash, now, id);
    },

    update(id: string, change: UserChange): void {
      sql.run(
        `UPDATE users SET email = ?, email_key = ?, first_name = ?, last_name = ?, display_name = ?, flags = ?, props = ?,
          updated_at = ? WHERE id = ?`,
        change.email,
        nameKey(change.email),
        change.firstName,
        change.lastName,
        change.displayName,
        change.flagsText,
        toJson(change.props),
        change.updatedAt,
        id,
      );
    },

    noteLogin(id: string, now: number): void {
      sql.run('UPDATE users SET last_login_at = ? WHERE id = ?', now, id);
    },

    /** Whether a user with a password holds `*` other than from an identity provider. */
    hasHolder(): boolean {
      const text = `SELECT 1 AS held FROM users WHERE ${holdsAll} AND password_hash IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM oidc_users o WHERE o.user_id = users.id AND instr(o.granted, '"*"') > 0) LIMIT 1`;
      return sql.get(text) !== undefined;
    },

    /**
     * Erases the user with one-time tokens and second factors; the caller must end everything else of the user first.
     */
    erase(id: string): void {
      for (const table of ofUser) sql.run(table, id);
      sql.run('DELETE FROM users WHERE id = ?', id);
      // Users for whom a rule vouches are persons of their own, who others are behind no more.
      const vouched = 'SELECT 1 AS one FROM approval_rules, json_each(vouched) AS user WHERE user.key = ? LIMIT 1';
      if (!sql.get(vouched, id)) waysIn.replace(id);
    },

    count(): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM users');
      return row?.n ?? 0;
    },

    /** Whether there is any user. */
    any(): boolean {
      return sql.get('SELECT 1 FROM users LIMIT 1') !== undefined;
    },

    /** The number of users ever made, deleted ones included. */
    everMade(): number {
      const row = sql.get<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'users'");
      return row?.seq ?? 0;
    },

    /** Oldest first, each mapped by `answer`. */
    list: <T>(page: PageRequest, answer: (user: User) => T): Page<T> =>
      readPart(sql, page, (row: UserRow) => answer(fromRow(row)), `${select} WHERE seq > ? ORDER BY seq LIMIT ?`),
  };
}

function fromRow(row: UserRow): User {
  return {
    seq: row.seq,
    id: row.id,
    username: row.username,
    email: row.email,
    firstName: row.first_name,
    lastName: row.last_name,
    displayName: row.display_name,
    flagsText: row.flags,
    props: objectOf(row.props),
    keys: row.keys === null ? [] : row.keys.split(' '),
    hasPassword: row.has_password === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastLoginAt: row.last_login_at ?? undefined,
  };
}
