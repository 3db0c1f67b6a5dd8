// API keys, by a hash of their secret, and which rings their flags name.
import type { Page, PageRequest, Row, Sql } from '../sql.ts';
import { holdsAll, type JsonObject, objectOf, toJson } from './columns.ts';
import { inSlices, readPage } from './page.ts';

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

interface NewApiKey extends Omit<ApiKey, 'seq'> {
  readonly secretHash: string;
  /** The rings that its true flags name, `*` for a wildcard. */
  readonly rings: readonly string[];
}

type ApiKeyChange = Pick<ApiKey, 'active' | 'accountId' | 'flagsText' | 'props' | 'updatedAt'> &
  Pick<NewApiKey, 'rings'>;

/** Of a key what authentication looks at. */
type CredentialRow = Pick<ApiKey, 'id' | 'active' | 'accountId' | 'userId' | 'flagsText'>;

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

// A ring that the flags name is a row of its own, so they weigh more than their length.
const weight = 'seq AS place, octet_length(flags) * 8 + octet_length(props) AS bytes';
const ofAccount = `SELECT ${weight} FROM api_keys WHERE account_id = ? AND seq > ? ORDER BY seq LIMIT ?`;
const ofUser = `SELECT ${weight} FROM api_keys WHERE user_id = ? AND seq > ? ORDER BY seq LIMIT ?`;
const namingRing = `SELECT apikey_seq AS place, 0 AS bytes FROM api_key_rings
  WHERE ring_name = ? AND apikey_seq > ? ORDER BY apikey_seq LIMIT ?`;

/** Calls `look` with each text of flags, but not twice in a row, until it throws. */
type Look = (flagsText: string) => void;

export type ApiKeyTable = ReturnType<typeof apiKeyTable>;

export function apiKeyTable(sql: Sql) {
  async function nameRings(id: string, rings: readonly string[]): Promise<void> {
    for (const name of new Set(rings)) {
      await sql.run(
        'INSERT INTO api_key_rings (apikey_id, ring_name, apikey_seq) SELECT id, ?, seq FROM api_keys WHERE id = ?',
        name,
        id,
      );
    }
  }

  async function lookAt(look: Look, text: string, ...params: (string | number)[]): Promise<void> {
    let before: string | undefined;
    for (const { flags } of await sql.all<{ flags: string }>(text, ...params)) {
      if (flags !== before) look(flags);
      before = flags;
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
    list: (page: PageRequest): Promise<Page<ApiKey>> =>
      readPage(
        sql,
        page,
        fromRow,
        `SELECT ${columns} FROM api_keys WHERE seq > ? ORDER BY seq LIMIT ?`,
        page.after ?? 0,
      ),

    listByAccount: (accountId: string, page: PageRequest): Promise<Page<ApiKey>> =>
      readPage(
        sql,
        page,
        fromRow,
        `SELECT ${columns} FROM api_keys WHERE account_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
        accountId,
        page.after ?? 0,
      ),

    /** Ids of the account's keys and of the users whose they are, a page of keys at a time. */
    async idsOfAccount(accountId: string, page: PageRequest): Promise<Page<Pick<ApiKey, 'id' | 'userId'>>> {
      // Between two pages of one look-up.
      if (page.after !== undefined) await sql.pause();
      return readPage(
        sql,
        page,
        (row: Pick<ApiKeyRow, 'seq' | 'id' | 'user_id'>) => ({ id: row.id, userId: row.user_id ?? undefined }),
        'SELECT seq, id, user_id FROM api_keys WHERE account_id = ? AND seq > ? ORDER BY seq LIMIT ?',
        accountId,
        page.after ?? 0,
      );
    },

    /** Ids of the active keys that the user owns, the oldest `most`. */
    async activeOfUser(userId: string, most: number): Promise<Pick<ApiKey, 'id'>[]> {
      const ids: Pick<ApiKey, 'id'>[] = [];
      await inSlices(sql, ofUser, [userId], async (after, last) => {
        const text = 'SELECT id FROM api_keys WHERE user_id = ? AND seq > ? AND seq <= ? AND active = 1 LIMIT ?';
        ids.push(...(await sql.all<Pick<ApiKeyRow, 'id'>>(text, userId, after, last, most - ids.length)));
        return ids.length >= most;
      });
      return ids;
    },

    /** Keys whose true flags name the ring of that lower-case name; with `wildcard` also those that name every ring. */
    listByRing(ringName: string, wildcard: boolean, page: PageRequest): Promise<Page<ApiKey>> {
      const { after = 0, limit } = page;
      const naming = 'SELECT apikey_seq FROM api_key_rings WHERE ring_name = ? AND apikey_seq > ?';
      return readPage(
        sql,
        page,
        fromRow,
        `SELECT ${columns} FROM api_keys WHERE seq IN (
          SELECT * FROM (${naming} ORDER BY apikey_seq LIMIT ?) UNION SELECT * FROM (${naming} ORDER BY apikey_seq LIMIT ?)
        ) ORDER BY seq LIMIT ?`,
        ringName,
        after,
        limit + 1,
        wildcard ? '*' : ringName,
        after,
        limit + 1,
      );
    },

    /** Looks at the flags of the active keys that the user owns, without the key `exceptId`. */
    async lookAtActiveOfUser(userId: string, exceptId: string, look: Look): Promise<void> {
      const text = 'SELECT flags FROM api_keys WHERE user_id = ? AND seq > ? AND seq <= ? AND active = 1 AND id <> ?';
      await inSlices(sql, ofUser, [userId], (after, last) => lookAt(look, text, userId, after, last, exceptId));
    },

    /** Looks at the flags of the keys of the account, without the key `exceptId`. */
    async lookAtAllOfAccount(accountId: string, exceptId: string, look: Look): Promise<void> {
      const text = 'SELECT flags FROM api_keys WHERE account_id = ? AND seq > ? AND seq <= ? AND id <> ?';
      await inSlices(sql, ofAccount, [accountId], (after, last) =>
        lookAt(look, text, accountId, after, last, exceptId),
      );
    },

    /** Whether a key that lets in holds `*`. */
    async hasHolder(): Promise<boolean> {
      return (await sql.get(`SELECT 1 AS held FROM api_keys WHERE ${holdsAll} AND active = 1 LIMIT 1`)) !== undefined;
    },

    /** Whether an active key other than `exceptId` names that ring. */
    isRingUsed: (ringName: string, exceptId: string): Promise<boolean> =>
      inSlices(sql, namingRing, [ringName], async (after, last) => {
        const row = await sql.get(
          `SELECT 1 AS used FROM api_key_rings r JOIN api_keys k ON k.seq = r.apikey_seq
            WHERE r.ring_name = ? AND r.apikey_seq > ? AND r.apikey_seq <= ? AND k.active = 1 AND k.id <> ? LIMIT 1`,
          ringName,
          after,
          last,
          exceptId,
        );
        return row !== undefined;
      }),

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

    /** Erases all keys of the account; answers how many. */
    async eraseOfAccount(accountId: string): Promise<number> {
      let erased = 0;
      await inSlices(sql, ofAccount, [accountId], async (after, last) => {
        const slice = [accountId, after, last];
        await sql.run(
          `DELETE FROM api_key_rings
            WHERE apikey_id IN (SELECT id FROM api_keys WHERE account_id = ? AND seq > ? AND seq <= ?)`,
          ...slice,
        );
        erased += await sql.run('DELETE FROM api_keys WHERE account_id = ? AND seq > ? AND seq <= ?', ...slice);
      });
      return erased;
    },

    /** Makes the keys that the user owns inactive; answers how many were not. */
    async disableOfUser(userId: string, now: number): Promise<number> {
      let disabled = 0;
      await inSlices(sql, ofUser, [userId], async (after, last) => {
        disabled += await sql.run(
          'UPDATE api_keys SET active = 0, updated_at = ? WHERE user_id = ? AND seq > ? AND seq <= ? AND active = 1',
          now,
          userId,
          after,
          last,
        );
      });
      return disabled;
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
