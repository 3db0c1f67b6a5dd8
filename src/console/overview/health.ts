// Parsers for the appliance's health: `/readyz`, which is public, and `/metrics` in Prometheus' text format, of which
// the console shows a few values.

export interface Readiness {
  readonly isReady: boolean;
  readonly isSealed: boolean;
  /** Why it is not ready. */
  readonly reason: string | undefined;
  /** Undefined if the response does not tell. */
  readonly backup: 'none' | { readonly at: string; readonly ageSeconds: number } | undefined;
  /** Undefined if nothing is shipped. */
  readonly shipping: { readonly isWorking: boolean; readonly ageSeconds: number | undefined } | undefined;
  /** Missing or changed files of the activity logs; undefined if there are none. */
  readonly faults: { readonly count: number; readonly first: readonly string[] } | undefined;
}

/** Reads a response with this status and body; fields that are missing or of a wrong type are left out. */
export function readinessOf(status: number, body: unknown): Readiness {
  const fields = recordOf(body) ?? {};
  const isReady = status === 200;
  const isSealed = fields.sealed === true;
  const message = typeof fields.message === 'string' ? fields.message : undefined;
  return {
    isReady,
    isSealed,
    reason: isReady ? undefined : (message ?? `it answers with status ${status}`),
    backup: backupOf(fields.lastVerifiedBackup),
    shipping: shippingOf(fields.shipping),
    faults: faultsOf(fields.activity),
  };
}

function backupOf(value: unknown): Readiness['backup'] {
  if (value === null) return 'none';
  const { at, ageSeconds } = recordOf(value) ?? {};
  return typeof at === 'string' && typeof ageSeconds === 'number' ? { at, ageSeconds } : undefined;
}

function shippingOf(value: unknown): Readiness['shipping'] {
  const fields = recordOf(value);
  if (!fields) return undefined;
  const { ok, ageSeconds } = fields;
  return { isWorking: ok === true, ageSeconds: typeof ageSeconds === 'number' ? ageSeconds : undefined };
}

function faultsOf(value: unknown): Readiness['faults'] {
  const { faulty, segments } = recordOf(value) ?? {};
  if (typeof faulty !== 'number' || faulty === 0) return undefined;
  const first = Array.isArray(segments) ? segments.filter((each) => typeof each === 'string') : [];
  return { count: faulty, first };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
}

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const line = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*$/;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

/** Lines that are not samples are skipped. */
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

/** The sum of the matching samples; undefined if there are none. */
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
