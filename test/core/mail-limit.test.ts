// The number of mails that a user can be made to receive, against the documented rule.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { mailLimit } from '../../src/core/password-reset.ts';

const hour = 3_600_000;

test('five within an hour, and asking for others frees nobody', () => {
  let now = 0;
  const limit = mailLimit({ elapsed: () => now });
  for (let i = 0; i < 5; i++) assert.ok(limit.allows('victim'));
  for (let i = 0; i < 20_800; i++) assert.ok(limit.allows(`user${i}`));
  assert.ok(!limit.allows('victim'));
  now += hour;
  assert.ok(limit.allows('victim'));
  assert.equal(limit.size, 1, 'what is over is forgotten');
});

test('several nodes divide the mails among them, and each may send one', () => {
  for (const [nodes, each] of [
    [1, 5],
    [2, 2],
    [3, 1],
    [9, 1],
  ] as const) {
    const limit = mailLimit({ elapsed: () => 0, sharers: () => nodes });
    let sent = 0;
    while (limit.allows('victim')) sent++;
    assert.equal(sent, each, `${nodes}`);
  }
});

test('property: as an unbounded table has it', () => {
  const step = fc.record({ user: fc.constantFrom('a', 'b', 'c'), wait: fc.constantFrom(0, 1, 700_000, hour) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      let now = 0;
      const limit = mailLimit({ elapsed: () => now });
      const sent: { readonly user: string; readonly at: number }[] = [];
      for (const { user, wait } of steps) {
        now += wait;
        const recent = sent.filter((each) => each.at > now - hour);
        const allowed = recent.filter((each) => each.user === user).length < 5;
        assert.equal(limit.allows(user), allowed);
        if (allowed) sent.push({ user, at: now });
        assert.ok(limit.size <= new Set([...recent.map((each) => each.user), user]).size);
      }
    }),
  );
});
