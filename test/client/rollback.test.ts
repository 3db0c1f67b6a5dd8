// The state that a client remembers of an appliance, and when it reports a rollback.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseState, rollbackWatch, type SeenState, type StateMemory } from '../../src/client/rollback.ts';

const appliance = '0123456789abcdef0123456789abcdef';
const tenant = 'tenant_01m7y2xq8mywjby9aqs86mgmwf';

function answer(epoch: number, sequence: number): Response {
  return new Response('{}', { headers: { 'Kms-State': `${appliance}.${tenant}.${epoch}.${sequence}` } });
}

function memory(kept?: SeenState): StateMemory & { kept: SeenState | undefined } {
  const place = {
    kept,
    load: async () => (place.kept ? [place.kept] : []),
    save: async (state: SeenState) => {
      place.kept = state;
    },
  };
  return place;
}

const state = (epoch: number, sequence: number): SeenState => ({ appliance, tenant, epoch, sequence, runs: [] });

async function run(place: StateMemory, ...answers: Response[]): Promise<string[]> {
  const told: string[] = [];
  const watch = rollbackWatch(place, {
    onOlder: (seen, before) =>
      void told.push(`older ${seen.epoch}.${seen.sequence} < ${before.epoch}.${before.sequence}`),
    onNewEpoch: (seen) => void told.push(`epoch ${seen.epoch}`),
  });
  for (const each of answers) await watch.see(each);
  await watch.save();
  return told;
}

test('the value of the header', () => {
  assert.deepEqual(parseState(`${appliance}.${tenant}.1.2`), state(1, 2));
  for (const wrong of [
    null,
    '',
    'x',
    `${appliance}.${tenant}.1`,
    `${appliance}.${tenant}.1.2.3`,
    `${appliance}.${tenant}.1.2.0-xyz`,
    `${appliance}.${tenant}.-1.2`,
  ]) {
    assert.equal(parseState(wrong), undefined);
  }
});

test('the highest is remembered', async () => {
  const place = memory();
  assert.deepEqual(await run(place, answer(1, 5), answer(1, 9), answer(1, 7)), []);
  assert.deepEqual(place.kept, state(1, 9));
  assert.deepEqual(await run(place, answer(1, 9), answer(1, 10)), []);
  assert.deepEqual(place.kept, state(1, 10));
});

test('one that was set back is told once a run, and what is remembered stays', async () => {
  const place = memory(state(1, 10));
  for (let i = 0; i < 2; i++) assert.deepEqual(await run(place, answer(1, 4), answer(1, 5)), ['older 1.4 < 1.10']);
  assert.deepEqual(place.kept, state(1, 10));
});

test('a later epoch silences it, an earlier one does not', async () => {
  const place = memory(state(5, 10));
  assert.deepEqual(await run(place, answer(9, 1), answer(9, 2)), ['epoch 9']);
  assert.deepEqual(place.kept, state(9, 2));
  assert.deepEqual(await run(place, answer(5, 100)), ['older 5.100 < 9.2']);
});

test('what another run remembers while this one waits for its answer is not held against it', async () => {
  const place = memory(state(1, 10));
  const told: string[] = [];
  const watch = rollbackWatch(place, { onOlder: () => void told.push('older') });
  await watch.ready;
  const own = answer(1, 11);
  await run(place, answer(1, 12));
  await watch.see(own);
  await watch.save();
  assert.deepEqual(told, []);
});

test('what is kept already is not kept again', async () => {
  const place = memory();
  let saves = 0;
  const watch = rollbackWatch(
    { ...place, save: async () => void saves++ },
    { onOlder: () => assert.fail('nothing is older') },
  );
  for (const sequence of [5, 5, 6, 6, 5]) {
    await watch.see(answer(1, sequence));
    await watch.save();
  }
  assert.equal(saves, 2);
});

test('answers that overtake each other, without the header, or with a memory that fails', async () => {
  const place = memory(state(1, 10));
  assert.deepEqual(await run(place, answer(1, 12), answer(1, 11), new Response('{}')), []);
  const failing: StateMemory = {
    load: () => Promise.reject(new Error('no')),
    save: () => Promise.reject(new Error('no')),
  };
  assert.deepEqual(await run(failing, answer(1, 1)), []);
});

const older = '0011223344556677';
const newer = '8899aabbccddeeff';

function inRun(sequence: number, ...runs: string[]): Response {
  return new Response('{}', { headers: { 'Kms-State': [`${appliance}.${tenant}.1.${sequence}`, ...runs].join('.') } });
}

test('another history is told, although its number is larger, and what is remembered stays', async () => {
  const place = memory();
  assert.deepEqual(await run(place, inRun(100, `0-${older}`)), []);
  for (let n = 0; n < 2; n++) {
    assert.deepEqual(await run(place, inRun(102 + n, `90-${newer}`, `0-${older}`)), [`older 1.${102 + n} < 1.100`]);
    assert.equal(place.kept?.sequence, 100);
  }
  // A start that continued from the last state is no rollback.
  assert.deepEqual(await run(place, inRun(101, `100-${newer}`, `0-${older}`)), []);
  assert.equal(place.kept?.sequence, 101);
});

test('another history is told in the middle of a run too, once', async () => {
  const answers = [
    inRun(10, `0-${older}`),
    inRun(12, `8-${newer}`, `0-${older}`),
    inRun(13, `8-${newer}`, `0-${older}`),
  ];
  assert.deepEqual(await run(memory(), ...answers), ['older 1.12 < 1.10']);
});

test('what was remembered before there were runs is read', async () => {
  const place = memory(parseState(`${appliance}.${tenant}.1.50`));
  assert.deepEqual(await run(place, inRun(61, `60-${newer}`)), []);
  assert.deepEqual(place.kept?.runs, [{ from: 60, tag: newer }]);
});
