// A state in memory that did not take a commit: it is discarded, every caller gets an answer, and what was durable
// stays known.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store } from '../../src/store/port.ts';
import { StateLost } from '../../src/store/session.ts';
import type { Sql } from '../../src/store/sql.ts';
import { Turns } from '../../src/store/turns.ts';
import { simStore } from '../support/embedded-store.ts';
import { simShared } from '../support/shared-store.ts';
import { noteTables } from './contract.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Counts with a statement that fails for a note that exists, as soon as it runs. */
const tables = (sql: Sql) => ({
  ...noteTables(sql),
  count: (name: string) => sql.count('INSERT INTO notes (size, name) VALUES (?, ?)', name),
});

type Counting = Store<ReturnType<typeof tables>>;

/** More than are kept beside a table: the next transaction runs the oldest ones. */
const tallies = 16_400;

for (const [where, open] of [
  ['in files', async () => (await simStore({ tables })).store as Counting],
  ['in rows', async () => (await (await simShared({ tables })).node()).store as Counting],
] as const) {
  test(`an appended nothing that loses the state is refused, and the store can be closed, ${where}`, async () => {
    const store = await open();
    await store.transaction((tx) => {
      tx.notes.add('0');
      for (let n = 0; n < tallies; n++) tx.count(`${n}`);
    });
    await assert.rejects(store.dropActivity(1), /did not take a commit|cannot serve|taken back/);
    await store.close();
  });
}

test('what becomes durable after the state was lost is part of the mark, also while it is not recovered', async () => {
  const { store, files } = await simStore();
  const { sequence } = store.mark;
  const written = store.transaction((tx) => tx.notes.add('a'));
  const lost = store.transaction(() => {
    throw new StateLost(new Error('no memory'));
  });
  files.failure = (step) => (step === 'read' ? 'EIO' : undefined);
  await assert.rejects(lost, StateLost);
  await written;
  for (let n = 0; n < 20; n++) await turn();
  assert.equal(store.status().writable, false);
  assert.equal(store.mark.sequence, sequence + 1);
  await store.close();
  assert.equal(store.mark.sequence, sequence + 1);
});

test('no job runs on a store that failed as its turn began', async () => {
  const failing = { dead: false };
  const next = { dead: false };
  const turns = new Turns({
    limits: { turnRequests: 10, turnMs: 5 },
    serving: async () => (failing.dead ? next : failing),
    begin: async () => {
      failing.dead = true;
      return true;
    },
    end: async () => {},
  });
  const ran: (typeof next)[] = [];
  turns.add({ run: async (live) => void ran.push(live), refuse: assert.fail });
  await turns.idle();
  assert.deepEqual(
    ran.map((live) => live === next),
    [true],
  );
});
