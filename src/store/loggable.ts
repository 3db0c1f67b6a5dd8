// The statements that a log may hold. The maker of an appliance has its keys and can seal any text in a log, which
// another's command then runs again, so that what a text may cost is bounded. A short statement about one table, with
// no look at others and no function that makes a value longer, takes no more than a walk over that table. Those that
// need more are listed: a text stays here as long as a log may hold it, and a new one needs a step of migrations.ts, so
// that earlier programs refuse the log in words.
import { approvalSchema } from './tables/approval-schema.ts';
import { systemKeyFlags, tenantKeyFlags } from './tables/key-flags.ts';
import { kmipSchema } from './tables/kmip-schema.ts';
import { managedKeySchema } from './tables/managed-key-schema.ts';
import { proofSchema } from './tables/proof-schema.ts';
import { tenantSchema } from './tables/tenant-schema.ts';

const listed: ReadonlySet<string> = new Set([
  'DELETE FROM api_key_rings WHERE apikey_id IN (SELECT id FROM api_keys WHERE account_id = ? AND seq > ? ' +
    'AND seq <= ?)',
  'DELETE FROM api_key_uses WHERE apikey_id IN (SELECT id FROM api_keys WHERE account_id = ? AND seq > ? ' +
    'AND seq <= ?)',
  'DELETE FROM earlier_wrappings WHERE key_seq = ? AND wrapped = ? AND seq > (SELECT MIN(seq) FROM ' +
    'earlier_wrappings WHERE key_seq = ?)',
  'DELETE FROM earlier_wrappings WHERE key_seq IN (SELECT seq FROM ring_keys WHERE ring_id = ? AND seq <= ?)',
  'DELETE FROM key_days WHERE key_seq IN (SELECT seq FROM ring_keys WHERE ring_id = ? AND seq <= ?)',
  'DELETE FROM key_uses WHERE key_seq IN (SELECT seq FROM ring_keys WHERE ring_id = ? AND seq <= ?)',
  'DELETE FROM ring_pairs WHERE seq IN (SELECT seq FROM ring_pairs WHERE ring_id = ? LIMIT 100)',
  'DELETE FROM sessions WHERE seq IN (SELECT seq FROM sessions WHERE expires_at < ? ORDER BY expires_at, ' +
    'seq LIMIT ?)',
  'INSERT INTO api_key_rings (apikey_id, ring_name, apikey_seq) SELECT k.id, ring.value, k.seq FROM ' +
    'json_each(?) AS ring CROSS JOIN api_keys k WHERE k.id = ?',
  'INSERT INTO asset_parents (asset_seq, asset_id, parent_id) SELECT seq, id, ? FROM assets WHERE id = ?',
  'INSERT INTO asset_versions (asset_id, version, data, parents) SELECT id, version, data, parents FROM ' +
    'assets WHERE id = ?',
  `INSERT INTO key_days (key_seq, slot, day, encrypts, decrypts) SELECT seq, day % 100, day, CASE kind WHEN ` +
    `'e' THEN n ELSE 0 END, CASE kind WHEN 'd' THEN n ELSE 0 END FROM (SELECT ?1 AS n, substr(?2, 1, 1) AS ` +
    `kind, CAST(substr(?2, 2) AS INTEGER) AS day, substr(?2, instr(?2, ' ') + 1) AS key_id) JOIN ring_keys ON ` +
    `ring_keys.id = key_id WHERE true ON CONFLICT (key_seq, slot) DO UPDATE SET day = excluded.day, encrypts ` +
    `= CASE day WHEN excluded.day THEN encrypts ELSE 0 END + excluded.encrypts, decrypts = CASE day WHEN ` +
    `excluded.day THEN decrypts ELSE 0 END + excluded.decrypts`,
  'INSERT INTO key_uses (key_seq, kind, used_at, used_by) SELECT seq, substr(?2, 1, 1), ?3, ?4 FROM ' +
    'ring_keys WHERE id = substr(?2, 3) AND ?1 > 0 ON CONFLICT (key_seq, kind) DO UPDATE SET used_at = ' +
    'excluded.used_at, used_by = excluded.used_by',
]);

/** The texts of the migrations: columns that refer to others have indexes there, and flags only get shorter. */
const schema: ReadonlySet<string> = new Set([
  ...tenantSchema,
  ...tenantKeyFlags,
  ...systemKeyFlags,
  ...managedKeySchema,
  ...proofSchema,
  ...kmipSchema,
  ...approvalSchema,
]);

/** Characters; the longest of a migration has some 900. */
const longest = 16_384;
/** Strings, words and marks of a statement that is run for rows. One text may be run again by a few bytes of a log. */
const mostParts = 256;

/** Strings, comments, words, and single characters of any other kind. */
const tokens = /'(?:[^']|'')*'|--[^\n]*|[A-Za-z_]\w*|\?\d*|\d+(?:\.\d+)?|\s+|[\s\S]/g;
const marks = new Set([...'(),=<>*+-%.;!']);

const beginnings = [
  ['insert', 'into'],
  ['delete', 'from'],
  ['update'],
  ['create', 'table'],
  ['create', 'index'],
  ['create', 'unique', 'index'],
  ['alter', 'table'],
  ['drop', 'table'],
  ['drop', 'index'],
];

/** Parameters by number, which may name one value several times. */
const mostNumbered = 8;

const mostParameters = 256;
/** Characters of a text in a statement, with its quotes. */
const longestLiteral = 66;

/** A literal of some characters: rows have it without the log having it. */
function isShortDefault(word: string): boolean {
  return /^(?:'.{0,16}'|-?\d{1,16}|null)$/.test(word);
}

/** Tables that SQLite makes by itself. */
const ofSqlite = /^(?:sqlite|pragma|json)_/;

/** They read other rows, or take longer than their row is. */
const refused = new Set([
  ...['select', 'with', 'recursive', 'from', 'join', 'union', 'intersect', 'except', 'exists', 'window', 'over'],
  ...['table', 'as', 'generated', 'virtual', 'temp', 'temporary', 'trigger', 'view', 'collate'],
  ...['like', 'glob', 'regexp', 'match', 'raise', 'explain', 'pragma', 'attach', 'vacuum'],
]);

/** Words that a parenthesis may follow: keywords, and functions that return one of the values given. */
const opening = new Set([
  ...['values', 'in', 'conflict', 'key', 'unique', 'check', 'and', 'or', 'not', 'where', 'set', 'when', 'then', 'else'],
  ...['coalesce', 'ifnull', 'max', 'min', 'abs'],
]);
/** Words that the name of a table follows. */
const namesTable = new Set(['into', 'table', 'references', 'on']);

/** Whether a log may hold the statement. */
export function isLoggable(text: string): boolean {
  if (text.length > longest) return false;
  if (/^PRAGMA user_version = [0-9]{1,9}$/.test(text) || schema.has(text)) return true;
  if (listed.has(text.replace(/\s+/g, ' '))) return true;
  const words = (text.match(tokens) ?? []).filter((token) => !/^(?:\s|--)/.test(token)).map((t) => t.toLowerCase());
  const start = beginnings.find((beginning) => beginning.every((word, at) => words[at] === word));
  if (words.length > mostParts && start?.[1] !== 'table') return false;
  // A value of the log that a row has many times, or that is in the schema and in no log.
  if (words.filter((word) => /^\?\d/.test(word)).length > mostNumbered) return false;
  // A column that refers to a table is looked through for each row that goes there.
  if (words.filter((word) => word === 'references').length > 1) return false;
  // A text may be run again by a few bytes of a log, and each has room for its parameters.
  if (words.some((word) => word.length > longestLiteral && word.startsWith("'"))) return false;
  if (words.some((word) => Number(word.slice(1)) > mostParameters && word.startsWith('?'))) return false;
  if (words.some((word, at) => word === 'default' && !isShortDefault(words[at + 1] ?? ''))) return false;
  return start !== undefined && words.every((word, at) => at < start.length || isPlain(words, word, at));
}

function isPlain(words: readonly string[], word: string, at: number): boolean {
  if (!/^\w/.test(word)) return /^['?]/.test(word) ? word.length > 1 || word === '?' : marks.has(word);
  if (refused.has(word) || ofSqlite.test(word)) return false;
  const next = words[at + 1];
  // `x IN (…)`, and no table.
  if (word === 'in') return next === '(';
  return next !== '(' || opening.has(word) || namesTable.has(words[at - 1] ?? '');
}
