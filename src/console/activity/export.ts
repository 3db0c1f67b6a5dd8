// An export is the records that a page shows, as a file: JSON Lines for programs, CSV for spreadsheets. It is a copy of
// what is on the screen and proves nothing; what can be verified is `kms activity export`.
import { type ActivityRecord, deedOfRecord, type Names } from './records.ts';

/** One record a line, as the API answers it. */
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

/** RFC 4180, with a line of titles; times in RFC 3339, UTC. */
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
 * Spreadsheets run a text as a formula that begins with one of these, quoted or not, behind blanks, and in the wide
 * forms of East Asian text too.
 */
const formula = /^[\s\p{C}\p{Z}]*[=+\-@|%＝＋－＠]|^[\t\r\n]/u;

/** An apostrophe in front makes a spreadsheet take it as text. */
function cell(text: string): string {
  return `"${(formula.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
