// Users. Their names and addresses are unique and found without regard to case. A record holds no password material:
// the hash is asked for by itself.
import { sameDomain } from '../../model/hosts.ts';
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { holdsAll, type JsonObject, objectOf, textsOf, toJson } from './columns.ts';
import { readPart } from './page.ts';

export interface User {
  readonly seq: number;
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly displayName: string;
  /** JSON text of the flags as they were given: compiled flags are kept by it. */
  readonly flagsText: string;
  readonly props: JsonObject;
  /** Ids of the API keys that the user owns, oldest first. */
  readonly keys: readonly string[];
  /** False from the invite until its completion. */
  readonly hasPassword: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Undefined before the first time. */
  readonly lastLoginAt: number | undefined;
}

interface NewUser extends Omit<User, 'seq' | 'keys' | 'hasPassword' | 'lastLoginAt'> {
  /** Undefined for a user who is invited. */
  readonly passwordHash: string | undefined;
}

type UserChange = Pick<User, 'email' | 'firstName' | 'lastName' | 'displayName' | 'flagsText' | 'props' | 'updatedAt'>;

/** What a user name or an e-mail address is compared by: no case, and one form of a domain behind an @. */
export function nameKey(name: string): string {
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
  return {
    async insert(user: NewUser): Promise<void> {
      await sql.run(
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

    async byId(id: string): Promise<User | undefined> {
      const row = await sql.get<UserRow>(`${select} WHERE id = ?`, id);
      return row && fromRow(row);
    },

    async byUsername(username: string): Promise<User | undefined> {
      const row = await sql.get<UserRow>(`${select} WHERE username_key = ?`, nameKey(username));
      return row && fromRow(row);
    },

    async byEmail(email: string): Promise<User | undefined> {
      const row = await sql.get<UserRow>(`${select} WHERE email_key = ?`, nameKey(email));
      return row && fromRow(row);
    },

    /** The flags of the user behind an access token; undefined where there is no such user. */
    async flagsText(id: string): Promise<string | undefined> {
      const row = await sql.get<{ flags: string }>('SELECT flags FROM users WHERE id = ?', id);
      return row?.flags;
    },

    /** The same without those that the claims of an identity provider gave. */
    async ownFlagsText(id: string): Promise<string | undefined> {
      const row = await sql.get<{ flags: string; granted: string | null }>(
        'SELECT flags, (SELECT granted FROM oidc_users WHERE user_id = users.id) AS granted FROM users WHERE id = ?',
        id,
      );
      const granted = new Set(row?.granted == null ? [] : textsOf(row.granted));
      if (!row || granted.size === 0) return row?.flags;
      const own = Object.entries(objectOf(row.flags)).filter(([name]) => !granted.has(name.toLowerCase()));
      return toJson(Object.fromEntries(own));
    },

    /** The stored hash; undefined where there is no such user or no password yet. */
    async passwordHash(id: string): Promise<string | undefined> {
      const row = await sql.get<{ password_hash: string | null }>('SELECT password_hash FROM users WHERE id = ?', id);
      return row?.password_hash ?? undefined;
    },

    async setPasswordHash(id: string, passwordHash: string, now: number): Promise<void> {
      await sql.run('UPDATE users SET password_hash = ?, updated_at = ? WHERE id = ?', passwordHash, now, id);
    },

    async update(id: string, change: UserChange): Promise<void> {
      await sql.run(
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

    async noteLogin(id: string, now: number): Promise<void> {
      await sql.run('UPDATE users SET last_login_at = ? WHERE id = ?', now, id);
    },

    /** Whether a user who can log in here holds `*`, which no identity provider gave. */
    async hasHolder(): Promise<boolean> {
      const text = `SELECT 1 AS held FROM users WHERE ${holdsAll} AND password_hash IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM oidc_users o WHERE o.user_id = users.id AND instr(o.granted, '"*"') > 0) LIMIT 1`;
      return (await sql.get(text)) !== undefined;
    },

    /**
     * Erases the user, with one-time tokens and second factors; what else belongs to it is the caller's to end before.
     */
    async erase(id: string): Promise<void> {
      for (const table of ofUser) await sql.run(table, id);
      await sql.run('DELETE FROM users WHERE id = ?', id);
    },

    async count(): Promise<number> {
      const row = await sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM users');
      return row?.n ?? 0;
    },

    /** Whether there is one. */
    async any(): Promise<boolean> {
      return (await sql.get('SELECT 1 FROM users LIMIT 1')) !== undefined;
    },

    /** How many were ever made, those that were deleted since too. */
    async everMade(): Promise<number> {
      const row = await sql.get<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'users'");
      return row?.seq ?? 0;
    },

    /** The oldest first, each as `answer` makes it. */
    list: <T>(page: PageRequest, answer: (user: User) => T): Promise<Page<T>> =>
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
