// The few lines of `/metrics` that the console shows, out of Prometheus' text format. Lines that are none are passed over.

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const line = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*$/;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const row of text.split('\n')) {
    const [, name, labels = '', value] = (row.startsWith('#') ? undefined : line.exec(row)) ?? [];
    if (name === undefined || value === undefined) continue;
    const number = numberOf(value);
    if (number !== undefined) samples.push({ name, labels: labelsOf(labels), value: number });
  }
  return samples;
}

/** The samples' sum; undefined where there is none of that name and labels. */
export function sumOf(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = Object.entries(labels);
  const found = samples.filter(
    (each) => each.name === name && wanted.every(([key, value]) => each.labels[key] === value),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

function labelsOf(text: string): Record<string, string> {
  const pairs = [...text.matchAll(label)].map(([, key = '', value = '']) => [key, unescaped(value)] as const);
  return Object.fromEntries(pairs);
}

function unescaped(value: string): string {
  return value.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

function numberOf(text: string): number | undefined {
  const named: Readonly<Record<string, number>> = {
    '+Inf': Number.POSITIVE_INFINITY,
    '-Inf': Number.NEGATIVE_INFINITY,
  };
  const value = named[text] ?? Number(text);
  return Number.isNaN(value) ? undefined : value;
}
