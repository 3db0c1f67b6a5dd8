// A seeded, bounded fuzz over all endpoints that knows their shapes: valid requests with parts replaced by other parts
// and by odd values. No answer is a 500, and every error has a message. KMS_FUZZ_SEED replays a run or extends it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { type Sample, sampled } from './samples.ts';

const runs = Number(process.env.KMS_FUZZ_RUNS ?? 3000);
const seed = Number(process.env.KMS_FUZZ_SEED ?? 20260102);

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    '\ud800',
    '%',
    '%00',
    '__proto__',
    'true',
    '*',
    'x'.repeat(5000),
    '-1',
    '1e999',
    'null',
  ),
);
const oddValue = fc.oneof(oddText, fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(2 ** 53, -1, 0, 1.5, 1e308));

/** Origins, and texts that are none, at the appliance's own host too. */
const oddOrigins = [
  'null',
  '',
  'http://kms.test',
  'https://kms.test:1',
  'https://kms.test@other.test',
  ...['javascript', 'file', 'data', 'blob', 'chrome-extension'].map((scheme) => `${scheme}://kms.test`),
  'https://[::1',
  'kms.test',
  'x'.repeat(5000),
];

/** Valid values of all samples, to be put where they do not belong. */
async function material(a: Appliance): Promise<{ samples: Sample[]; values: unknown[] }> {
  const samples: Sample[] = [];
  for (const { make } of sampled) samples.push(await make(a));
  const values = samples.flatMap(({ params, query, body }) =>
    [params, query, body].flatMap((part) => Object.values(part ?? {})),
  );
  return { samples, values };
}

test('no request makes it fail', async () => {
  const a = await testAppliance();
  const { samples, values } = await material(a);
  const anyValue = fc.oneof(fc.constantFrom(...values), oddValue);
  const request = fc.record({
    index: fc.nat(samples.length - 1),
    mixed: fc.dictionary(
      fc.constantFrom('id', 'ringname', 'name', 'hash', 'header', 'limit', 'cursor', 'uid', 'key', 'op'),
      anyValue,
    ),
    field: fc.nat(10),
    value: anyValue,
    part: fc.constantFrom('params', 'query', 'body', 'raw', 'none'),
    raw: fc.oneof(fc.json({ maxDepth: 3 }), fc.string({ unit: 'binary' })),
    origin: fc.constantFrom(...oddOrigins),
    mix: fc.boolean(),
  });
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(request, async ({ index, mixed, field, value, part, raw, origin, mix }) => {
      const sample = samples[index] ?? {};
      const { endpoint } = sampled[index] ?? assert.fail();
      const change = (from: Readonly<Record<string, unknown>> = {}) => {
        const name = Object.keys(from)[field % Math.max(1, Object.keys(from).length)];
        return { ...from, ...(name !== undefined && { [name]: value }), ...(mix && mixed) };
      };
      const params = part === 'params' ? change(sample.params) : (sample.params ?? {});
      const query = part === 'query' ? { ...change(sample.query), ...mixed } : (sample.query ?? {});
      const body = part === 'body' ? change(sample.body) : sample.body;
      const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name) => escaped(Reflect.get(params, name)));
      const search = Object.entries(query).map(([name, each]) => `${escaped(name)}=${escaped(each)}`);
      const url = search.length === 0 ? path : `${path}?${search.join('&')}`;
      const hasBody = endpoint.body !== undefined;
      const asLocal = { env: { local: true }, key: null, headers: { origin } };
      const options = hasBody && part === 'raw' ? { ...asLocal, raw: raw.toWellFormed() } : asLocal;
      const answer = await a.call(endpoint.method, url, hasBody ? body : undefined, options);
      assert.notEqual(answer.status, 500, `${endpoint.method} ${url} ${JSON.stringify(body)}\n${a.log.at(-1)}`);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (answer.status === 422) assert.equal(answer.body.asset.valid, false);
      else if (answer.status === 400 && endpoint.silent400) assert.deepEqual(answer.body, {});
      else if (answer.status !== 200) assert.equal(typeof (answer.body.message ?? answer.body.state), 'string');
    }),
    { numRuns: runs, seed },
  );
  for (const status of [200, 400, 404]) assert.ok((statuses.get(status) ?? 0) > runs / 50, `too few of ${status}`);
  assert.deepEqual(
    [...statuses.keys()].filter((status) => ![200, 400, 401, 404, 422, 429].includes(status)),
    [],
  );
});

/** Percent-encoded if possible; lone surrogates stay, for the URL parser to replace. */
function escaped(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.isWellFormed() ? encodeURIComponent(text) : text.replace(/[#?&/]/g, '_');
}
