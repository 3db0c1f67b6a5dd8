// An export is a file with the records that a page shows: JSON Lines for programs, CSV for spreadsheets. It copies the
// screen and proves nothing; for a verifiable export there is `kms activity export`.
import { type ActivityRecord, deedOfRecord, type Names } from './records.ts';

/** One record per line, as the API returns it. */
export function jsonLines(records: readonly ActivityRecord[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join('');
}

const columns = [
  'time',
  'who',
  'keyid',
  'action',
  'keyring',
  'object type',
  'object id',
  'object name',
  'allowed',
  'status',
  'address',
  'reporter',
  'props',
  'id',
] as const;

/** RFC 4180 with a header line; times are RFC 3339 in UTC. */
export function csv(records: readonly ActivityRecord[], names: Names): string {
  const rows = records.map((record) => {
    const { id, createdAt, keyid, action, ringname, validAction, status, address = '', reporter = '', props } = record;
    const { object } = deedOfRecord(record);
    return [
      new Date(createdAt).toISOString(),
      names.get(keyid) ?? '',
      keyid,
      action,
      ringname,
      object?.type ?? '',
      object?.id ?? '',
      object?.name ?? '',
      validAction ? 'yes' : 'no',
      String(status),
      address,
      reporter,
      Object.keys(props).length === 0 ? '' : JSON.stringify(props),
      id,
    ];
  });
  return [columns, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/**
 * Matches text that a spreadsheet would run as a formula: it begins with one of these characters, even if quoted, after
 * blanks, or in the full-width forms of East Asian text.
 */
const formula = /^[\s\p{C}\p{Z}]*[=+\-@|%＝＋－＠]|^[\t\r\n]/u;

/** A CSV cell; a leading apostrophe makes spreadsheets treat a formula as text. */
function cell(text: string): string {
  return `"${(formula.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
