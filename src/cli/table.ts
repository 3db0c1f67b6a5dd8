// Tables for people. On a terminal they fit its width; elsewhere nothing is cut, so that `grep` and `less` see
// everything.
import { shorten, visible, width } from './text.ts';

export interface Column<T> {
  readonly title: string;
  readonly value: (row: T) => string | number | boolean;
  /** Never cut: an id or secret is useless in part. Numbers are never cut, either. */
  readonly whole?: true;
  /** Dropped if there is no room. */
  readonly spare?: true;
  /** A name that commands accept: worth more room than a spare column. */
  readonly name?: true;
}

export interface TableStyle {
  /** Width to fit; undefined for unlimited. */
  readonly columns: number | undefined;
  readonly colour: boolean;
}

const gap = 2;
/**
 * A column, or a column of names, is cut to its fair width before spare columns are dropped, and to `leastWidth` only
 * after that.
 */
const fairWidth = 12;
const fairNameWidth = 40;
const leastWidth = 4;

/** A column laid out for its rows. */
interface Cells {
  readonly title: string;
  readonly cells: readonly string[];
  readonly natural: number;
  readonly least: number;
  readonly fair: number;
  readonly spare: boolean;
}

/** The lines of the table, titles first. */
export function table<T>(rows: readonly T[], columns: readonly Column<T>[], style: TableStyle): string[] {
  return tableWriter(columns, style)(rows);
}

/**
 * A table that grows: each call returns the lines of its rows, the first call with titles. Columns only ever get wider,
 * starting from `atLeast`.
 */
export function tableWriter<T>(
  columns: readonly Column<T>[],
  style: TableStyle,
  atLeast: readonly number[] = [],
): (rows: readonly T[]) => string[] {
  let before: readonly Cells[] | undefined;
  return (rows) => {
    const all = columns.map((column, n) => cellsOf(column, rows, before?.[n]?.natural ?? atLeast[n] ?? 0));
    const isFirst = before === undefined;
    before = all;
    const room = style.columns;
    const shown = room === undefined ? all : withoutSpare(all, room);
    const widths = room === undefined ? shown.map(({ natural }) => natural) : cut(shown, room, () => leastWidth);
    const titles = lineOf(
      shown.map(({ title }) => title),
      widths,
    );
    const lines = rows.map((_, row) =>
      lineOf(
        shown.map(({ cells }) => cells[row] ?? ''),
        widths,
      ),
    );
    return isFirst ? [style.colour ? `\x1b[1m${titles}\x1b[22m` : titles, ...lines] : lines;
  };
}

function cellsOf<T>({ title, value, whole, spare, name }: Column<T>, rows: readonly T[], before: number): Cells {
  const values = rows.map(value);
  const cells = values.map((each) => visible(String(each)));
  const natural = cells.reduce((most, cell) => Math.max(most, width(cell)), Math.max(before, width(title)));
  const isWhole = whole === true || values.some((each) => typeof each === 'number');
  const least = isWhole ? natural : 0;
  const fair = name ? fairNameWidth : fairWidth;
  return { title: title.toUpperCase(), cells, natural, least, fair, spare: spare === true };
}

function lineOf(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, n) => {
    const room = widths[n] ?? 0;
    const short = shorten(cell, room);
    return short + ' '.repeat(Math.max(0, room - width(short)));
  });
  return padded.join(' '.repeat(gap)).trimEnd();
}

/** Drops spare columns, the last one first, until the others have room. */
function withoutSpare(columns: readonly Cells[], room: number): readonly Cells[] {
  if (total(cut(columns, room, ({ fair }) => fair)) <= room) return columns;
  const last = columns.findLastIndex(({ spare }) => spare);
  return last < 0 ? columns : withoutSpare(columns.toSpliced(last, 1), room);
}

/** Shrinks the widest column cell by cell until the line fits or nothing can shrink. */
function cut(columns: readonly Cells[], room: number, leastOf: (column: Cells) => number): number[] {
  const widths = columns.map(({ natural }) => natural);
  const least = columns.map((column) => Math.max(leastOf(column), column.least));
  for (let over = total(widths) - room; over > 0; over--) {
    const spendable = widths.map((each, n) => (each > (least[n] ?? 0) ? each : 0));
    const widest = Math.max(...spendable);
    if (widest === 0) break;
    widths[spendable.indexOf(widest)] = widest - 1;
  }
  return widths;
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each, gap * (widths.length - 1));
}

/** Names and values below each other, for a single thing. */
export function pairs(entries: readonly (readonly [name: string, value: string | number | boolean])[]): string[] {
  const room = Math.max(...entries.map(([name]) => width(name)));
  return entries.map(([name, value]) =>
    `${name}${' '.repeat(room - width(name) + gap)}${visible(String(value))}`.trimEnd(),
  );
}
