// The marks of the tenants' stores, as recorded in the appliance's own store: a rollback guard, since a store found
// with less was replaced by an older copy.
import { KmsError } from '../../errors.ts';
import { jsonOf } from '../../model/json.ts';
import type { Mark } from '../../model/store-mark.ts';
import { isRuns } from '../snapshot-manifest.ts';
import type { Row, Sql } from '../sql.ts';
import { toJson } from './columns.ts';

/** A mark, and when the store had it. */
export interface NotedMark extends Mark {
  /** Epoch milliseconds. */
  readonly at: number;
}

export interface MarkRow extends Row {
  dir: string;
  sequence: number;
  runs: string;
  noted_at: number;
}

export type MarkTable = ReturnType<typeof markTable>;

export function markTable(sql: Sql) {
  return {
    /** All marks, by the store's directory as named in the seal. */
    all(): ReadonlyMap<string, NotedMark> {
      return marksOf(sql.all<MarkRow>('SELECT dir, sequence, runs, noted_at FROM marks ORDER BY seq'));
    },

    set(dir: string, { sequence, runs, at }: NotedMark): void {
      const values = [sequence, toJson(runs), at, dir] as const;
      const known = sql.run('UPDATE marks SET sequence = ?, runs = ?, noted_at = ? WHERE dir = ?', ...values);
      if (known === 0) sql.run('INSERT INTO marks (sequence, runs, noted_at, dir) VALUES (?, ?, ?, ?)', ...values);
    },

    erase(dir: string): void {
      sql.run('DELETE FROM marks WHERE dir = ?', dir);
    },
  };
}

export function marksOf(rows: readonly MarkRow[]): ReadonlyMap<string, NotedMark> {
  return new Map(rows.map(({ dir, sequence, runs, noted_at: at }) => [dir, { sequence, runs: runsIn(runs, dir), at }]));
}

function runsIn(text: string, dir: string): Mark['runs'] {
  const runs = jsonOf(text);
  if (isRuns(runs)) return runs;
  throw new KmsError('corrupt', `the noted runs of ${dir} are none that kms writes`, {
    hint: 'nothing was changed; restore from a backup',
  });
}
