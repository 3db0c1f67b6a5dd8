// The table of broken glass: acts that were done without the approval that they needed.
import type { ResourceRef } from '../../model/activity-details.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';

export interface BrokenGlass {
  readonly id: string;
  readonly at: number;
  /** An id, or `local`. */
  readonly by: string;
  readonly reason: string;
  /** Flag with the ring's name. */
  readonly action: string;
  readonly object: ResourceRef | null;
  readonly requestId: string | undefined;
  /** Users for whom the rule vouched before, by id, each with the number of the last way in that there was then. */
  readonly persons: Readonly<Record<string, number>>;
  readonly acknowledged: { readonly at: number; readonly by: string } | undefined;
}

interface BrokenRow extends Row {
  id: string;
  at: number;
  broken_by: string;
  reason: string;
  action: string;
  object: string | null;
  request_id: string | null;
  persons: string;
  acknowledged_at: number | null;
  acknowledged_by: string | null;
}

export type BrokenGlassTable = ReturnType<typeof brokenGlassTable>;

export function brokenGlassTable(sql: Sql) {
  return {
    insert(broken: Omit<BrokenGlass, 'acknowledged'>): void {
      sql.run(
        `INSERT INTO broken_glass (id, at, broken_by, reason, action, object, request_id, persons)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        broken.id,
        broken.at,
        broken.by,
        broken.reason,
        broken.action,
        broken.object ? toJson({ ...broken.object }) : null,
        broken.requestId ?? null,
        toJson({ ...broken.persons }),
      );
    },

    byId(id: string): BrokenGlass | undefined {
      const row = sql.get<BrokenRow>('SELECT * FROM broken_glass WHERE id = ?', id);
      return row && fromRow(row);
    },

    /** Newest first; those not acknowledged come before all others. */
    list(most: number): BrokenGlass[] {
      const text = 'SELECT * FROM broken_glass ORDER BY acknowledged_at IS NOT NULL, seq DESC LIMIT ?';
      return sql.all<BrokenRow>(text, most).map(fromRow);
    },

    countOpen(): number {
      return sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM broken_glass WHERE acknowledged_at IS NULL')?.n ?? 0;
    },

    erase(id: string): void {
      sql.run('DELETE FROM broken_glass WHERE id = ?', id);
    },

    acknowledge(id: string, by: string, now: number): void {
      sql.run('UPDATE broken_glass SET acknowledged_at = ?, acknowledged_by = ? WHERE id = ?', now, by, id);
    },
  };
}

function fromRow(row: BrokenRow): BrokenGlass {
  const { acknowledged_at: at, acknowledged_by: by } = row;
  return {
    id: row.id,
    at: row.at,
    by: row.broken_by,
    reason: row.reason,
    action: row.action,
    // Cast: this file wrote it.
    object: row.object === null ? null : (objectOf(row.object) as unknown as ResourceRef),
    requestId: row.request_id ?? undefined,
    // Cast: this file wrote it.
    persons: objectOf(row.persons) as Record<string, number>,
    acknowledged: at === null ? undefined : { at, by: by ?? '' },
  };
}
