// Searches of the activity log return what a plain array of its records would, and read few parts of a segment.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { containing } from '../../src/model/json.ts';
import { type ActivityLogOptions, openActivityLog } from '../../src/store/activity/activity-log.ts';
import type { ActivityFilter, ActivityInput, ActivityRecord } from '../../src/store/port.ts';
import { isAudited } from '../support/plain-filter.ts';
import { activity, checkpoint, emptyOn, fill, testId, testLog } from './appliance-log.ts';

const times = fc.integer({ min: 0, max: 60 });
const names = fc.constantFrom('a', 'b', '__proto__', 'constructor', 'é"\\');
const values = fc.oneof(
  fc.constantFrom<unknown>(null, true, 1, 2, 'x', 'é"\n', [], [1, { a: 1 }], {}),
  fc.dictionary(names, fc.constantFrom<unknown>(1, 'x', { a: 1 }), { maxKeys: 2 }),
);
const props = fc.dictionary(names, values, { maxKeys: 3 });
const keyids = fc.constantFrom('apik_a', 'apik_b', 'apik_c', 'local');
const actions = fc.constantFrom('keyring.encrypt', 'keyring.decrypt', 'user.invite');
const rings = fc.constantFrom('', 'payroll', 'backup');

const addresses = fc.constantFrom(
  '192.0.2.1',
  '192.0.2.77',
  '198.51.100.1',
  '10.1.2.3',
  '2001:db8::1',
  '2001:db8:0:1::',
);
const things = fc.record(
  {
    type: fc.constantFrom('user', 'apikey'),
    id: fc.constantFrom('user_1', 'user_2'),
    name: fc.constantFrom('Ada', 'bob', 'user_1'),
  },
  { requiredKeys: ['type', 'id'] },
);
const flags = fc.constantFrom('*', 'keyring.list', 'keyring.payroll.read');
const deeds = fc.record(
  {
    object: things,
    objects: fc.array(things, { minLength: 1, maxLength: 2 }),
    granted: fc.array(flags, { minLength: 1, maxLength: 2 }),
    revoked: fc.array(flags, { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: [] },
);

const inputs: fc.Arbitrary<Omit<ActivityInput, 'id'>> = fc.record(
  {
    createdAt: times,
    keyid: keyids,
    action: actions,
    ringname: rings,
    validAction: fc.boolean(),
    status: fc.constantFrom(200, 403),
    props: fc.oneof(fc.constant({}), props, deeds),
    address: addresses,
    reporter: fc.constant('apik_r'),
  },
  { requiredKeys: ['createdAt', 'keyid', 'action', 'ringname', 'validAction', 'status', 'props'] },
);

const filters: fc.Arbitrary<ActivityFilter> = fc.record(
  {
    keyids: fc.array(fc.oneof(keyids, fc.constant('apik_none')), { maxLength: 3 }),
    action: fc.oneof(actions, fc.constant('none')),
    actions: fc.array(fc.oneof(actions, fc.constant('none')), { maxLength: 3 }),
    ringname: fc.oneof(rings, fc.constant('none')),
    valid: fc.boolean(),
    start: times,
    end: times,
    props,
    address: fc.oneof(
      addresses,
      fc.constantFrom('192.0.2.0/24', '192.0.2.64/26', '192.0.0.0/6', '0.0.0.0/0', '203.0.113.0/24', '203.0.113.9'),
      fc.constantFrom('2001:db8::/32', '2001:db8::/64', '2001:db8:0:1::/65', '::/0', '2001:db9::/33'),
    ),
    object: fc.constantFrom('user_1', 'user_2', 'ADA', 'bob', 'nobody'),
    objectType: fc.constantFrom('user', 'apikey'),
    granted: fc.oneof(fc.constant([]), fc.array(fc.oneof(flags, fc.constant('none')), { minLength: 1, maxLength: 2 })),
    revoked: fc.oneof(fc.constant([]), fc.array(flags, { minLength: 1, maxLength: 2 })),
    exclude: fc.record({ keyid: keyids, action: actions }, { requiredKeys: [] }),
    withoutActions: fc.array(actions, { maxLength: 2 }).map((names) => new Set(names)),
    withoutGranted: fc.array(actions, { maxLength: 2 }).map((names) => new Set(names)),
  },
  { requiredKeys: [] },
);

function matches(record: ActivityInput, filter: ActivityFilter): boolean {
  return (
    (!filter.keyids || filter.keyids.includes(record.keyid)) &&
    (filter.action ?? record.action) === record.action &&
    (filter.ringname ?? record.ringname) === record.ringname &&
    (filter.valid ?? record.validAction) === record.validAction &&
    record.createdAt >= (filter.start ?? 0) &&
    record.createdAt <= (filter.end ?? 60) &&
    containing(filter.props ?? {})(record.props) &&
    isAudited(record, filter)
  );
}

type Step =
  | { readonly kind: 'add'; readonly inputs: readonly Omit<ActivityInput, 'id'>[] }
  | { readonly kind: 'stage'; readonly input: Omit<ActivityInput, 'id'> }
  | { readonly kind: 'checkpoint' | 'reopen' };

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      inputs: fc.array(inputs, { maxLength: 60, size: 'max' }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stage' as const), input: inputs }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('checkpoint' as const, 'reopen' as const) }) },
);

/** The log beside a plain array of its records. */
class Twins {
  readonly model: ActivityRecord[] = [];
  readonly #options: ActivityLogOptions;
  log: ReturnType<typeof openActivityLog>;

  constructor(segmentRecords: number, cacheBytes: number) {
    const { files } = testLog();
    this.#options = { ...emptyOn(files), segmentRecords, cacheBytes };
    this.log = openActivityLog(this.#options);
  }

  async take(step: Step): Promise<void> {
    if (step.kind === 'add') {
      this.log.discardStaged();
      for (const input of step.inputs) {
        const seq = this.model.length + 1;
        const record = { ...input, id: testId(seq), seq };
        this.log.stage(record);
        this.model.push(record);
      }
      this.log.commitStaged();
    } else if (step.kind === 'stage') {
      this.log.stage({ ...step.input, id: testId(0) });
    } else if (step.kind === 'checkpoint') {
      await checkpoint(this.log, this.#options);
    } else {
      const { segments, head } = this.log;
      this.log = openActivityLog({ ...this.#options, segments, tail: this.log.tailLines(), head });
    }
  }
}

describe('search', () => {
  it('finds what a look at every record finds, page by page, while the log grows, rolls and is opened anew', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(steps, { minLength: 3, maxLength: 12, size: 'max' }),
        fc.array(
          fc.record({
            filter: filters,
            limit: fc.integer({ min: 1, max: 40 }),
            between: fc.array(steps, { maxLength: 2 }),
          }),
          {
            minLength: 1,
            maxLength: 6,
          },
        ),
        fc.integer({ min: 1, max: 300 }),
        fc.constantFrom(0, 20_000, 1_000_000),
        async (before, searches, segmentRecords, cacheBytes) => {
          const twins = new Twins(segmentRecords, cacheBytes);
          for (const step of before) await twins.take(step);
          for (const { filter, limit, between } of searches) {
            const expected = twins.model.filter((record) => matches(record, filter)).reverse();
            const found: ActivityRecord[] = [];
            for (let after: number | undefined, more = true; more; ) {
              const page = await twins.log.search(filter, after === undefined ? { limit } : { limit, after });
              found.push(...page.items);
              assert.ok(page.items.length <= limit);
              assert.equal(page.next !== undefined, found.length < expected.length);
              if (page.next !== undefined) assert.equal(page.items.length, limit);
              after = page.next;
              more = after !== undefined;
              for (const step of between) await twins.take(step);
            }
            assert.deepEqual(JSON.parse(JSON.stringify(found)), JSON.parse(JSON.stringify(expected)));
          }
          for (const seq of [1, twins.model.length >>> 1, twins.model.length]) {
            const record = twins.model[seq - 1];
            if (record) assert.equal((await twins.log.find(record.id))?.seq, seq);
          }
          assert.equal(await twins.log.find('act_none'), undefined);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('includes both ends of a time range, and continues at every record, at the edges of blocks and segments too', async () => {
    const { log, files } = testLog();
    const options = { ...emptyOn(files), segmentRecords: 300 };
    fill(log, 1, 640);
    await checkpoint(log, options);
    assert.equal(log.tailLines().length, 40);
    const at = (seq: number): number => activity(seq).createdAt;
    const found = async (filter: ActivityFilter, page: { limit: number; after?: number }) =>
      (await log.search(filter, page)).items.map((record) => record.seq);
    for (const edge of [1, 128, 129, 256, 257, 300, 301, 428, 429, 600, 601, 640]) {
      for (const seq of [edge - 1, edge, edge + 1].filter((number) => number >= 1 && number <= 640)) {
        assert.deepEqual(await found({ start: at(seq), end: at(seq) }, { limit: 9 }), [seq]);
        assert.deepEqual(await found({ start: at(seq) }, { limit: 1, after: seq + 1 }), [seq]);
        assert.deepEqual(await found({ end: at(seq) }, { limit: 1 }), [seq]);
        assert.deepEqual(await found({}, { limit: 1, after: seq + 1 }), [seq]);
        assert.deepEqual(await found({ valid: seq % 11 !== 0 }, { limit: 1, after: seq + 1 }), [seq]);
      }
    }
  });

  it('refuses a filter that JSON cannot say', async () => {
    const { log } = testLog();
    await assert.rejects(log.search({ props: { a: '\ud800' } }, { limit: 1 }), { code: 'invalid' });
  });

  it('finds records and takes filters with very many props, in the tail and in segments', async () => {
    const { log, files } = testLog();
    const options = { ...emptyOn(files), segmentRecords: 30 };
    const many = Object.fromEntries(Array.from({ length: 200_000 }, (_, index) => [`k${index}`, index]));
    const wide = { wide: many, same: 1 };
    for (let number = 1; number <= 30; number++)
      log.stage(activity(number, { props: number === 9 ? wide : { same: 1 } }));
    log.commitStaged();
    for (const rolled of [false, true]) {
      if (rolled) await checkpoint(log, options);
      const found = async (props: Record<string, unknown>): Promise<number[]> =>
        (await log.search({ props }, { limit: 100 })).items.map((record) => record.seq);
      assert.deepEqual(await found({ wide: { k199999: 199_999 } }), [9]);
      assert.deepEqual(await found({ wide: { k199999: 0 } }), []);
      assert.deepEqual(await found(wide), [9]);
      assert.deepEqual(await found({ wide: { ...many, k150000: 0 } }), []);
      assert.equal((await found({ same: 1 })).length, 30);
    }
    assert.ok(log.bytes < 2_000_000);
  });

  it('reads no segment that its summary rules out, and only the blocks that it needs', async () => {
    const { log, files } = testLog();
    const options = { ...emptyOn(files), segmentRecords: 1000 };
    for (let number = 1; number <= 10_000; number++) {
      const era = Math.ceil(number / 1000);
      log.stage(
        activity(number, { keyid: `apik_${era}`, ringname: number === 2500 ? 'rare' : 'usual', props: { era } }),
      );
    }
    log.commitStaged();
    await checkpoint(log, options);
    const readsOf = async (filter: ActivityFilter): Promise<number> => {
      const cold = openActivityLog({ ...options, segments: log.segments, tail: log.tailLines(), head: log.head });
      files.reads = 0;
      assert.ok((await cold.search(filter, { limit: 10 })).items.length > 0);
      return files.reads;
    };
    // Root, one page of postings, the texts and one block, of the last segment only.
    assert.ok((await readsOf({ keyids: ['apik_3'] })) <= 4);
    assert.ok((await readsOf({ props: { era: 5 } })) <= 4);
    assert.ok((await readsOf({ ringname: 'rare' })) <= 4);
    assert.ok((await readsOf({ start: 1_700_000_004_100, end: 1_700_000_004_105 })) <= 3);
    assert.ok((await readsOf({})) <= 3);
    files.reads = 0;
    assert.equal((await log.find(testId(2500)))?.seq, 2500);
    assert.ok(files.reads <= 3);
  });

  it('keeps within its budget of memory', async () => {
    const { ByteCache } = await import('../../src/store/activity/segment-reader.ts');
    const cache = new ByteCache(100);
    for (let number = 0; number < 50; number++) {
      cache.set(`n${number % 20}`, number, (number * 7) % 60);
      assert.ok(cache.used <= 100);
    }
    cache.set('big', 1, 101);
    assert.equal(cache.get('big'), undefined);
    cache.set('a', 1, 50);
    cache.set('b', 2, 50);
    cache.get('a');
    cache.set('c', 3, 50);
    assert.deepEqual([cache.get('a'), cache.get('b'), cache.get('c')], [1, undefined, 3]);
  });
});
