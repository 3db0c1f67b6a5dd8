// Back-off of failed logins: by name and address, bounded in memory, and shared by nodes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { BackoffTurn } from '../../src/core/backoff.ts';
import { loginBackoff } from '../../src/core/login-backoff.ts';
import { KmsError } from '../../src/errors.ts';
import { networksOf } from '../../src/model/addresses.ts';

const random = (length: number): Uint8Array => new Uint8Array(length).fill(7);

function setUp(
  options: { held?: number; lots?: number; waiting?: number; sharers?: () => number } = {},
  clock = { now: 1_000_000 },
) {
  const inTenants = loginBackoff({ elapsed: () => clock.now, random, ...options });
  const backoff = {
    begin: (name: string, address: string, tenant = 'tenant_a') => inTenants.begin({ tenant, name, address }),
  };
  const fail = async (name = 'ada', address = '192.0.2.1') => (await backoff.begin(name, address)).failed();
  const refused = async (name = 'ada', address = '192.0.2.1'): Promise<number> => {
    try {
      (await backoff.begin(name, address)).abandoned();
      return 0;
    } catch (error) {
      assert.ok(error instanceof KmsError && error.code === 'rate-limited');
      return error.retryAfter ?? Number.NaN;
    }
  };
  const from = (address = '192.0.2.1', tenant = 'tenant_a') => inTenants.refusal({ tenant, address })?.retryAfter ?? 0;
  return { clock, backoff, fail, refused, from, size: () => inTenants.size };
}

test('five failures are free; each one after doubles the wait, from 1 s to 15 min', async () => {
  const { clock, fail, refused } = setUp();
  for (let i = 0; i < 5; i++) {
    assert.equal(await refused(), 0);
    await fail();
  }
  for (const wait of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]) {
    assert.equal(await refused(), wait);
    clock.now += wait * 1_000 - 1;
    assert.equal(await refused(), 1);
    clock.now += 1;
    await fail();
  }
});

test('refused tries lengthen nothing', async () => {
  const { clock, fail, refused } = setUp();
  for (let i = 0; i < 6; i++) {
    await fail();
    clock.now += 1_000;
  }
  for (let i = 0; i < 100; i++) assert.equal(await refused(), 1);
  clock.now += 1_000;
  assert.equal(await refused(), 0);
});

test('a success ends it', async () => {
  const { clock, backoff, fail, refused } = setUp();
  for (let i = 0; i < 5; i++) await fail();
  clock.now += 1_000;
  (await backoff.begin('ada', '192.0.2.1')).succeeded();
  for (let i = 0; i < 5; i++) {
    assert.equal(await refused(), 0);
    await fail();
  }
  assert.equal(await refused(), 1);
});

test('names are counted without regard to case, others and other addresses are let in', async () => {
  const { fail, refused } = setUp();
  for (const name of ['ada', 'Ada', 'ADA', 'aDa', 'adA']) await fail(name);
  assert.equal(await refused('ada'), 1);
  assert.equal(await refused('bob'), 0);
  assert.equal(await refused('ada', '192.0.2.2'), 0);
});

test('fifty failures for one name from anywhere, fifty from one address for any name', async () => {
  const { fail, refused } = setUp();
  for (let i = 0; i < 50; i++) await fail('ada', `198.51.100.${i}`);
  assert.equal(await refused('ada', '203.0.113.9'), 1);
  assert.equal(await refused('bob', '203.0.113.9'), 0);
  for (let i = 0; i < 50; i++) await fail(`user${i}`, '203.0.113.7');
  assert.equal(await refused('eve', '203.0.113.7'), 1);
  assert.equal(await refused('eve', '203.0.113.8'), 0);
});

test('one IPv6 host is one address, and so is IPv4 within IPv6', async () => {
  const { fail, refused } = setUp();
  for (let i = 1; i <= 5; i++) await fail('ada', `2001:db8::${i}:${i}`);
  assert.equal(await refused('ada', '2001:0db8:0:0:ffff::1'), 1);
  assert.equal(await refused('ada', '2001:db8:0:1::1'), 0);
  for (let i = 0; i < 5; i++) await fail('bob', '::ffff:192.0.2.77');
  assert.equal(await refused('bob', '192.0.2.77'), 1);
});

test('of a thousand wrong tries at once five are looked at', async () => {
  const { backoff } = setUp();
  let looked = 0;
  const outcomes = await Promise.allSettled(
    Array.from({ length: 1_000 }, async () => {
      const attempt = await backoff.begin('ada', '192.0.2.1');
      looked++;
      await new Promise(setImmediate);
      attempt.failed();
    }),
  );
  assert.equal(looked, 5);
  assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 995);
});

test('fifty right logins at once all get in, in turn', async () => {
  const { backoff } = setUp();
  let atOnce = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      const attempt = await backoff.begin('ada', '192.0.2.1');
      most = Math.max(most, ++atOnce);
      await new Promise(setImmediate);
      atOnce--;
      attempt.succeeded();
    }),
  );
  assert.equal(most, 5);
});

test('after a wait one try at a time is looked at', async () => {
  const { clock, backoff, fail } = setUp();
  for (let i = 0; i < 5; i++) await fail();
  clock.now += 1_000;
  const first = await backoff.begin('ada', '192.0.2.1');
  const second = backoff.begin('ada', '192.0.2.1');
  first.failed();
  await assert.rejects(second, (error) => error instanceof KmsError && error.retryAfter === 2);
});

test('an abandoned try counts for nothing, and a try has one outcome', async () => {
  const { backoff, refused } = setUp();
  const tries: BackoffTurn[] = [];
  for (let i = 0; i < 20; i++) {
    const attempt = await backoff.begin('ada', '192.0.2.1');
    attempt.abandoned();
    attempt.failed();
    tries.push(attempt);
  }
  assert.equal(tries.length, 20);
  assert.equal(await refused(), 0);
});

test('waiting tries are bounded', async () => {
  const { backoff } = setUp({ waiting: 3 });
  for (let i = 0; i < 5; i++) await backoff.begin('ada', '192.0.2.1');
  const waiting = [1, 2, 3].map(() => backoff.begin('ada', '192.0.2.1'));
  await assert.rejects(backoff.begin('ada', '192.0.2.1'), KmsError);
  assert.equal(waiting.length, 3);
});

test('20,800 made-up names from an address that waits free neither the victim nor the address', async () => {
  const { clock, fail, refused, from, size } = setUp();
  for (let i = 0; i < 50; i++) await fail('victim', `198.51.100.${i}`);
  for (let i = 0; i < 50; i++) await fail(`user${i}`, '203.0.113.9');
  for (let i = 0; i < 5; i++) {
    clock.now += 20_000;
    await fail('victim', '198.51.100.7');
    await fail('user0', '203.0.113.9');
  }
  const remembered = size();
  for (let i = 0; i < 20_800; i++) assert.ok((await refused(`made-up${i}`, '203.0.113.9')) > 0);
  assert.ok((await refused('victim', '192.0.2.200')) > 0);
  assert.ok(from('203.0.113.9') > 0);
  assert.equal(size(), remembered, 'a refused try is not remembered');
});

test('nor do as many from as many addresses', async () => {
  const { clock, fail, refused, from } = setUp({ held: 500 });
  for (let i = 0; i < 60; i++) {
    clock.now += 900_000;
    await fail('victim', '203.0.113.9');
  }
  for (let i = 0; i < 2_000; i++) await fail(`made-up${i}`, `198.51.${i >> 8}.${i & 255}`);
  assert.equal(await refused('victim', '192.0.2.200'), 900);
  assert.equal(from('203.0.113.9'), 900);
});

test('looking remembers nothing, and neither does what was abandoned or right', async () => {
  const { backoff, refused, from, size } = setUp();
  for (let i = 0; i < 100; i++) {
    assert.equal(await refused(`user${i}`, `192.0.2.${i}`), 0);
    assert.equal(from(`192.0.2.${i}`), 0);
    (await backoff.begin(`user${i}`, `192.0.2.${i}`)).succeeded();
  }
  assert.equal(size(), 0);
});

test('a count without a wait makes room, the longest untouched first', async () => {
  const { fail, refused } = setUp({ held: 10 });
  for (let i = 0; i < 4; i++) await fail('ada', '192.0.2.1');
  for (let i = 0; i < 20; i++) await fail(`other${i}`, `203.0.113.${i}`);
  await fail('ada', '192.0.2.1');
  assert.equal(await refused('ada', '192.0.2.1'), 0);
});

test('where waits that run fill the table, the others share lots: nobody is let in sooner, and it passes', async () => {
  const { clock, fail, refused, size } = setUp({ held: 3, lots: 2 });
  const waits: string[] = [];
  const makeWait = async (name: string): Promise<void> => {
    // Until it has to wait: by itself, or by its lot.
    for (let i = 0; i < 12 && (await refused(name, `192.0.2.${waits.length}`)) === 0; i++) {
      await fail(name, `192.0.2.${waits.length}`);
    }
    waits.push(name);
  };
  for (let i = 0; i < 30; i++) await makeWait(`user${i}`);
  for (const [i, name] of waits.entries()) assert.ok((await refused(name, `192.0.2.${i}`)) > 0, name);
  assert.ok(size() <= 3 * (3 + 2) + 30, `${size()} are remembered`);
  clock.now += 2 * 900_000;
  assert.equal(await refused('newcomer', '203.0.113.1'), 0);
});

test('property: as an unbounded table has it, as long as there is room', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 400 }), async (steps) => {
      const { clock, backoff, refused, from } = setUp();
      const model = new Model();
      for (const { what, name, address, wait } of steps) {
        if (what === 'wait') clock.now += wait;
        const expected = model.wait(name, address, clock.now);
        assert.equal(await refused(name, address), Math.ceil(expected / 1_000));
        assert.equal(from(address), Math.ceil(model.addressWait(address, clock.now) / 1_000));
        if (what === 'wait' || expected > 0) continue;
        const turn = await backoff.begin(name, address);
        turn[what]();
        model.tell(what, name, address, clock.now);
      }
    }),
    { numRuns: 150 },
  );
});

test('property: however small the table, no wait that runs is ever cut short, and memory stays bounded', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 4 }), async (steps, held) => {
      const { clock, backoff, refused, size } = setUp({ held, lots: 2 });
      /** The end of each pair's wait, as told. */
      const told = new Map<string, { readonly name: string; readonly address: string; readonly until: number }>();
      for (const { what, name, address, wait } of steps) {
        if (what === 'wait') clock.now += wait;
        const seconds = await refused(name, address);
        if (seconds > 0) told.set(`${name} ${address}`, { name, address, until: clock.now + (seconds - 1) * 1_000 });
        else if (what !== 'wait') (await backoff.begin(name, address))[what]();
        for (const each of told.values()) {
          if (each.until > clock.now) assert.ok((await refused(each.name, each.address)) > 0, JSON.stringify(each));
        }
        assert.ok(size() <= 4 * (held + 2), `${size()} are remembered`);
      }
    }),
    { numRuns: 150 },
  );
});

const names = ['ada', 'bob', 'eve', 'kim', 'lee', 'mia'] as const;
const addresses = [
  '192.0.2.1',
  '::ffff:192.0.2.2',
  '2001:db8::1',
  '2001:db8::ffff:1',
  '2001:db8:0:1::1',
  '2001:db9::1',
];

interface Step {
  readonly what: 'failed' | 'succeeded' | 'abandoned' | 'wait';
  readonly name: string;
  readonly address: string;
  readonly wait: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.oneof(
    { weight: 12, arbitrary: fc.constant('failed' as const) },
    { weight: 1, arbitrary: fc.constantFrom('succeeded' as const, 'abandoned' as const) },
    { weight: 6, arbitrary: fc.constant('wait' as const) },
  ),
  name: fc.constantFrom(...names),
  address: fc.constantFrom(...addresses),
  wait: fc.constantFrom(1, 999, 1_000, 2_500, 60_000, 900_000),
});

/** The rules as documented, in unbounded tables. */
class Model {
  readonly #counts = new Map<string, { failures: number; until: number }>();

  wait(name: string, address: string, now: number): number {
    return this.#most(this.#keys(name, address), now);
  }

  addressWait(address: string, now: number): number {
    return this.#most(this.#keys('', address).slice(2), now);
  }

  tell(what: 'failed' | 'succeeded' | 'abandoned', name: string, address: string, now: number): void {
    for (const [key, threshold] of this.#keys(name, address)) {
      if (what === 'succeeded') this.#counts.delete(key);
      if (what !== 'failed') continue;
      const { failures, until } = this.#counts.get(key) ?? { failures: 0, until: 0 };
      const past = failures + 1 - threshold;
      const wait = past < 0 ? until : now + Math.min(900_000, 1_000 * 2 ** past);
      this.#counts.set(key, { failures: failures + 1, until: wait });
    }
  }

  #most(keys: readonly (readonly [string, number])[], now: number): number {
    return Math.max(0, ...keys.map(([key]) => (this.#counts.get(key)?.until ?? 0) - now));
  }

  #keys(name: string, address: string): readonly (readonly [string, number])[] {
    const { host, site } = networksOf(address);
    const keys: [string, number][] = [
      [`pair ${name} ${host}`, 5],
      [`name ${name}`, 50],
      [`address ${host}`, 50],
    ];
    return site === undefined ? keys : [...keys, [`site ${site}`, 50]];
  }
}

test('what is one address, and what is one network', () => {
  for (const [host, site, ...texts] of [
    ['192.0.2.1', undefined, '192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:0201', '0:0:0:0:0:ffff:c000:201'],
    ['2001:db8:0:0::/64', '2001:db8:0::/48', '2001:db8::1', '2001:0DB8:0:0:ffff::1', '2001:db8::1%eth0'],
    ['2001:db8:a:1::/64', '2001:db8:a::/48', '2001:db8:a:1::', '2001:db8:a:1:2:3:192.0.2.1'],
    ['0:0:0:0::/64', '0:0:0::/48', '::1', '::', '::192.0.2.1'],
    ['unknown', undefined, 'unknown'],
    ['1::2::3', undefined, '1::2::3'],
    ['1:2:3', undefined, '1:2:3'],
  ] as const) {
    for (const text of texts) assert.deepEqual(networksOf(text), site === undefined ? { host } : { host, site }, text);
  }
});

test('fifty failures from a /48 hold back all of it, and nothing else', async () => {
  const { fail, refused, from } = setUp();
  for (let i = 0; i < 50; i++) await fail(`user${i}`, `2001:db8:7:${i.toString(16)}::1`);
  assert.equal(from('2001:db8:7:ffff::1'), 1);
  assert.equal(await refused('eve', '2001:db8:7:ffff::1'), 1);
  assert.equal(await refused('eve', '2001:db8:8::1'), 0);
});

test('nothing is counted across tenants', async () => {
  const { backoff, fail, refused } = setUp();
  for (let i = 0; i < 50; i++) await fail(`user${i % 10}`, '192.0.2.1');
  assert.equal(await refused('user1', '192.0.2.1'), 1);
  (await backoff.begin('user1', '192.0.2.1', 'tenant_b')).failed();
});

test('several nodes let no more guesses through than one would', async () => {
  /** The number of attempts admitted by then, if each is made as early as allowed, on any node. */
  const guesses = async (nodes: number, seconds: readonly number[]): Promise<number[]> => {
    const clock = { now: 1_000_000 };
    const each = Array.from({ length: nodes }, () => setUp({ sharers: () => nodes }, clock));
    const found: number[] = [];
    let [tries, at] = [0, 0];
    for (const until of seconds) {
      for (; at <= until; at++, clock.now += 1_000) {
        for (const { fail, refused } of each) {
          for (; (await refused()) === 0; tries++) await fail();
        }
      }
      found.push(tries);
    }
    return found;
  };
  const times = [0, 1, 3, 7, 15, 60, 600, 3_600, 20_000];
  const alone = await guesses(1, times);
  assert.deepEqual(alone.slice(0, 5), [5, 6, 7, 8, 9]);
  for (const nodes of [2, 3, 4, 5]) {
    for (const [i, many] of (await guesses(nodes, times)).entries()) {
      assert.ok(many <= (alone[i] ?? 0), `${nodes} nodes, ${times[i]} s: ${many}, one alone ${alone[i]}`);
      assert.ok(many > (alone[i] ?? 0) - 2 * nodes, 'and not many fewer');
    }
  }
  // Each node admits one attempt, however many nodes there are.
  assert.deepEqual(await guesses(8, [0, 1]), [8, 8]);
});

test('on one of three nodes: how long one waits there, and how many tries may be under way', async () => {
  let nodes = 3;
  const { clock, backoff, fail, refused } = setUp({ sharers: () => nodes });
  await fail();
  assert.equal(await refused(), 1);
  clock.now += 1_000;
  const first = await backoff.begin('ada', '192.0.2.1');
  const second = backoff.begin('ada', '192.0.2.1');
  first.failed();
  await assert.rejects(second, { code: 'rate-limited', retryAfter: 14 });
  clock.now += 13_000;
  assert.equal(await refused(), 1);
  // The other nodes are gone, and the counts stay.
  nodes = 1;
  clock.now += 1_000;
  await fail();
  assert.equal(await refused(), 4);
});
