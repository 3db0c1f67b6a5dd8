// API keys, by a hash of their secret, and which rings their flags name.
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { type JsonObject, objectOf, toJson } from './json-column.ts';
import { pageOf } from './page.ts';

export interface ApiKey {
  readonly seq: number;
  readonly id: string;
  readonly active: boolean;
  readonly accountId: string;
  /** The user that it belongs to. */
  readonly userId: string | undefined;
  /** JSON text of the flags as they were given: compiled flags are kept by it. */
  readonly flagsText: string;
  readonly props: JsonObject;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface NewApiKey extends Omit<ApiKey, 'seq'> {
  readonly secretHash: string;
  /** The rings that its true flags name, `*` for a wildcard. */
  readonly rings: readonly string[];
}

export type ApiKeyChange = Pick<ApiKey, 'active' | 'accountId' | 'flagsText' | 'props' | 'updatedAt'> &
  Pick<NewApiKey, 'rings'>;

/** Of a key what authentication looks at. */
export type CredentialRow = Pick<ApiKey, 'id' | 'active' | 'accountId' | 'userId' | 'flagsText'>;

interface ApiKeyRow extends Row {
  seq: number;
  id: string;
  active: number;
  account_id: string;
  user_id: string | null;
  flags: string;
  props: string;
  created_at: number;
  updated_at: number;
}

const columns = 'seq, id, active, account_id, user_id, flags, props, created_at, updated_at';

export type ApiKeyTable = ReturnType<typeof apiKeyTable>;

export function apiKeyTable(sql: Sql) {
  async function nameRings(id: string, rings: readonly string[]): Promise<void> {
    for (const name of new Set(rings)) {
      await sql.run('INSERT INTO api_key_rings (apikey_id, ring_name) VALUES (?, ?)', id, name);
    }
  }

  return {
    async insert(key: NewApiKey): Promise<void> {
      await sql.run(
        `INSERT INTO api_keys (id, secret_hash, active, account_id, user_id, flags, props, created_at, updated_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        key.id,
        key.secretHash,
        key.active ? 1 : 0,
        key.accountId,
        key.userId ?? null,
        key.flagsText,
        toJson(key.props),
        key.createdAt,
        key.updatedAt,
      );
      await nameRings(key.id, key.rings);
    },

    /** The key behind a bearer secret, as far as authentication looks at it. */
    credential: (secretHash: string): Promise<CredentialRow | undefined> =>
      sql.remember('api_keys', secretHash, async () => {
        const row = await sql.get<Pick<ApiKeyRow, 'id' | 'active' | 'account_id' | 'user_id' | 'flags'>>(
          'SELECT id, active, account_id, user_id, flags FROM api_keys WHERE secret_hash = ?',
          secretHash,
        );
        return (
          row && {
            id: row.id,
            active: row.active === 1,
            accountId: row.account_id,
            userId: row.user_id ?? undefined,
            flagsText: row.flags,
          }
        );
      }),

    async byId(id: string): Promise<ApiKey | undefined> {
      const row = await sql.get<ApiKeyRow>(`SELECT ${columns} FROM api_keys WHERE id = ?`, id);
      return row && fromRow(row);
    },

    async bySecretHash(secretHash: string): Promise<ApiKey | undefined> {
      const row = await sql.get<ApiKeyRow>(`SELECT ${columns} FROM api_keys WHERE secret_hash = ?`, secretHash);
      return row && fromRow(row);
    },

    /** The oldest first. */
    async list(page: PageRequest): Promise<Page<ApiKey>> {
      const rows = await sql.all<ApiKeyRow>(
        `SELECT ${columns} FROM api_keys WHERE seq > ? ORDER BY seq LIMIT ?`,
        page.after ?? 0,
        page.limit + 1,
      );
      return pageOf(rows.map(fromRow), page.limit);
    },

    async listByAccount(accountId: string, page: PageRequest): Promise<Page<ApiKey>> {
      const rows = await sql.all<ApiKeyRow>(
        `SELECT ${columns} FROM api_keys WHERE account_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
        accountId,
        page.after ?? 0,
        page.limit + 1,
      );
      return pageOf(rows.map(fromRow), page.limit);
    },

    /** Keys whose true flags name the ring of that lower-case name; with `wildcard` also those that name every ring. */
    async listByRing(ringName: string, wildcard: boolean, page: PageRequest): Promise<Page<ApiKey>> {
      const rows = await sql.all<ApiKeyRow>(
        `SELECT ${columns} FROM api_keys WHERE seq > ?
          AND id IN (SELECT apikey_id FROM api_key_rings WHERE ring_name IN (?, ?)) ORDER BY seq LIMIT ?`,
        page.after ?? 0,
        ringName,
        wildcard ? '*' : ringName,
        page.limit + 1,
      );
      return pageOf(rows.map(fromRow), page.limit);
    },

    /** Whether an active key other than `exceptId` names that ring. */
    async isRingUsed(ringName: string, exceptId: string): Promise<boolean> {
      const row = await sql.get(
        `SELECT 1 AS used FROM api_key_rings r JOIN api_keys k ON k.id = r.apikey_id
          WHERE r.ring_name = ? AND k.active = 1 AND k.id <> ? LIMIT 1`,
        ringName,
        exceptId,
      );
      return row !== undefined;
    },

    async count(): Promise<number> {
      const row = await sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM api_keys');
      return row?.n ?? 0;
    },

    async update(id: string, change: ApiKeyChange): Promise<void> {
      await sql.run(
        'UPDATE api_keys SET active = ?, account_id = ?, flags = ?, props = ?, updated_at = ? WHERE id = ?',
        change.active ? 1 : 0,
        change.accountId,
        change.flagsText,
        toJson(change.props),
        change.updatedAt,
        id,
      );
      await sql.run('DELETE FROM api_key_rings WHERE apikey_id = ?', id);
      await nameRings(id, change.rings);
    },

    async erase(id: string): Promise<void> {
      await sql.run('DELETE FROM api_key_rings WHERE apikey_id = ?', id);
      await sql.run('DELETE FROM api_keys WHERE id = ?', id);
    },
  };
}

/** The flags as they were given. */
export function flagsOfRow(key: Pick<ApiKey, 'flagsText'>): JsonObject {
  return objectOf(key.flagsText);
}

function fromRow(row: ApiKeyRow): ApiKey {
  return {
    seq: row.seq,
    id: row.id,
    active: row.active === 1,
    accountId: row.account_id,
    userId: row.user_id ?? undefined,
    flagsText: row.flags,
    props: objectOf(row.props),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
