// The table of API keys, found by a hash of their secret, and the rings that their flags name.
import { type AddressSet, addressSet } from '../../model/addresses.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Page, PageRequest, Row, Slices, Sql } from '../sql.ts';
import { holdsAll, objectOf, textsOf, toJson } from './columns.ts';
import { inSlices, readPart, sliceRows } from './page.ts';
import type { ProofKind } from './proofs.ts';
import { wayInTable } from './ways-in.ts';

export interface ApiKey {
  readonly seq: number;
  readonly id: string;
  /** A display name; empty if none was given. */
  readonly name: string;
  readonly active: boolean;
  /** From then on the key counts as inactive. */
  readonly expiresAt: number | undefined;
  /** Canonical addresses and blocks that it may be used from; empty = any. */
  readonly addresses: readonly string[];
  readonly accountId: string;
  /** The user who owns it. */
  readonly userId: string | undefined;
  /** JSON text of the flags as given; also the cache key of compiled flags. */
  readonly flagsText: string;
  readonly props: JsonObject;
  readonly createdAt: number;
  /** The creator's id; undefined if it was not recorded. */
  readonly createdBy: string | undefined;
  readonly updatedAt: number;
  /** Accurate to a minute; undefined before the first use. */
  readonly usedAt: number | undefined;
  /** Whether it has a secret; without one, it is known by its other proofs alone. */
  readonly hasSecret: boolean;
}

interface NewApiKey extends Omit<ApiKey, 'seq' | 'usedAt' | 'hasSecret'> {
  /** Undefined for a key without a secret. */
  readonly secretHash: string | undefined;
  /** The rings that its true flags name, `*` for a wildcard. */
  readonly rings: readonly string[];
}

interface ApiKeyChange
  extends Omit<NewApiKey, 'id' | 'secretHash' | 'createdAt' | 'createdBy' | 'flagsText' | 'rings'> {
  /** Undefined to leave them as they are. */
  readonly flags: Pick<NewApiKey, 'flagsText' | 'rings'> | undefined;
}

/** The part of a key that authentication needs. */
export interface CredentialRow
  extends Pick<ApiKey, 'id' | 'active' | 'expiresAt' | 'accountId' | 'userId' | 'flagsText'> {
  /** Undefined = any. */
  readonly addresses: AddressSet | undefined;
}

/** How usable API keys hold `*`: at least one without expiry and address limits, only others, or none. */
export type Holding = 'for good' | 'within limits' | 'not';

interface ApiKeyRow extends Row {
  seq: number;
  id: string;
  name: string;
  active: number;
  expires_at: number | null;
  addresses: string;
  account_id: string;
  user_id: string | null;
  flags: string;
  props: string;
  created_at: number;
  created_by: string | null;
  updated_at: number;
  used_at: number | null;
  has_secret: number;
}

type KnownColumns = Pick<ApiKeyRow, 'id' | 'active' | 'expires_at' | 'addresses' | 'account_id' | 'user_id' | 'flags'>;

/** Stands in the column of a key without a secret; no hash has its first character. */
function noSecret(id: string): string {
  return `!${id}`;
}
const hasSecret = `secret_hash NOT GLOB '!*'`;

const select = `SELECT seq, id, name, active, expires_at, addresses, account_id, user_id, flags, props, created_at,
  created_by, updated_at, ${hasSecret} AS has_secret,
  (SELECT used_at FROM api_key_uses u WHERE u.apikey_id = api_keys.id) AS used_at FROM api_keys`;

const known = 'SELECT id, active, expires_at, addresses, account_id, user_id, flags FROM api_keys';

/** Milliseconds between two records of a key's use. */
const useNoted = 60_000;

interface NotedUse extends Row {
  used_at: number;
}

/** Absolute difference, so that a clock that was set back is followed. */
function isNoted(noted: NotedUse | undefined, now: number): boolean {
  return noted !== undefined && Math.abs(now - noted.used_at) < useNoted;
}

// Each ring that the flags name is a row of its own, so flags weigh more than their length.
const weight = 'seq AS place, octet_length(flags) * 8 + octet_length(props) AS bytes';
const ofAccount = `SELECT ${weight} FROM api_keys WHERE account_id = ? AND seq > ? ORDER BY seq LIMIT ?`;
const ofUser = `SELECT ${weight} FROM api_keys WHERE user_id = ? AND seq > ? ORDER BY seq LIMIT ?`;
const namingRing = `SELECT apikey_seq AS place, 0 AS bytes FROM api_key_rings
  WHERE ring_name = ? AND apikey_seq > ? ORDER BY apikey_seq LIMIT ?`;

/** Called with each flags text, though not twice in a row; throws to stop. */
type Look = (flagsText: string) => void;

export type ApiKeyTable = ReturnType<typeof apiKeyTable>;

export function apiKeyTable(sql: Sql) {
  const waysIn = wayInTable(sql);

  function nameRings(id: string, rings: readonly string[]): void {
    const names = [...new Set(rings)];
    for (let at = 0; at < names.length; at += sliceRows) {
      sql.run(
        `INSERT INTO api_key_rings (apikey_id, ring_name, apikey_seq)
          SELECT k.id, ring.value, k.seq FROM json_each(?) AS ring CROSS JOIN api_keys k WHERE k.id = ?`,
        JSON.stringify(names.slice(at, at + sliceRows)),
        id,
      );
    }
  }

  function lookAt(look: Look, text: string, ...params: (string | number)[]): void {
    let before: string | undefined;
    for (const { flags } of sql.all<{ flags: string }>(text, ...params)) {
      if (flags !== before) look(flags);
      before = flags;
    }
  }

  function note(id: string, now: number): void {
    sql.run(
      `INSERT INTO api_key_uses (apikey_id, used_at) VALUES (?, ?)
        ON CONFLICT (apikey_id) DO UPDATE SET used_at = excluded.used_at`,
      id,
      now,
    );
  }

  /** With everything that depends on them. */
  function eraseProofs(id: string): void {
    for (const proof of sql.all<{ id: string }>('SELECT id FROM api_key_proofs WHERE apikey_id = ?', id)) {
      sql.run('DELETE FROM api_key_proof_uses WHERE proof_id = ?', proof.id);
    }
    sql.run('DELETE FROM workload_sessions WHERE apikey_id = ?', id);
    sql.run('DELETE FROM api_key_proofs WHERE apikey_id = ?', id);
  }

  return {
    insert(key: NewApiKey): void {
      sql.run(
        `INSERT INTO api_keys (id, secret_hash, name, active, expires_at, addresses, account_id, user_id, flags, props,
          created_at, created_by, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        key.id,
        key.secretHash ?? noSecret(key.id),
        key.name,
        key.active ? 1 : 0,
        key.expiresAt ?? null,
        toJson(key.addresses),
        key.accountId,
        key.userId ?? null,
        key.flagsText,
        toJson(key.props),
        key.createdAt,
        key.createdBy ?? null,
        key.updatedAt,
      );
      nameRings(key.id, key.rings);
    },

    /** The key for a bearer secret's hash, with the fields that authentication needs. */
    credential: (secretHash: string): CredentialRow | undefined =>
      sql.remember('api_keys', secretHash, () => {
        const row = sql.get<KnownColumns>(`${known} WHERE secret_hash = ?`, secretHash);
        return row && credentialRow(row);
      }),

    /** The same for a key's id. */
    credentialById: (id: string): CredentialRow | undefined =>
      sql.remember('api_keys', id, () => {
        const row = sql.get<KnownColumns>(`${known} WHERE id = ?`, id);
        return row && credentialRow(row);
      }),

    /** Ids of the keys of that name which programs can log in as by such a proof, oldest first, at most `most`. */
    idsToLogInByName: (name: string, kind: ProofKind, now: number, most: number): string[] =>
      sql
        .all<{ id: string }>(
          `SELECT id FROM api_keys k WHERE name = ? AND name <> '' AND active = 1
            AND (expires_at IS NULL OR expires_at > ?) AND EXISTS
            (SELECT 1 FROM api_key_proofs p WHERE p.apikey_id = k.id AND p.kind = ? AND p.active = 1)
            ORDER BY seq LIMIT ?`,
          name,
          now,
          kind,
          most,
        )
        .map(({ id }) => id),

    /** Ids of the keys of that name, oldest first, at most `most`. */
    idsByName: (name: string, most: number): string[] =>
      sql
        .all<{ id: string }>(`SELECT id FROM api_keys WHERE name = ? AND name <> '' ORDER BY seq LIMIT ?`, name, most)
        .map(({ id }) => id),

    /** Id of the newest key of that name which has such a proof, whether or not either can be used. */
    lastIdByName: (name: string, kind: ProofKind): string | undefined =>
      sql.get<{ id: string }>(
        `SELECT id FROM api_keys k WHERE name = ? AND name <> '' AND EXISTS
          (SELECT 1 FROM api_key_proofs p WHERE p.apikey_id = k.id AND p.kind = ?) ORDER BY seq DESC LIMIT 1`,
        name,
        kind,
      )?.id,

    /** Gives the key a secret in place of the one that it has, or takes it away. */
    setSecret(id: string, secretHash: string | undefined): void {
      sql.run('UPDATE api_keys SET secret_hash = ? WHERE id = ?', secretHash ?? noSecret(id), id);
    },

    /** Records a use of the key, once a minute. */
    noteUse(id: string, now: number): void {
      const noted = sql.remember('api_key_uses', id, () =>
        sql.get<NotedUse>('SELECT used_at FROM api_key_uses WHERE apikey_id = ?', id),
      );
      if (!isNoted(noted, now)) note(id, now);
    },

    byId(id: string): ApiKey | undefined {
      const row = sql.get<ApiKeyRow>(`${select} WHERE id = ?`, id);
      return row && fromRow(row);
    },

    bySecretHash(secretHash: string): ApiKey | undefined {
      const row = sql.get<ApiKeyRow>(`${select} WHERE secret_hash = ?`, secretHash);
      return row && fromRow(row);
    },

    /** Oldest first, each mapped by `answer`. */
    list: <T>(page: PageRequest, answer: (key: ApiKey) => T): Page<T> =>
      readPart(sql, page, (row: ApiKeyRow) => answer(fromRow(row)), `${select} WHERE seq > ? ORDER BY seq LIMIT ?`),

    listByAccount: <T>(accountId: string, page: PageRequest, answer: (key: ApiKey) => T): Page<T> =>
      readPart(
        sql,
        page,
        (row: ApiKeyRow) => answer(fromRow(row)),
        `${select} WHERE account_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
        accountId,
      ),

    /** One page of the account's keys: id, name and owning user. */
    idsOfAccount(accountId: string, page: PageRequest): Page<Pick<ApiKey, 'id' | 'name' | 'userId'>> {
      return readPart(
        sql,
        page,
        ({ id, name, user_id }: Pick<ApiKeyRow, 'seq' | 'id' | 'name' | 'user_id'>) => ({
          id,
          name,
          userId: user_id ?? undefined,
        }),
        'SELECT seq, id, name, user_id FROM api_keys WHERE account_id = ? AND seq > ? ORDER BY seq LIMIT ?',
        accountId,
      );
    },

    /** Ids and names of the active keys that the user owns, oldest first, at most `most`. */
    *activeOfUser(userId: string, most: number): Slices<Pick<ApiKey, 'id' | 'name'>[]> {
      const keys: Pick<ApiKey, 'id' | 'name'>[] = [];
      yield* inSlices(sql, ofUser, [userId], (after, last) => {
        const text = 'SELECT id, name FROM api_keys WHERE user_id = ? AND seq > ? AND seq <= ? AND active = 1 LIMIT ?';
        keys.push(...sql.all<Pick<ApiKeyRow, 'id' | 'name'>>(text, userId, after, last, most - keys.length));
        return keys.length >= most;
      });
      return keys;
    },

    /** Keys whose true flags name the ring of this lower-case name; with `wildcard` also keys that name every ring. */
    listByRing<T>(ringName: string, wildcard: boolean, page: PageRequest, answer: (key: ApiKey) => T): Page<T> {
      const first = (name: string): string =>
        `SELECT * FROM (SELECT apikey_seq FROM api_key_rings WHERE ring_name = ${name} AND apikey_seq > ?3
          ORDER BY apikey_seq LIMIT ?4)`;
      return readPart(
        sql,
        page,
        (row: ApiKeyRow) => answer(fromRow(row)),
        `${select} WHERE seq IN (${first('?1')} UNION ${first('?2')}) ORDER BY seq LIMIT ?4`,
        ringName,
        wildcard ? '*' : ringName,
      );
    },

    /** Passes the flags of the user's active keys to `look`, except those of key `exceptId`. */
    *lookAtActiveOfUser(userId: string, exceptId: string | undefined, look: Look): Slices<void> {
      const text = 'SELECT flags FROM api_keys WHERE user_id = ? AND seq > ? AND seq <= ? AND active = 1 AND id <> ?';
      yield* inSlices(sql, ofUser, [userId], (after, last) => lookAt(look, text, userId, after, last, exceptId ?? ''));
    },

    /** Passes the flags of the account's keys to `look`, except those of key `exceptId`. */
    *lookAtAllOfAccount(accountId: string, exceptId: string, look: Look): Slices<void> {
      const text = 'SELECT flags FROM api_keys WHERE account_id = ? AND seq > ? AND seq <= ? AND id <> ?';
      yield* inSlices(sql, ofAccount, [accountId], (after, last) =>
        lookAt(look, text, accountId, after, last, exceptId),
      );
    },

    /** Passes the flags of the account's active keys to `look`. */
    *lookAtActiveOfAccount(accountId: string, look: Look): Slices<void> {
      const text = 'SELECT flags FROM api_keys WHERE account_id = ? AND seq > ? AND seq <= ? AND active = 1';
      yield* inSlices(sql, ofAccount, [accountId], (after, last) => lookAt(look, text, accountId, after, last));
    },

    /** How usable keys hold `*`. */
    holding(now: number): Holding {
      const held = `SELECT 1 AS held FROM api_keys WHERE ${holdsAll} AND active = 1`;
      if (sql.get(`${held} AND expires_at IS NULL AND addresses = '[]' AND ${hasSecret} LIMIT 1`)) return 'for good';
      const lasting = '(expires_at IS NULL OR expires_at > ?)';
      // Another proof depends on others, such as an issuer.
      const proved = `(${hasSecret} OR EXISTS
        (SELECT 1 FROM api_key_proofs p WHERE p.apikey_id = api_keys.id AND p.active = 1))`;
      return sql.get(`${held} AND ${lasting} AND ${proved} LIMIT 1`, now) ? 'within limits' : 'not';
    },

    /** Whether a usable key other than `exceptId` names that ring. */
    isRingUsed: (ringName: string, exceptId: string, now: number): Slices<boolean> =>
      inSlices(sql, namingRing, [ringName], (after, last) => {
        const row = sql.get(
          `SELECT 1 AS used FROM api_key_rings r JOIN api_keys k ON k.seq = r.apikey_seq
            WHERE r.ring_name = ? AND r.apikey_seq > ? AND r.apikey_seq <= ? AND k.active = 1 AND k.id <> ?
              AND (k.expires_at IS NULL OR k.expires_at > ?) LIMIT 1`,
          ringName,
          after,
          last,
          exceptId,
          now,
        );
        return row !== undefined;
      }),

    /** The number of keys that the user owns, counted up to `most`. */
    countOfUser(userId: string, most: number): number {
      const text = 'SELECT COUNT(*) AS n FROM (SELECT 1 FROM api_keys WHERE user_id = ? LIMIT ?)';
      return sql.get<{ n: number }>(text, userId, most)?.n ?? 0;
    },

    count(): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM api_keys');
      return row?.n ?? 0;
    },

    update(id: string, change: ApiKeyChange): void {
      sql.run(
        `UPDATE api_keys SET name = ?, active = ?, expires_at = ?, addresses = ?, account_id = ?, user_id = ?, props = ?,
          updated_at = ? WHERE id = ?`,
        change.name,
        change.active ? 1 : 0,
        change.expiresAt ?? null,
        toJson(change.addresses),
        change.accountId,
        change.userId ?? null,
        toJson(change.props),
        change.updatedAt,
        id,
      );
      if (!change.flags) return;
      sql.run('UPDATE api_keys SET flags = ? WHERE id = ?', change.flags.flagsText, id);
      sql.run('DELETE FROM api_key_rings WHERE apikey_id = ?', id);
      nameRings(id, change.flags.rings);
    },

    /** Erases all keys of the account; returns how many. */
    *eraseOfAccount(accountId: string): Slices<number> {
      let erased = 0;
      yield* inSlices(sql, ofAccount, [accountId], (after, last) => {
        const slice = [accountId, after, last];
        const theirs = 'apikey_id IN (SELECT id FROM api_keys WHERE account_id = ? AND seq > ? AND seq <= ?)';
        sql.run(`DELETE FROM api_key_rings WHERE ${theirs}`, ...slice);
        sql.run(`DELETE FROM api_key_uses WHERE ${theirs}`, ...slice);
        const proved = `SELECT DISTINCT apikey_id AS id FROM api_key_proofs WHERE ${theirs}`;
        for (const { id } of sql.all<{ id: string }>(proved, ...slice)) eraseProofs(id);
        const gone = 'SELECT id FROM api_keys WHERE account_id = ? AND seq > ? AND seq <= ?';
        for (const { id } of sql.all<{ id: string }>(gone, ...slice)) waysIn.forget(id);
        erased += sql.run('DELETE FROM api_keys WHERE account_id = ? AND seq > ? AND seq <= ?', ...slice);
      });
      return erased;
    },

    /** Makes the user's keys inactive; returns how many were active. */
    *disableOfUser(userId: string, now: number): Slices<number> {
      let disabled = 0;
      yield* inSlices(sql, ofUser, [userId], (after, last) => {
        disabled += sql.run(
          'UPDATE api_keys SET active = 0, updated_at = ? WHERE user_id = ? AND seq > ? AND seq <= ? AND active = 1',
          now,
          userId,
          after,
          last,
        );
      });
      return disabled;
    },

    erase(id: string): void {
      sql.run('DELETE FROM api_key_rings WHERE apikey_id = ?', id);
      sql.run('DELETE FROM api_key_uses WHERE apikey_id = ?', id);
      eraseProofs(id);
      sql.run('DELETE FROM api_keys WHERE id = ?', id);
      waysIn.forget(id);
    },
  };
}

function credentialRow(row: KnownColumns): CredentialRow {
  const addresses = textsOf(row.addresses);
  return {
    id: row.id,
    active: row.active === 1,
    expiresAt: row.expires_at ?? undefined,
    addresses: addresses.length === 0 ? undefined : addressSet(addresses),
    accountId: row.account_id,
    userId: row.user_id ?? undefined,
    flagsText: row.flags,
  };
}

/** The flags as given. */
export function flagsOfRow(key: Pick<ApiKey, 'flagsText'>): JsonObject {
  return objectOf(key.flagsText);
}

function fromRow(row: ApiKeyRow): ApiKey {
  return {
    seq: row.seq,
    id: row.id,
    name: row.name,
    active: row.active === 1,
    expiresAt: row.expires_at ?? undefined,
    addresses: textsOf(row.addresses),
    accountId: row.account_id,
    userId: row.user_id ?? undefined,
    flagsText: row.flags,
    props: objectOf(row.props),
    createdAt: row.created_at,
    createdBy: row.created_by ?? undefined,
    updatedAt: row.updated_at,
    usedAt: row.used_at ?? undefined,
    hasSecret: row.has_secret === 1,
  };
}
