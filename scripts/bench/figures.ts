// Small arithmetic and printing for the bench.

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const high = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? Number.NaN) + high) / 2;
}

/** A goal that a figure has met or missed; missing one doesn't fail the bench, it says so. */
export function goal(what: string, value: number, limit: number, sense: 'at least' | 'at most', unit = ''): void {
  const met = sense === 'at least' ? value >= limit : value <= limit;
  console.log(`  ${met ? 'met   ' : 'MISSED'}  ${what}: ${short(value)}${unit} (${sense} ${limit}${unit})`);
}

export function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

export function row(...cells: readonly (string | number)[]): void {
  console.log(cells.map((cell, at) => (at === 0 ? String(cell).padEnd(22) : String(cell).padStart(12))).join(''));
}
