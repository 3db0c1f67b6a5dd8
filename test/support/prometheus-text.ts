// A strict reader of Prometheus' text format, version 0.0.4: anything that a scraper would refuse or misread is an
// error.
import assert from 'node:assert/strict';

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const label = '([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\\\\n]|\\\\["\\\\n])*)"';
const line = new RegExp(`^(${name})(?:\\{(${label}(?:,${label})*)\\})? (\\S+)$`);
const number = /^(?:[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/;

export function parsePrometheus(text: string): Map<string, Family> {
  assert.ok(text.endsWith('\n'), 'the last line ends');
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let current: Family | undefined;
  let help: readonly string[] | undefined;
  for (const each of text.split('\n')) {
    if (each === '') continue;
    const [, helped, words] = /^# HELP (\S+) (.+)$/.exec(each) ?? [];
    const [, typed, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(each) ?? [];
    if (helped !== undefined && words !== undefined) {
      help = [helped, words];
    } else if (typed !== undefined && type !== undefined) {
      assert.equal(help?.[0], typed, 'the help stands before the type');
      assert.ok(!families.has(typed), `${typed} stands in one place`);
      current = { name: typed, type, help: help?.[1] ?? '', samples: [] };
      families.set(typed, current);
    } else {
      assert.ok(current, each);
      const sample = parseSample(each);
      const suffixes = current.type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      assert.ok(
        suffixes.some((suffix) => `${current?.name}${suffix}` === sample.name),
        each,
      );
      const series = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
      assert.ok(!seen.has(series), `${each}: twice`);
      seen.add(series);
      current.samples.push(sample);
    }
  }
  for (const family of families.values()) checkFamily(family);
  return families;
}

function parseSample(text: string): Sample {
  const found = line.exec(text);
  assert.ok(found, `no sample: ${text}`);
  const value = found.at(-1) ?? '';
  assert.match(value, number, text);
  const labels: Record<string, string> = {};
  for (const [, key = '', escaped = ''] of (found[2] ?? '').matchAll(new RegExp(label, 'g'))) {
    assert.ok(!Object.hasOwn(labels, key), text);
    labels[key] = escaped.replace(/\\(.)/g, (_, character) => (character === 'n' ? '\n' : character));
  }
  return { name: found[1] ?? '', labels, value: Number(value.replace('Inf', 'Infinity')) };
}

function checkFamily({ name: family, type, samples }: Family): void {
  if (type === 'counter') {
    assert.match(family, /_total$/);
    for (const { value } of samples) assert.ok(value >= 0, family);
  }
  if (type !== 'histogram') return;
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...rest } }) => JSON.stringify(rest));
  for (const group of groups.values()) {
    const buckets = group.filter(({ name: each }) => each.endsWith('_bucket'));
    const bounds = buckets.map(({ labels }) => Number(labels.le?.replace('Inf', 'Infinity')));
    assert.deepEqual(
      bounds,
      [...bounds].sort((one, other) => one - other),
      family,
    );
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, family);
    const values = buckets.map(({ value }) => value);
    assert.deepEqual(
      values,
      [...values].sort((one, other) => one - other),
      `${family}: buckets hold those before them`,
    );
    assert.equal(group.find(({ name: each }) => each.endsWith('_count'))?.value, values.at(-1), family);
    assert.ok(group.some(({ name: each }) => each.endsWith('_sum')));
  }
}

/** The value with exactly these labels, or undefined. */
export function numberOf(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const samples = [...families.values()].flatMap((family) => family.samples).filter((each) => each.name === name);
  const wanted = Object.entries(labels);
  const found = samples.filter((each) => wanted.every(([key, value]) => each.labels[key] === value));
  assert.ok(found.length <= 1, `${name}: ${found.length} of them`);
  return found[0]?.value;
}
