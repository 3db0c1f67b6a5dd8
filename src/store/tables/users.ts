// Users. Their names and addresses are unique and found without regard to case. A record holds no password material: the
// hash is asked for by itself.
import type { Page, PageRequest, Row, Sql } from '../sql.ts';

export interface UserRecord {
  readonly seq: number;
  readonly id: string;
  readonly username: string;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly displayName: string;
  readonly flags: Readonly<Record<string, boolean>>;
  readonly props: Readonly<Record<string, unknown>>;
  /** Ids of the API keys that the user owns, oldest first. */
  readonly keys: readonly string[];
  /** False from the invite until its completion. */
  readonly hasPassword: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface NewUser extends Omit<UserRecord, 'seq' | 'keys' | 'hasPassword' | 'updatedAt'> {
  /** Absent for a user who is invited. */
  readonly passwordHash?: string;
}

/** What can be changed of a user; what is absent stays. */
export type UserChanges = Partial<Pick<UserRecord, 'email' | 'firstName' | 'lastName' | 'flags' | 'props'>> & {
  readonly displayName?: string;
};

export interface UserTable {
  insert(user: NewUser): Promise<void>;
  findById(id: string): Promise<UserRecord | undefined>;
  findByUsername(username: string): Promise<UserRecord | undefined>;
  findByEmail(email: string): Promise<UserRecord | undefined>;
  /** The stored hash; undefined where there is no such user or no password yet. */
  passwordHash(id: string): Promise<string | undefined>;
  setPasswordHash(id: string, passwordHash: string, updatedAt: number): Promise<void>;
  update(id: string, changes: UserChanges, updatedAt: number): Promise<void>;
  remove(id: string): Promise<void>;
  count(): Promise<number>;
  /** Oldest first. */
  list(page: PageRequest): Promise<Page<UserRecord>>;
}

/** What a user name or an e-mail address is compared by. */
export function withoutCase(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

type UserRow = Row & {
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
};

const select = `SELECT seq, id, username, email, first_name, last_name, display_name, flags, props, created_at, updated_at,
  password_hash IS NOT NULL AS has_password,
  (SELECT group_concat(k.id, ' ' ORDER BY k.seq) FROM api_keys k WHERE k.user_id = users.id) AS keys
  FROM users`;

function toRecord(row: UserRow): UserRecord {
  return {
    seq: row.seq,
    id: row.id,
    username: row.username,
    email: row.email,
    firstName: row.first_name,
    lastName: row.last_name,
    displayName: row.display_name,
    flags: JSON.parse(row.flags),
    props: JSON.parse(row.props),
    keys: row.keys === null ? [] : row.keys.split(' '),
    hasPassword: row.has_password === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export function userTable(sql: Sql): UserTable {
  async function findOne(where: string, value: string): Promise<UserRecord | undefined> {
    const row = await sql.get<UserRow>(`${select} WHERE ${where} = ?`, value);
    return row && toRecord(row);
  }

  return {
    async insert(user) {
      await sql.run(
        `INSERT INTO users (id, username, username_key, email, email_key, first_name, last_name, display_name, flags, props,
          password_hash, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        user.id,
        user.username,
        withoutCase(user.username),
        user.email,
        withoutCase(user.email),
        user.firstName,
        user.lastName,
        user.displayName,
        JSON.stringify(user.flags),
        JSON.stringify(user.props),
        user.passwordHash ?? null,
        user.createdAt,
        user.createdAt,
      );
    },
    findById: (id) => findOne('id', id),
    findByUsername: (username) => findOne('username_key', withoutCase(username)),
    findByEmail: (email) => findOne('email_key', withoutCase(email)),
    async passwordHash(id) {
      const row = await sql.get<{ password_hash: string | null }>('SELECT password_hash FROM users WHERE id = ?', id);
      return row?.password_hash ?? undefined;
    },
    async setPasswordHash(id, passwordHash, updatedAt) {
      await sql.run('UPDATE users SET password_hash = ?, updated_at = ? WHERE id = ?', passwordHash, updatedAt, id);
    },
    async update(id, changes, updatedAt) {
      const { email, firstName, lastName, displayName, flags, props } = changes;
      await sql.run(
        `UPDATE users SET email = coalesce(?, email), email_key = coalesce(?, email_key),
          first_name = coalesce(?, first_name), last_name = coalesce(?, last_name),
          display_name = coalesce(?, display_name), flags = coalesce(?, flags), props = coalesce(?, props),
          updated_at = ? WHERE id = ?`,
        email ?? null,
        email === undefined ? null : withoutCase(email),
        firstName ?? null,
        lastName ?? null,
        displayName ?? null,
        flags === undefined ? null : JSON.stringify(flags),
        props === undefined ? null : JSON.stringify(props),
        updatedAt,
        id,
      );
    },
    async remove(id) {
      await sql.run('DELETE FROM users WHERE id = ?', id);
    },
    async count() {
      const row = await sql.get<{ n: number }>('SELECT count(*) AS n FROM users');
      return row?.n ?? 0;
    },
    async list({ limit, after = 0 }) {
      const rows = await sql.all<UserRow>(`${select} WHERE seq > ? ORDER BY seq LIMIT ?`, after, limit + 1);
      const items = rows.slice(0, limit).map(toRecord);
      const last = items.at(-1);
      return rows.length > limit && last ? { items, next: last.seq } : { items };
    },
  };
}
