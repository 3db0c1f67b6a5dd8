// Small arithmetic and printing for the bench.

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const high = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? high : ((sorted[middle - 1] ?? Number.NaN) + high) / 2;
}

interface Goal {
  readonly wanted: string;
  /** One figure for each time that it was measured. */
  readonly figures: string[];
  missed: number;
}

const goals = new Map<string, Goal>();

/** Records a goal as met or missed; a missed goal is reported and does not fail the bench. */
export function goal(what: string, value: number, limit: number, sense: 'at least' | 'at most', unit = ''): void {
  const met = sense === 'at least' ? value >= limit : value <= limit;
  const wanted = `${sense} ${limit}${unit}`;
  console.log(`  ${met ? 'met   ' : 'MISSED'}  ${what}: ${short(value)}${unit} (${wanted})`);
  const one = goals.get(what) ?? { wanted, figures: [], missed: 0 };
  goals.set(what, one);
  one.figures.push(short(value));
  if (!met) one.missed++;
}

/** Prints all goals, in the order in which they were first measured. */
export function printGoals(): void {
  console.log(`\n${'Goals'.padEnd(64)}${'today'.padEnd(28)}wanted`);
  for (const [what, { wanted, figures, missed }] of goals) {
    const often = figures.length === 1 ? '' : ` ${missed} of ${figures.length} times`;
    const told = missed === 0 ? '' : `  MISSED${often}`;
    console.log(`${what.padEnd(64)}${figures.join(', ').padEnd(28)}${wanted}${told}`);
  }
}

export function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

export function row(...cells: readonly (string | number)[]): void {
  console.log(cells.map((cell, at) => (at === 0 ? String(cell).padEnd(22) : String(cell).padStart(12))).join(''));
}
