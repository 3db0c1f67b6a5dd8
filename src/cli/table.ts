// Tables for people. On a terminal they fit its width, with ids and times shortened; elsewhere nothing is cut, so that
// `grep` and `less` see everything.
import { inLines, inShort, type ShortTimes, shorten, visible, width, wrapped } from './text.ts';

export interface Column<T> {
  readonly title: string;
  readonly value: (row: T) => string | number | boolean;
  /** Never cut: an id or secret is useless in part. Numbers are never cut, either. */
  readonly whole?: true;
  /** Dropped if there is no room, the last one first. */
  readonly spare?: true;
  /** A name that commands accept: on a terminal it is not cut but continued on the next line. */
  readonly name?: true;
  /** Ids that no command needs, or times: shortened on a terminal, and never cut unless the column has names, too. */
  readonly short?: true;
  /** Whether a row's cell is red where there are colours. */
  readonly isRed?: (row: T) => boolean;
}

export interface TableStyle {
  /** Width to fit; undefined for unlimited. */
  readonly columns: number | undefined;
  readonly colour: boolean;
  /** How times are shortened; undefined to show ids and times whole. */
  readonly short?: ShortTimes | undefined;
  /** Called when the number of columns for which there is no room changes. */
  readonly onHidden?: (count: number) => void;
}

const gap = 2;
/** A name in a narrower column would be hard to read in parts: it is cut. */
const leastPart = 8;
/**
 * A column, or a column of names, is cut to its fair width before spare columns are dropped, and to `leastWidth` only
 * after that.
 */
const fairWidth = 12;
const fairNameWidth = 40;
const leastWidth = 4;
const red = '\x1b[31m';
const usual = '\x1b[0m';

/** A column laid out for its rows. */
interface Cells {
  readonly title: string;
  readonly cells: readonly string[];
  readonly natural: number;
  readonly least: number;
  readonly fair: number;
  readonly spare: boolean;
  /** Continued on the next line where it is longer than its column. */
  readonly isWrapped: boolean;
  /** Rows whose cell is red. */
  readonly red: readonly boolean[];
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
  let hidden = 0;
  return (rows) => {
    const all = columns.map((column, n) => cellsOf(column, rows, style, before?.[n]?.natural ?? atLeast[n] ?? 0));
    const isFirst = before === undefined;
    before = all;
    const room = style.columns;
    const shown = room === undefined ? all : withoutSpare(all, room);
    const widths = room === undefined ? shown.map(({ natural }) => natural) : widthsIn(shown, room);
    if (all.length - shown.length !== hidden) {
      hidden = all.length - shown.length;
      style.onHidden?.(hidden);
    }
    const titles = lineOf(
      shown.map(({ title }) => title),
      widths,
    );
    const lines = rows.flatMap((_, row) => linesOf(shown, row, widths));
    return isFirst ? [style.colour ? `\x1b[1m${titles}\x1b[22m` : titles, ...lines] : lines;
  };
}

function cellsOf<T>(column: Column<T>, rows: readonly T[], style: TableStyle, before: number): Cells {
  const { title, value, whole, spare, name, short, isRed } = column;
  const values = rows.map(value);
  const { columns: room, colour, short: times } = style;
  const cells = values.map((each) => {
    const text = visible(String(each));
    return short && times ? inShort(text, times) : text;
  });
  const natural = cells.reduce((most, cell) => Math.max(most, width(cell)), Math.max(before, width(title)));
  const isWhole = whole || (short && !name) || values.some((each) => typeof each === 'number');
  const isWrapped = name === true && room !== undefined;
  return {
    title: title.toUpperCase(),
    cells,
    natural,
    least: isWhole ? natural : 0,
    // A spare column is rather wrapped than dropped.
    fair: name && !(spare && isWrapped) ? fairNameWidth : fairWidth,
    spare: spare === true,
    isWrapped,
    red: colour && isRed ? rows.map(isRed) : [],
  };
}

/** A row: one line, or several if a name is longer than its column. */
function linesOf(columns: readonly Cells[], row: number, widths: readonly number[]): string[] {
  const cells = columns.map(({ cells, isWrapped }, n) => {
    const cell = cells[row] ?? '';
    const room = widths[n] ?? 0;
    return isWrapped && room >= leastPart ? wrapped(cell, room) : [cell];
  });
  const height = cells.reduce((most, parts) => Math.max(most, parts.length), 1);
  const isRed = columns.map(({ red }) => red[row] === true);
  return Array.from({ length: height }, (_, at) => {
    const parts = cells.map((each) => each[at] ?? '');
    return lineOf(
      parts,
      widths,
      isRed.map((red, n) => red && parts[n] !== ''),
    );
  });
}

function lineOf(cells: readonly string[], widths: readonly number[], isRed: readonly boolean[] = []): string {
  const padded = cells.map((cell, n) => {
    const room = widths[n] ?? 0;
    const short = shorten(cell, room);
    const padding = n === cells.length - 1 ? '' : ' '.repeat(Math.max(0, room - width(short)));
    return (isRed[n] ? `${red}${short}${usual}` : short) + padding;
  });
  return padded.join(' '.repeat(gap)).trimEnd();
}

/** Drops spare columns, the last one first, until the others have room. */
function withoutSpare(columns: readonly Cells[], room: number): readonly Cells[] {
  if (total(cut(columns, room, ({ fair }) => fair)) <= room) return columns;
  const last = columns.findLastIndex(({ spare }) => spare);
  return last < 0 ? columns : withoutSpare(columns.toSpliced(last, 1), room);
}

/**
 * Cuts what is no name and wraps spare names first; then continues names on further lines, in ever narrower parts; then
 * cuts everything.
 */
function widthsIn(columns: readonly Cells[], room: number): number[] {
  const withWholeNames = cut(columns, room, ({ isWrapped, spare, natural }) =>
    isWrapped ? (spare ? fairWidth : natural) : leastWidth,
  );
  if (total(withWholeNames) <= room) return withWholeNames;
  const withWrappedNames = cut(columns, room, ({ fair, isWrapped }) => (isWrapped ? fairWidth : fair));
  if (total(withWrappedNames) <= room) return withWrappedNames;
  const withParts = cut(columns, room, ({ isWrapped }) => (isWrapped ? leastPart : leastWidth));
  return total(withParts) <= room ? withParts : cut(columns, room, () => leastWidth);
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

/** Values in a narrower column than this would be hard to read. */
const leastValue = 20;

/**
 * Names and values below each other, for a single thing. A value of words goes on in the next line where it is wider
 * than what is left of `columns`; JSON stays as it is.
 */
export function pairs(
  entries: readonly (readonly [name: string, value: string | number | boolean])[],
  columns?: number,
): string[] {
  const indent = Math.max(...entries.map(([name]) => width(name))) + gap;
  const room = columns && columns - indent >= leastValue ? columns - indent : undefined;
  return entries.flatMap(([name, value]) => {
    const text = visible(String(value));
    const lines = /^[[{]/.test(text) ? [text] : inLines(text, room);
    return lines.map((line, n) => {
      const before = n === 0 ? name : '';
      return `${before}${' '.repeat(indent - width(before))}${line}`.trimEnd();
    });
  });
}
