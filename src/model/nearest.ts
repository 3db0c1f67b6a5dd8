// Suggests the known name that an unknown one probably meant.

/** The closest of `names`, if its distance is at most three and less than half of the longer name. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  const word = typed.toLowerCase();
  const [best] = names
    .map((name) => ({ name, distance: distance(word, name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= 3 && distance * 2 < Math.max(word.length, name.length))
    .sort((a, b) => a.distance - b.distance);
  return best?.name;
}

/** Characters to change, add, leave out or swap with their neighbour (optimal string alignment distance). */
function distance(a: string, b: string): number {
  const row = (i: number): number[] => rows[i] ?? [];
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const now = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      now[j] = Math.min(
        (row(i - 1)[j] ?? 0) + 1,
        (now[j - 1] ?? 0) + 1,
        (row(i - 1)[j - 1] ?? 0) + cost,
        swapped ? (row(i - 2)[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    rows.push(now);
  }
  return row(a.length)[b.length] ?? 0;
}
