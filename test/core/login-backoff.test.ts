import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LoginTry, loginBackoff } from '../../src/core/login-backoff.ts';
import { KmsError } from '../../src/errors.ts';

function setUp(options: { remembered?: number; waiting?: number } = {}) {
  const clock = { now: 1_000_000 };
  const inTenants = loginBackoff({ now: () => clock.now, ...options });
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
  return { clock, backoff, fail, refused };
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
  const tries: LoginTry[] = [];
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

test('memory is bounded: the longest untouched is forgotten', async () => {
  const { fail, refused } = setUp({ remembered: 10 });
  for (let i = 0; i < 5; i++) await fail('ada', '192.0.2.1');
  for (let i = 0; i < 9; i++) await fail(`user${i}`, `198.51.100.${i}`);
  assert.equal(await refused('ada', '192.0.2.1'), 1);
  for (let i = 0; i < 20; i++) await fail(`other${i}`, `203.0.113.${i}`);
  assert.equal(await refused('ada', '192.0.2.1'), 0);
});

test('nothing is counted across tenants', async () => {
  const { backoff, fail, refused } = setUp();
  for (let i = 0; i < 50; i++) await fail(`user${i % 10}`, '192.0.2.1');
  assert.equal(await refused('user1', '192.0.2.1'), 1);
  (await backoff.begin('user1', '192.0.2.1', 'tenant_b')).failed();
});
