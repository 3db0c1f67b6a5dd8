// Assets: the current version of each, the versions before it that older headers signed, and who is whose parent.
import { containsJson } from '../contains.ts';
import type { Page, PageRequest, Row, Sql, SqlValue } from '../sql.ts';
import { type JsonObject, objectOf, textsOf, toJson } from './json-column.ts';
import { pageOf } from './page.ts';

/** What a version of an asset says. */
export interface AssetContent {
  readonly data: JsonObject;
  /** Ids, in the order given, none twice. */
  readonly parents: readonly string[];
}

export interface Asset extends AssetContent {
  readonly seq: number;
  readonly id: string;
  readonly ringId: string;
  /** Counts from 1. */
  readonly version: number;
  /** Who made it. */
  readonly apikeyId: string;
  readonly accountId: string | undefined;
  readonly createdAt: number;
}

export type NewAsset = Omit<Asset, 'seq' | 'version'>;

/** All given filters must hold. */
export interface AssetFilter {
  readonly apikeyId?: string;
  readonly accountId?: string;
  readonly ringId?: string;
  /** Has all of these. */
  readonly parents?: readonly string[];
  /** Epoch milliseconds, both inclusive. */
  readonly start?: number;
  readonly end?: number;
  /** Contains this object (deep; arrays and scalars compare whole). */
  readonly data?: JsonObject;
}

interface AssetRow extends Row {
  seq: number;
  id: string;
  ring_id: string;
  version: number;
  data: string;
  parents: string;
  apikey_id: string;
  account_id: string | null;
  created_at: number;
}

/** Rows read at a time where the rest of a filter is checked here. */
const batch = 500;

export type AssetTable = ReturnType<typeof assetTable>;

export function assetTable(sql: Sql) {
  async function nameParents(id: string, parents: readonly string[]): Promise<void> {
    for (const parent of parents) {
      await sql.run(
        'INSERT INTO asset_parents (asset_seq, asset_id, parent_id) SELECT seq, id, ? FROM assets WHERE id = ?',
        parent,
        id,
      );
    }
  }

  /** Rows before `before` that hold what the statement can check, newest first. */
  async function rowsBefore(filter: AssetFilter, before: number, limit: number): Promise<AssetRow[]> {
    const conditions: string[] = [];
    const values: SqlValue[] = [];
    const parent = filter.parents?.[0];
    // With a parent, its list of children is the way in.
    const order = parent === undefined ? 'a.seq' : 'p.asset_seq';
    const where = (condition: string, value: SqlValue | undefined) => {
      if (value === undefined) return;
      conditions.push(condition);
      values.push(value);
    };
    if (parent !== undefined) conditions.push('a.seq = p.asset_seq');
    where('p.parent_id = ?', parent);
    where(`${order} < ?`, before);
    where('a.ring_id = ?', filter.ringId);
    where('a.apikey_id = ?', filter.apikeyId);
    where('a.account_id = ?', filter.accountId);
    where('a.created_at >= ?', filter.start);
    where('a.created_at <= ?', filter.end);
    const from = parent === undefined ? 'assets a' : 'asset_parents p CROSS JOIN assets a';
    const text = `SELECT a.* FROM ${from} WHERE ${conditions.join(' AND ')} ORDER BY ${order} DESC LIMIT ?`;
    return sql.all<AssetRow>(text, ...values, limit);
  }

  return {
    async insert(asset: NewAsset): Promise<void> {
      await sql.run(
        `INSERT INTO assets (id, ring_id, version, data, parents, apikey_id, account_id, created_at)
          VALUES (?, ?, 1, ?, ?, ?, ?, ?)`,
        asset.id,
        asset.ringId,
        toJson(asset.data),
        toJson(asset.parents),
        asset.apikeyId,
        asset.accountId ?? null,
        asset.createdAt,
      );
      await nameParents(asset.id, asset.parents);
      await sql.run(`UPDATE counts SET n = n + 1 WHERE name = 'assets'`);
    },

    /** Makes `content` the next version; the current one is kept for the headers that signed it. */
    async addVersion(current: Asset, content: AssetContent): Promise<void> {
      await sql.run(
        `INSERT INTO asset_versions (asset_id, version, data, parents)
          SELECT id, version, data, parents FROM assets WHERE id = ?`,
        current.id,
      );
      await sql.run(
        'UPDATE assets SET version = ?, data = ?, parents = ? WHERE id = ?',
        current.version + 1,
        toJson(content.data),
        toJson(content.parents),
        current.id,
      );
      if (content.parents === current.parents) return;
      await sql.run('DELETE FROM asset_parents WHERE asset_id = ?', current.id);
      await nameParents(current.id, content.parents);
    },

    async byId(id: string): Promise<Asset | undefined> {
      const row = await sql.get<AssetRow>('SELECT * FROM assets WHERE id = ?', id);
      return row && fromRow(row);
    },

    async exists(id: string): Promise<boolean> {
      return (await sql.get('SELECT 1 AS found FROM assets WHERE id = ?', id)) !== undefined;
    },

    /** A version before the current one. */
    async olderVersion(id: string, version: number): Promise<AssetContent | undefined> {
      const row = await sql.get<{ data: string; parents: string }>(
        'SELECT data, parents FROM asset_versions WHERE asset_id = ? AND version = ?',
        id,
        version,
      );
      return row && { data: objectOf(row.data), parents: textsOf(row.parents) };
    },

    /** Whether one of `ids` is `ancestorId`, or has it among its ancestors. */
    async descendFrom(ids: readonly string[], ancestorId: string): Promise<boolean> {
      const seen = new Set(ids);
      for (const id of seen) {
        if (id === ancestorId) return true;
        const rows = await sql.all<{ parent_id: string }>('SELECT parent_id FROM asset_parents WHERE asset_id = ?', id);
        for (const row of rows) seen.add(row.parent_id);
      }
      return false;
    },

    /** The newest first. */
    async search(filter: AssetFilter, page: PageRequest): Promise<Page<Asset>> {
      const found: Asset[] = [];
      const checkedHere = filter.data !== undefined || (filter.parents?.length ?? 0) > 1;
      const size = checkedHere ? Math.max(batch, page.limit + 1) : page.limit + 1;
      let before = page.after ?? Number.MAX_SAFE_INTEGER;
      while (found.length <= page.limit) {
        const rows = await rowsBefore(filter, before, size);
        for (const row of rows) {
          const asset = fromRow(row);
          if (!checkedHere || holdsRest(asset, filter)) found.push(asset);
        }
        const last = rows.at(-1);
        if (!last || rows.length < size) break;
        before = last.seq;
      }
      return pageOf(found, page.limit);
    },

    async count(): Promise<number> {
      const row = await sql.get<{ n: number }>(`SELECT n FROM counts WHERE name = 'assets'`);
      return row?.n ?? 0;
    },

    /** Erases all versions. Children keep naming it. */
    async erase(id: string): Promise<void> {
      await sql.run('DELETE FROM asset_parents WHERE asset_id = ?', id);
      await sql.run('DELETE FROM asset_versions WHERE asset_id = ?', id);
      const erased = await sql.run('DELETE FROM assets WHERE id = ?', id);
      await sql.run(`UPDATE counts SET n = n - ? WHERE name = 'assets'`, erased);
    },
  };
}

/** What the statement leaves to check: the parents after the first, and the data. */
function holdsRest(asset: Asset, filter: AssetFilter): boolean {
  for (const parent of filter.parents ?? []) if (!asset.parents.includes(parent)) return false;
  return filter.data === undefined || containsJson(asset.data, filter.data);
}

function fromRow(row: AssetRow): Asset {
  return {
    seq: row.seq,
    id: row.id,
    ringId: row.ring_id,
    version: row.version,
    data: objectOf(row.data),
    parents: textsOf(row.parents),
    apikeyId: row.apikey_id,
    accountId: row.account_id ?? undefined,
    createdAt: row.created_at,
  };
}
