// Backup files: made while the appliance writes and checkpoints, verified, restored with a crash at each step, and
// damaged at each byte.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { proveStores } from '../../src/backup/prove.ts';
import { backupFiles, checkDigests, openBackup, readSummary, sealOf, sourceOf } from '../../src/backup/read.ts';
import { restoreInto } from '../../src/backup/restore.ts';
import { collect, writeBackup } from '../../src/backup/write.ts';
import { sha256 } from '../../src/crypto/hash.ts';
import { KmsError } from '../../src/errors.ts';
import { restoreMark, sealFile, sealName } from '../../src/platform/data-dir.ts';
import type { Seal } from '../../src/seal/seal.ts';
import { testWorld } from '../support/context.ts';
import { MemoryFiles } from '../support/memory-files.ts';
import { type Prng, prng } from '../support/prng.ts';
import { createSimAppliance, numbersIn, openSimAppliance, simSeal } from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';
import { sqlWasm } from '../support/wasm.ts';

const name = 'b.kms-backup';

async function made(
  seed: number,
  busy = true,
): Promise<{ bytes: Uint8Array; seal: Seal; from: number; generator: Prng }> {
  const generator = prng(seed);
  const seal = simSeal(generator);
  const files = new SimFiles({ prng: generator });
  await createSimAppliance(files, seal, generator);
  const appliance = await openSimAppliance(files, seal, generator);
  for (let i = 0; i < 20; i++) await appliance.write();
  await appliance.tenant.checkpoint();
  for (let i = 0; i < 3; i++) await appliance.write();
  let going = busy;
  let last = 23;
  const writing = (async () => {
    while (going) {
      last = await appliance.write();
      if (generator.chance(0.1)) await appliance.tenant.checkpoint();
      await setImmediate();
    }
  })();
  const { stores, release } = await collect(appliance, { counted: true });
  const from = last;
  const pieces: Uint8Array[] = [];
  const random = (length: number): Uint8Array => generator.bytes(length);
  for await (const piece of writeBackup({ files, seal: () => seal, stores, at: 5, random })) {
    pieces.push(piece);
    if (busy) for (let turns = generator.int(20); turns > 0; turns--) await setImmediate();
  }
  release();
  going = false;
  await writing;
  await appliance.tenant.checkpoint();
  const left = await files.list('tenants/00112233445566aa');
  assert.equal(left.filter((each) => each.startsWith('snapshot')).length, 1, 'what was held is removed in the end');
  await appliance.close();
  return { bytes: new Uint8Array(Buffer.concat(pieces)), seal, from, generator };
}

async function proven(bytes: Uint8Array, seal: Seal): Promise<Awaited<ReturnType<typeof proveStores>>> {
  const files = new MemoryFiles();
  await files.replace(name, bytes);
  const backup = await openBackup(files, name);
  await checkDigests(files, backup);
  const own = seal.openOther(await sealOf(files, backup), 'the seal');
  const keysOf = (dir: string) => own.keysFor(sealName(dir));
  return proveStores(
    { files: backupFiles(files, backup), wasm: sqlWasm, keysOf },
    backup.manifest.stores,
    readSummary(backup, own),
  );
}

const isCode = (code: string) => (error: unknown) => error instanceof KmsError && error.code === code;

test('a backup made while requests write and checkpoints run is of one commit of each store', async () => {
  for (let seed = 1; seed <= 12; seed++) {
    const { bytes, seal, from } = await made(seed);
    const proof = await proven(bytes, seal);
    assert.equal(proof.stores, 2);
    assert.ok(proof.activities >= from, `seed ${seed}: ${from} were durable, ${proof.activities} are in the backup`);
  }
});

test('no byte can be another', async () => {
  const { bytes, seal } = await made(3, false);
  const files = new MemoryFiles();
  const check = async (changed: Uint8Array): Promise<void> => {
    await files.replace(name, changed);
    await checkDigests(files, await openBackup(files, name));
  };
  await check(bytes);
  // Every third byte of the structure, and every 211th of the whole file.
  const ends = bytes.length - 2500;
  for (let at = 0; at < bytes.length; at += at < 200 || at > ends ? 3 : 211) {
    const changed = bytes.slice();
    changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
    await assert.rejects(
      check(changed),
      (error) => error instanceof KmsError && /corrupt|refused/.test(error.code),
      `byte ${at}`,
    );
  }
  for (let length = 0; length < bytes.length; length += length > ends ? 13 : 197) {
    await assert.rejects(check(bytes.slice(0, length)), isCode('corrupt'), `${length} bytes`);
  }
  await assert.rejects(check(new Uint8Array([...bytes, 0])), isCode('corrupt'));
  await proven(bytes, seal);
});

test('digests that were made to fit do not make a backup', async () => {
  const { bytes, seal } = await made(4, false);
  const text = Buffer.from(bytes).toString('latin1');
  const at = text.indexOf('"sequence":');
  const changed = bytes.slice();
  const digit = at + '"sequence":'.length;
  changed[digit] = changed[digit] === 0x31 ? 0x32 : 0x31;
  // The last digest covers everything but the parts' content.
  const files = new MemoryFiles();
  await files.replace(name, bytes);
  const { parts } = await openBackup(files, name);
  const structure: Uint8Array[] = [];
  let from = 0;
  for (const part of parts.values()) {
    structure.push(changed.subarray(from, part.offset));
    from = part.offset + part.bytes;
  }
  structure.push(changed.subarray(from, -32));
  changed.set(sha256(new Uint8Array(Buffer.concat(structure))), bytes.length - 32);
  await assert.rejects(proven(changed, seal), /was not made by the appliance/);
});

test('a newer format says so, and another file is no backup', async () => {
  const { bytes } = await made(5, false);
  const files = new MemoryFiles();
  const newer = bytes.slice();
  newer[9] = 2;
  await files.replace(name, newer);
  await assert.rejects(openBackup(files, name), /backup format 2, this program reads up to 1/);
  await files.replace(name, new Uint8Array(100));
  await assert.rejects(openBackup(files, name), /is not a backup of kms/);
});

test('a restore that a crash cuts off at any step is nothing, or whole, and can be done again', async (context) => {
  const { bytes, seal, generator } = await made(6, false);
  let steps = 0;
  for (let crashAt = 1; ; crashAt++) {
    const source = new MemoryFiles();
    await source.replace(name, bytes);
    const backup = await openBackup(source, name);
    const own = seal.openOther(await sealOf(source, backup), 'the seal');
    const place = new SimFiles({ prng: generator, crashAt });
    const restore = async (files: SimFiles) =>
      restoreInto(
        { root: '/nowhere', files, wasm: sqlWasm },
        own,
        await sourceOf(source, backup, own),
        testWorld({ now: 9e6 }, crashAt),
      );
    const crashed = await restore(place).then(
      () => false,
      (error) => {
        if (!place.crashed) throw error;
        return true;
      },
    );
    let after = place.restart({ prng: generator });
    if (!(await after.exists(sealFile))) {
      assert.ok(crashed);
      if (crashAt > 3) assert.ok((await after.exists(restoreMark)) || (await after.list('system')).length === 0);
      await restore(after);
      after = after.restart({ prng: generator });
    }
    const back = await openSimAppliance(after, own, generator);
    assert.equal((await numbersIn(back.tenant)).length, 23);
    await back.close();
    steps = crashAt;
    if (!crashed) break;
  }
  context.diagnostic(`${steps} steps`);
  assert.ok(steps > 60);
});

test('keys that go while files are copied fail the backup', async () => {
  const generator = prng(7);
  const seal = simSeal(generator);
  const files = new SimFiles({ prng: generator });
  await createSimAppliance(files, seal, generator);
  const appliance = await openSimAppliance(files, seal, generator);
  const { stores, release } = await collect(appliance, { counted: true });
  let current = seal;
  const random = (length: number): Uint8Array => generator.bytes(length);
  await assert.rejects(async () => {
    for await (const _ of writeBackup({ files, seal: () => current, stores, at: 5, random })) {
      current = seal.withNextEpoch('00112233445566aa').withRetiredEpoch('00112233445566aa', 1);
    }
  }, isCode('unavailable'));
  release();
  await appliance.close();
});
