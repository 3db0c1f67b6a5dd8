// A log that is cut, removed or replaced under a running store: whatever is left, and whenever it is noticed, nothing
// older than the process had acknowledged is served, and no other history, and the files stay as they were found.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatMark } from '../../src/model/store-mark.ts';
import { FileLost } from '../../src/store/files.ts';
import type { Store, StoreEvent } from '../../src/store/port.ts';
import { listStoreFiles, logName, snapshotName } from '../../src/store/store-files.ts';
import { createTestStore, openEmbedded, testDir, testOptions } from '../support/embedded-store.ts';
import { prng } from '../support/prng.ts';
import { Inode } from '../support/sim-disk.ts';
import { SimFiles } from '../support/sim-files.ts';
import type { NoteTables } from './contract.ts';

const names = (store: Store<NoteTables>): Promise<string[]> =>
  store.transaction((tx) => tx.notes.all().map((note) => note.name));

type Content = ReadonlyMap<string, Uint8Array>;

function contentOf(files: SimFiles): Content {
  return new Map([...files.disk.names].map(([name, inode]) => [name, inode.data.slice()]));
}

/** Makes the disk hold exactly this content, each file under a new inode or, if `inPlace`, in the open one. */
function putBack(files: SimFiles, content: Content, inPlace: boolean): void {
  for (const name of [...files.disk.names.keys()]) {
    if (!content.has(name)) files.disk.change(testDir, (all) => all.delete(name));
  }
  for (const [name, bytes] of content) write(files, name, bytes, inPlace);
}

function write(files: SimFiles, name: string, bytes: Uint8Array, inPlace: boolean): void {
  const known = files.disk.names.get(name);
  if (known && equal(known.data, bytes)) return;
  const inode: Inode = (inPlace && known) || new Inode();
  inode.truncate(0);
  inode.append(bytes);
  inode.sync();
  files.disk.change(testDir, (all) => all.set(name, inode));
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

interface Running {
  readonly files: SimFiles;
  readonly store: Store<NoteTables>;
  readonly events: StoreEvent[];
  /** The files after each acknowledged transaction, starting before the first. */
  readonly history: readonly Content[];
  readonly wanted: readonly string[];
  /** The last log. */
  readonly log: string;
  retry(): Promise<void>;
}

/**
 * A store opened twice, with a checkpoint in between, so that it has several runs, a snapshot and more than one log.
 */
async function running(): Promise<Running> {
  const generator = prng(3);
  const files = new SimFiles({ prng: generator });
  await createTestStore(files, generator);
  const later: (() => void)[] = [];
  const events: StoreEvent[] = [];
  const options = testOptions(files, generator, {
    later: (_milliseconds, run) => void later.push(run),
    onEvent: (event) => void events.push(event),
  });
  const first = await openEmbedded(options);
  await first.transaction((tx) => tx.notes.add('before'));
  await first.checkpoint();
  await first.transaction((tx) => tx.notes.add('between'));
  await first.close();
  const store = await openEmbedded(options);
  const history: Content[] = [contentOf(files)];
  for (const name of ['a', 'b', 'c']) {
    await store.transaction((tx) => tx.notes.add(name));
    history.push(contentOf(files));
  }
  const { logs } = await listStoreFiles(files, testDir);
  const retry = async (): Promise<void> => {
    for (const run of later.splice(0)) run();
    await store.transaction(() => undefined).catch(() => undefined);
  };
  const log = logName(testDir, logs.at(-1) ?? 0);
  return { files, store, events, history, wanted: ['before', 'between', 'a', 'b', 'c'], log, retry };
}

/** A copy of the directory that is served and written to elsewhere. */
async function fork(content: Content, transactions: number): Promise<Content> {
  const generator = prng(99);
  const files = new SimFiles({ prng: generator });
  await createTestStore(files, generator);
  putBack(files, content, false);
  const other = await openEmbedded(testOptions(files, generator));
  for (let i = 0; i < transactions; i++) await other.transaction((tx) => tx.notes.add(`other${i}`));
  await other.close();
  return contentOf(files);
}

type Damage = (run: Running) => void | Promise<void>;

const isLog = (name: string): boolean => name.includes('/log-');
const without = (run: Running, content: Content, gone: (name: string) => boolean): void =>
  putBack(run.files, new Map([...content].filter(([name]) => !gone(name))), true);
const last = ({ history }: Running): Content => history.at(-1) ?? new Map();

/** Every state of the files in the acknowledged history, and others that an attacker can make. */
const damages: Record<string, Damage> = {
  'the log is removed': (run) => without(run, last(run), (name) => name === run.log),
  'all logs are removed': (run) => without(run, last(run), isLog),
  'all is removed': (run) => without(run, last(run), () => true),
  'the log is cut to nothing': (run) => write(run.files, run.log, new Uint8Array(0), true),
  'the log is cut behind its header': (run) => cutTo(run, () => 96),
  'the log is cut inside its last record': (run) => cutTo(run, (end) => end - 7),
  'a copy that was served elsewhere is put there': async (run) =>
    putBack(run.files, await fork(run.history[0] ?? new Map(), 2), false),
  'one of the same length is': async (run) => putBack(run.files, await fork(run.history[0] ?? new Map(), 3), false),
  'one that went further is': async (run) => putBack(run.files, await fork(run.history[0] ?? new Map(), 9), false),
  'one of an earlier snapshot that went further is': async (run) => {
    const content = await fork(run.history[2] ?? new Map(), 4);
    putBack(run.files, content, true);
  },
};
for (const inPlace of [true, false]) {
  for (const back of [1, 2, 3]) {
    damages[`the files are as ${back} transactions before, ${inPlace ? 'in place' : 'replaced'}`] = (run) =>
      putBack(run.files, run.history[run.history.length - 1 - back] ?? new Map(), inPlace);
    damages[`the log alone is as ${back} transactions before, ${inPlace ? 'in place' : 'replaced'}`] = (run) => {
      const bytes = run.history[run.history.length - 1 - back]?.get(run.log);
      assert.ok(bytes);
      write(run.files, run.log, bytes, inPlace);
    };
  }
}

function cutTo(run: Running, where: (end: number) => number): void {
  const bytes = last(run).get(run.log) ?? new Uint8Array();
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  write(run.files, run.log, bytes.slice(0, where(end)), true);
}

/** The operation that notices it. */
const moments: Record<string, (run: Running) => Promise<unknown>> = {
  'at the next write': ({ store }) => store.transaction((tx) => tx.notes.add('next')),
  'at a checkpoint': ({ store }) => store.checkpoint(),
  'when the files are copied': async ({ store }) => (await store.hold(false))?.release(),
  'when a write fails': async ({ store, files }) => {
    files.failure = (step) => (step === 'append' ? 'EIO' : undefined);
    const done = store.transaction((tx) => tx.notes.add('next'));
    await done.catch(() => {});
    files.failure = undefined;
    return done;
  },
  'when an fsync fails': async ({ store, files }) => {
    files.failure = (step) => (step === 'sync' ? 'EIO' : undefined);
    const done = store.transaction((tx) => tx.notes.add('next'));
    await done.catch(() => {});
    files.failure = undefined;
    return done;
  },
};

for (const [when, moment] of Object.entries(moments)) {
  test(`${when}, nothing is served from less than was acknowledged, whatever happened to the files`, async (context) => {
    for (const [what, damage] of Object.entries(damages)) {
      await context.test(what, async () => {
        const run = await running();
        const mark = formatMark(run.store.mark);
        await damage(run);
        const left = contentOf(run.files);
        // A write that the disk failed has an error of its own; everything after a lost file is out of service.
        await assert.rejects(moment(run), when.includes('fails') ? Error : { code: 'unavailable' });
        for (let tries = 0; tries < 3; tries++) {
          await assert.rejects(names(run.store), { code: 'unavailable' });
          assert.equal(run.store.status().writable, false);
          await run.retry();
        }
        assert.equal(formatMark(run.store.mark), mark, 'it still knows how far it was');
        assert.ok(
          run.events.some(({ kind }) => kind === 'log-lost' || kind === 'recovery-failed' || kind === 'write-failed'),
          run.events.map(({ message }) => message).join('; '),
        );
        assert.ok(!run.events.some(({ kind }) => kind === 'recovered'));
        for (const [name, bytes] of left) {
          assert.ok(equal(run.files.disk.names.get(name)?.data ?? new Uint8Array(), bytes), `${name} was changed`);
        }

        // Only once all acknowledged data are back does it serve again.
        putBack(run.files, last(run), false);
        await run.retry();
        assert.deepEqual((await names(run.store)).slice(0, 5), run.wanted);
        await run.store.close();
      });
    }
  });
}

test('a snapshot that was put back is no way into the past, at a checkpoint or behind a failed write', async () => {
  for (const when of ['at a checkpoint', 'when a write fails'] as const) {
    const run = await running();
    const [old] = run.history;
    const { snapshots } = await listStoreFiles(run.files, testDir);
    const name = snapshotName(testDir, snapshots.at(-1) ?? 0);
    const before = old?.get(name);
    assert.ok(before);
    await run.store.checkpoint();
    await run.store.transaction((tx) => tx.notes.add('d'));
    putBack(run.files, new Map([...contentOf(run.files)].filter(([each]) => !each.includes('/snapshot-'))), true);
    write(run.files, name, before, false);
    await assert.rejects(moments[when]?.(run) ?? Promise.resolve());
    if (when === 'when a write fails') await assert.rejects(names(run.store), { code: 'unavailable' });
    else assert.deepEqual((await names(run.store)).slice(0, 6), [...run.wanted, 'd'], 'what is in memory is whole');
    await run.store.close();
  }
});

test('what stands still says what to do', async () => {
  const run = await running();
  cutTo(run, () => 96);
  await assert.rejects(run.store.transaction((tx) => tx.notes.add('next')));
  await assert.rejects(names(run.store), (error: unknown) => {
    assert.ok(error instanceof Error && 'hint' in error);
    assert.match(error.message, /the file was cut.*put the newer file back, or stop the server and restore a backup/);
    assert.match(String(error.hint), /revoked credentials would be alive again/);
    return true;
  });
  const said = run.events.filter(({ kind }) => kind === 'log-lost');
  assert.ok(said[0]?.cause instanceof FileLost);
  await run.store.close();
});
