// Tables for people. On a terminal they fit its width; elsewhere nothing is cut, so that `grep` and `less` see everything.
import { shorten, visible, width } from './visible.ts';

export interface Column<T> {
  readonly title: string;
  readonly value: (row: T) => string | number | boolean;
}

export interface TableStyle {
  /** The width to fit; undefined = as wide as it gets. */
  readonly columns: number | undefined;
  readonly colour: boolean;
}

const gap = 2;
const leastWidth = 6;

/** The lines of the table, titles first. */
export function table<T>(rows: readonly T[], columns: readonly Column<T>[], style: TableStyle): string[] {
  const cells = rows.map((row) => columns.map((column) => visible(String(column.value(row)))));
  const natural = columns.map(({ title }, n) => Math.max(width(title), ...cells.map((line) => width(line[n] ?? ''))));
  const widths = style.columns === undefined ? natural : fit(natural, style.columns);
  const titles = line(
    columns.map(({ title }) => title.toUpperCase()),
    widths,
  );
  return [style.colour ? `\x1b[1m${titles}\x1b[22m` : titles, ...cells.map((row) => line(row, widths))];
}

function line(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, n) => {
    const room = widths[n] ?? 0;
    const short = shorten(cell, room);
    return short + ' '.repeat(Math.max(0, room - width(short)));
  });
  return padded.join(' '.repeat(gap)).trimEnd();
}

/** Takes cells from the widest column until the line fits or nothing is left to take. */
function fit(natural: readonly number[], room: number): number[] {
  const widths = [...natural];
  const total = (): number => widths.reduce((sum, each) => sum + each, gap * (widths.length - 1));
  while (total() > room) {
    const widest = Math.max(...widths);
    if (widest <= leastWidth) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return widths;
}

/** Names and values one above the other, for a single thing. */
export function pairs(entries: readonly (readonly [name: string, value: string | number | boolean])[]): string[] {
  const room = Math.max(...entries.map(([name]) => width(name)));
  return entries.map(([name, value]) =>
    `${name}${' '.repeat(room - width(name) + gap)}${visible(String(value))}`.trimEnd(),
  );
}
