// The uses of ring keys: how often on which days, and when and by whom last. They are counted beside the log. They show
// when an old key is no longer needed. A key takes at most `daysKept` and two rows, however much it is used.
import type { Row, Sql } from '../sql.ts';
import type { RingKey } from './ring-keys.ts';

/** More than a quarter, so that quarterly jobs show up; the latest use is kept for good. */
const daysKept = 100;
const dayLength = 24 * 60 * 60 * 1000;

export type KeyUseKind = 'encrypt' | 'decrypt';

interface KeyUse {
  /** Epoch milliseconds. */
  readonly at: number;
  /** The caller's id: an API key, a user, or `local`. */
  readonly by: string;
}

interface DayOfUse {
  /** Start of the day in UTC, epoch milliseconds. */
  readonly at: number;
  readonly encrypts: number;
  readonly decrypts: number;
}

export interface KeyUsage {
  /** Epoch milliseconds of the key's creation; uses are counted from then on. */
  readonly since: number;
  /** Undefined if there was none. */
  readonly lastEncrypt: KeyUse | undefined;
  readonly lastDecrypt: KeyUse | undefined;
  /** Oldest first, without days that had no use. */
  readonly days: readonly DayOfUse[];
}

interface UseRow extends Row {
  kind: string;
  used_at: number;
  used_by: string;
}

interface DayRow extends Row {
  day: number;
  encrypts: number;
  decrypts: number;
}

// The second parameter names the counter: 'e' or 'd', then the day if any, a space, and the key's id. A count for a
// deleted key is dropped.
const countLast = `INSERT INTO key_uses (key_seq, kind, used_at, used_by)
  SELECT seq, substr(?2, 1, 1), ?3, ?4 FROM ring_keys WHERE id = substr(?2, 3) AND ?1 > 0
  ON CONFLICT (key_seq, kind) DO UPDATE SET used_at = excluded.used_at, used_by = excluded.used_by`;

const countDay = `INSERT INTO key_days (key_seq, slot, day, encrypts, decrypts)
  SELECT seq, day % ${daysKept}, day, CASE kind WHEN 'e' THEN n ELSE 0 END, CASE kind WHEN 'd' THEN n ELSE 0 END
    FROM (SELECT ?1 AS n, substr(?2, 1, 1) AS kind, CAST(substr(?2, 2) AS INTEGER) AS day,
      substr(?2, instr(?2, ' ') + 1) AS key_id) JOIN ring_keys ON ring_keys.id = key_id WHERE true
  ON CONFLICT (key_seq, slot) DO UPDATE SET day = excluded.day,
    encrypts = CASE day WHEN excluded.day THEN encrypts ELSE 0 END + excluded.encrypts,
    decrypts = CASE day WHEN excluded.day THEN decrypts ELSE 0 END + excluded.decrypts`;

/** The ids under which the uses of a key are counted. */
interface CountIds {
  readonly last: string;
  readonly day: number;
  readonly ofDay: string;
}

/** Maximum of keys whose ids are cached: building the ids costs as much as counting. */
const mostRemembered = 10_000;

const lastId = (kind: KeyUseKind, keyId: string): string => `${kind === 'encrypt' ? 'e' : 'd'} ${keyId}`;
const dayId = (kind: KeyUseKind, day: number, keyId: string): string =>
  `${kind === 'encrypt' ? 'e' : 'd'}${day} ${keyId}`;
const dayOf = (at: number): number => Math.floor(at / dayLength);

export type KeyUseTable = ReturnType<typeof keyUseTable>;

export function keyUseTable(sql: Sql) {
  function lastOf(kind: KeyUseKind, keyId: string, rows: readonly UseRow[]): KeyUse | undefined {
    const counted = sql.counted(countLast, lastId(kind, keyId));
    if (counted) {
      const [at, by] = counted.latest;
      return { at: Number(at), by: String(by) };
    }
    const row = rows.find((each) => each.kind === kind.charAt(0));
    return row && { at: row.used_at, by: row.used_by };
  }

  /** The days up to today that are kept. */
  function daysOf(keyId: string, rows: readonly DayRow[], today: number): DayOfUse[] {
    const stored = new Map(rows.map((row) => [row.day, row]));
    const days: DayOfUse[] = [];
    for (let day = today - daysKept + 1; day <= today; day++) {
      const row = stored.get(day);
      const encrypts = (row?.encrypts ?? 0) + (sql.counted(countDay, dayId('encrypt', day, keyId))?.sum ?? 0);
      const decrypts = (row?.decrypts ?? 0) + (sql.counted(countDay, dayId('decrypt', day, keyId))?.sum ?? 0);
      if (encrypts + decrypts > 0) days.push({ at: day * dayLength, encrypts, decrypts });
    }
    return days;
  }

  const remembered = { encrypt: new Map<string, CountIds>(), decrypt: new Map<string, CountIds>() };

  function countIds(kind: KeyUseKind, keyId: string, day: number): CountIds {
    const known = remembered[kind].get(keyId);
    if (known?.day === day) return known;
    const made = { last: lastId(kind, keyId), day, ofDay: dayId(kind, day, keyId) };
    if (remembered[kind].size >= mostRemembered) remembered[kind].clear();
    remembered[kind].set(keyId, made);
    return made;
  }

  return {
    /** Counts a use without running a statement. */
    count(kind: KeyUseKind, keyId: string, { at, by }: KeyUse): void {
      const ids = countIds(kind, keyId, dayOf(at));
      sql.count(countLast, ids.last, at, by);
      sql.count(countDay, ids.ofDay);
    },

    /** The usage of the given keys, by id. */
    ofKeys(keys: readonly RingKey[], now: number): ReadonlyMap<string, KeyUsage> {
      const found = new Map<string, KeyUsage>();
      for (const { id, seq, createdAt } of keys) {
        const uses = sql.all<UseRow>('SELECT kind, used_at, used_by FROM key_uses WHERE key_seq = ?', seq);
        const days = sql.all<DayRow>('SELECT day, encrypts, decrypts FROM key_days WHERE key_seq = ?', seq);
        found.set(id, {
          since: createdAt,
          lastEncrypt: lastOf('encrypt', id, uses),
          lastDecrypt: lastOf('decrypt', id, uses),
          days: daysOf(id, days, dayOf(now)),
        });
      }
      return found;
    },
  };
}
