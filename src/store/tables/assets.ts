// The table of assets: the current version of each, the earlier versions that older headers signed, and the parent
// links.

import type { JsonObject } from '../../model/json.ts';
import { containing, isJsonObject } from '../../model/json.ts';
import type { Row, Slices, Sql, SqlValue } from '../sql.ts';
import { objectOf, textsOf, toJson } from './columns.ts';
import { endOfSlice, inSlices } from './page.ts';

/** The content of one version of an asset. */
export interface AssetContent {
  readonly data: JsonObject;
  /** Ids, in the given order, without duplicates. */
  readonly parents: readonly string[];
}

export interface Asset extends AssetContent {
  readonly seq: number;
  readonly id: string;
  readonly ringId: string;
  /** Counts from 1. */
  readonly version: number;
  /** The key that made the asset. */
  readonly apikeyId: string;
  readonly accountId: string | undefined;
  readonly createdAt: number;
}

type NewAsset = Omit<Asset, 'seq' | 'version'>;

/** All given filters must hold. */
interface AssetFilter {
  readonly apikeyId?: string;
  readonly accountId?: string;
  readonly ringId?: string;
  /** Ids that must all be among the parents. */
  readonly parents?: readonly string[];
  /** Epoch milliseconds, both inclusive. */
  readonly start?: number;
  readonly end?: number;
  /** An object that the data must contain (deep; arrays and scalars compare whole). */
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

/** The result of one step of a search, newest first; the next step continues at `before`, absent at the end. */
interface AssetsFound {
  readonly found: readonly Asset[];
  readonly before: number | undefined;
}

/** Maximum of assets that one step of a search examines. */
const longestLook = 200;
/** Maximum of parent links that are followed, in each direction: some 40 ms. */
const mostFollowed = 10_000;

/** Counted beside the table, since a statement for each asset costs as much as a quarter of its insertion. */
const countMore = 'UPDATE counts SET n = n + ? WHERE name = ?';

export type AssetTable = ReturnType<typeof assetTable>;

export function assetTable(sql: Sql) {
  function nameParents(id: string, parents: readonly string[]): void {
    for (const parent of parents) {
      sql.run(
        'INSERT INTO asset_parents (asset_seq, asset_id, parent_id) SELECT seq, id, ? FROM assets WHERE id = ?',
        parent,
        id,
      );
    }
  }

  function counted(name: 'assets' | 'asset_versions'): number {
    const row = sql.get<{ n: number }>('SELECT n FROM counts WHERE name = ?', name);
    return row ? row.n + (sql.counted(countMore, name)?.sum ?? 0) : 0;
  }

  /** Follows parent links from `start` in one direction. */
  function reached(
    start: readonly string[],
    step: string,
    isSought: (id: string) => boolean,
  ): 'found' | 'not there' | 'too many' {
    const seen = new Set(start);
    if (start.some(isSought)) return 'found';
    let next = [...start];
    for (let left = mostFollowed; next.length > 0; ) {
      const ends = sql.all<{ id: string }>(step, toJson(next), left + 1);
      // A statement costs about as much as three more links.
      left -= ends.length + 3;
      if (left < 0) return 'too many';
      next = [];
      for (const { id } of ends) {
        if (seen.has(id)) continue;
        if (isSought(id)) return 'found';
        seen.add(id);
        next.push(id);
      }
    }
    return 'not there';
  }

  return {
    insert(asset: NewAsset): void {
      sql.run(
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
      nameParents(asset.id, asset.parents);
      sql.count(countMore, 'assets');
      sql.count(countMore, 'asset_versions');
    },

    /** Makes `content` the next version; the current one is kept for the headers that signed it. */
    addVersion(current: Asset, content: AssetContent): void {
      sql.run(
        `INSERT INTO asset_versions (asset_id, version, data, parents)
          SELECT id, version, data, parents FROM assets WHERE id = ?`,
        current.id,
      );
      sql.count(countMore, 'asset_versions');
      sql.run(
        'UPDATE assets SET version = ?, data = ?, parents = ? WHERE id = ?',
        current.version + 1,
        toJson(content.data),
        toJson(content.parents),
        current.id,
      );
      if (content.parents === current.parents) return;
      sql.run('DELETE FROM asset_parents WHERE asset_id = ?', current.id);
      nameParents(current.id, content.parents);
    },

    byId(id: string): Asset | undefined {
      const row = sql.get<AssetRow>('SELECT * FROM assets WHERE id = ?', id);
      return row && fromRow(row);
    },

    exists(id: string): boolean {
      return sql.get('SELECT 1 AS found FROM assets WHERE id = ?', id) !== undefined;
    },

    /** An earlier version. */
    olderVersion(id: string, version: number): AssetContent | undefined {
      const row = sql.get<{ data: string; parents: string }>(
        'SELECT data, parents FROM asset_versions WHERE asset_id = ? AND version = ?',
        id,
        version,
      );
      return row && { data: objectOf(row.data), parents: textsOf(row.parents) };
    },

    /**
     * Whether one of `ids` is `ancestorId` or descends from it; undefined if that asset has too many descendants, and
     * `ids` too many ancestors, to check. Few assets that get new parents have any descendants at all.
     */
    descendFrom(ids: readonly string[], ancestorId: string): boolean | undefined {
      const sought = new Set(ids);
      const children =
        'SELECT p.asset_id AS id FROM json_each(?) CROSS JOIN asset_parents p ON p.parent_id = value LIMIT ?';
      const down = reached([ancestorId], children, (id) => sought.has(id));
      if (down !== 'too many') return down === 'found';
      const parents =
        'SELECT p.parent_id AS id FROM json_each(?) CROSS JOIN asset_parents p ON p.asset_id = value LIMIT ?';
      const up = reached(ids, parents, (id) => id === ancestorId);
      return up === 'too many' ? undefined : up === 'found';
    },

    /**
     * One step of a search: examines up to about `most` assets older than `before` (default: from the newest on) and
     * returns those that match. A step is short; between the steps of a search others have their turn.
     */
    look(search: AssetSearch, before: number | undefined, most: number): AssetsFound {
      const { from, order, way, rest, holds } = search;
      const start = before ?? Number.MAX_SAFE_INTEGER;
      const end = endOfSlice(
        sql,
        `SELECT ${order} AS place, octet_length(a.data) + octet_length(a.parents) AS bytes FROM ${from}
          WHERE ${way.conditions} AND ${order} < ? ORDER BY ${order} DESC LIMIT ?`,
        way.values,
        start,
        Math.min(longestLook, most),
      );
      if (end === undefined) return { found: [], before: undefined };
      const rows = sql.all<AssetRow>(
        `SELECT a.* FROM ${from} WHERE ${way.conditions} AND ${order} < ? AND ${order} >= ? AND ${rest.conditions}
          ORDER BY ${order} DESC`,
        ...way.values,
        start,
        end,
        ...rest.values,
      );
      const found = rows.map(fromRow);
      return { found: holds ? found.filter(holds) : found, before: end };
    },

    count: (): number => counted('assets'),

    /** Number of versions of all assets, current and earlier. */
    countVersions: (): number => counted('asset_versions'),

    /** Erases all versions. Children keep naming the asset as their parent. */
    *erase(id: string): Slices<void> {
      sql.run('DELETE FROM asset_parents WHERE asset_id = ?', id);
      let older = 0;
      yield* inSlices(sql, olderOf, [id], (after, last) => {
        const text = 'DELETE FROM asset_versions WHERE asset_id = ? AND version > ? AND version <= ?';
        older += sql.run(text, id, after, last);
      });
      const erased = sql.run('DELETE FROM assets WHERE id = ?', id);
      sql.run(`UPDATE counts SET n = n - ? WHERE name = 'assets'`, erased);
      sql.run(`UPDATE counts SET n = n - ? WHERE name = 'asset_versions'`, erased + older);
    },
  };
}

const olderOf = `SELECT version AS place, octet_length(data) AS bytes FROM asset_versions
  WHERE asset_id = ? AND version > ? ORDER BY version LIMIT ?`;

/** A filter as SQL: the conditions that an index answers in order, and those checked on each asset found that way. */
interface AssetSearch {
  readonly from: string;
  readonly order: string;
  readonly way: Conditions;
  readonly rest: Conditions;
  readonly holds: ((asset: Asset) => boolean) | undefined;
}

interface Conditions {
  readonly conditions: string;
  readonly values: readonly SqlValue[];
}

/** Prepares a filter, once for all steps of a search. */
export function assetSearch(filter: AssetFilter): AssetSearch {
  const parent = filter.parents?.[0];
  const same = [
    ['ring_id', filter.ringId],
    ['apikey_id', filter.apikeyId],
    ['account_id', filter.accountId],
  ] as const;
  // With a parent given, its list of children is the index to use.
  const listed = parent === undefined ? same.find(([, value]) => value !== undefined)?.[0] : undefined;
  const way = same.filter(([name]) => name === listed).map(([name, value]) => [`a.${name} = ?`, value] as const);
  const rest = [
    // The plus keeps SQLite from choosing the index of this column.
    ...same.filter(([name]) => name !== listed).map(([name, value]) => [`+a.${name} = ?`, value] as const),
    ['+a.created_at >= ?', filter.start] as const,
    ['+a.created_at <= ?', filter.end] as const,
    ...needlesOf(filter.data ?? {}).map((needle) => ['instr(a.data, ?) > 0', needle] as const),
  ];
  const holds = restOf(filter);
  if (parent === undefined) return { from: 'assets a', order: 'a.seq', way: joined(way), rest: joined(rest), holds };
  const from = 'asset_parents p CROSS JOIN assets a';
  const children = joined([['a.seq = p.asset_seq AND p.parent_id = ?', parent]]);
  return { from, order: 'p.asset_seq', way: children, rest: joined(rest), holds };
}

const mostNeedles = 2;
/** Searching for a long text that nearly matches at every position of another long one would take far too long. */
const longestNeedle = 64;

/** Texts that the JSON of every object containing `wanted` includes. They spare the parsing of most others. */
function needlesOf(wanted: JsonObject): string[] {
  const needles: string[] = [];
  const walk = (object: JsonObject): void => {
    for (const [name, value] of Object.entries(object)) {
      if (needles.length >= mostNeedles) return;
      if (isJsonObject(value) && Object.keys(value).length > 0) walk(value);
      else needles.push(beginning(`${JSON.stringify(name)}:${opening(value)}`));
    }
  };
  walk(wanted);
  return needles;
}

/** A whole scalar, or only the opening bracket of arrays and objects, whose members may be in another order. */
function opening(value: unknown): string {
  if (Array.isArray(value)) return '[';
  return isJsonObject(value) ? '{' : JSON.stringify(value);
}

function beginning(text: string): string {
  if (text.length <= longestNeedle) return text;
  const cut = text.slice(0, longestNeedle);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}

function joined(parts: readonly (readonly [string, SqlValue | undefined])[]): Conditions {
  const given = parts.flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]));
  return {
    conditions: ['TRUE', ...given.map(({ condition }) => condition)].join(' AND '),
    values: given.map(({ value }) => value),
  };
}

/** The checks left to code: the parents after the first, and the data. */
function restOf({ parents = [], data }: AssetFilter): ((asset: Asset) => boolean) | undefined {
  if (data === undefined && parents.length < 2) return undefined;
  const holdsData = data && containing(data);
  return (asset) => {
    const named = new Set(asset.parents);
    return parents.every((parent) => named.has(parent)) && (holdsData === undefined || holdsData(asset.data));
  };
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
