// Damage to every kind of file that an appliance with all options leaves: bits flipped in each region, ends cut off,
// bytes added. Each is refused with a line that names the file, or is harmless for a reason given here. The files are
// found by listing the output of a served appliance, so that a new kind must be added to the table. KMS_FLIPS sets the
// number of flips for each file.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { openBackupFile } from '../../src/backup/read.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { backupBeforeMigration } from '../../src/backup/write.ts';
import { openSealFile, SealKeeper, sealInFiles } from '../../src/custody/seal-keeper.ts';
import { examine } from '../../src/doctor/doctor.ts';
import type { Host } from '../../src/doctor/machine.ts';
import { KmsError } from '../../src/errors.ts';
import { fencedMark, sealMark } from '../../src/platform/data-dir.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { serve } from '../../src/server/serve.ts';
import { storesIn } from '../../src/storage/stores.ts';
import { DirectoryReceiver } from '../../src/telemetry/streaming/directory.ts';
import { prng } from '../support/prng.ts';
import { closeSegments } from '../support/segmented-appliance.ts';
import { until } from '../support/until.ts';
import { sqlWasm } from '../support/wasm.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-file-kinds-'));
after(() => rmSync(base, { recursive: true, force: true }));
const place = join(base, 'place');
const data = join(place, 'data');
const key = `${data}.master.key`;
const kit = join(place, 'kit.txt');
const flips = Number(process.env.KMS_FLIPS ?? 24);
const env = (): undefined => undefined;
const quiet: Host = {
  read: async () => undefined,
  space: async () => ({ free: 6e10, total: 1e11, freeFiles: 1e6 }),
};

/** Throws if it finds damage. */
type Check = (file: string) => Promise<unknown>;

/** `kms doctor`, which reads every byte of the stores and changes nothing. */
const doctor: Check = async () => {
  const { findings } = await examine({ data, keyFile: key, host: quiet, sources: { env } });
  const error = findings.find(({ severity }) => severity === 'error');
  if (error) throw new KmsError('corrupt', `${error.subject}: ${error.message}`, { hint: error.advice });
};

const start: Check = async () => {
  const copy = join(base, 'started');
  rmSync(copy, { recursive: true, force: true });
  cpSync(data, copy, { recursive: true, filter: (name) => !name.endsWith('kms.sock') });
  const appliance = await openAppliance({ data: copy, keyFile: key, sources: { env } });
  await appliance.close();
};

const opensWith =
  (keyFile: string): Check =>
  async () => {
    const { seal } = await openSealFile(data, { keyFile, env });
    seal.wipe();
  };

const restored: Check = async () => {
  const into = join(base, 'restored');
  rmSync(into, { recursive: true, force: true });
  rmSync(`${into}.master.key`, { force: true });
  const { proof } = await restoreAppliance({ from: join(place, 'shipped'), data: into, keys: { keyFile: key, env } });
  const [lacking] = proof.lacks;
  if (lacking !== undefined) throw new KmsError('corrupt', lacking, { hint: 'said, and all else is restored' });
};

interface Kind {
  readonly name: string;
  /** Matches the path relative to the place. */
  readonly pattern: RegExp;
  readonly check: Check;
  /** Bytes at the end that don't matter. */
  readonly loose?: number;
  /** Why a flipped bit is harmless. */
  readonly flipIsHarmless?: string;
  readonly cutIsHarmless?: string;
  readonly growthIsHarmless?: string;
  /** Exists only while a server runs. */
  readonly passing?: boolean;
}

/** A stream repairs its file before it continues: the last line is whole. */
const streamedOn: Check = async (file) => {
  if (file === '') return;
  const path = join(place, 'streamed');
  const receiver = new DirectoryReceiver({ kind: 'directory', name: path, path }, { now: Date.now, onEvent: () => {} });
  await receiver.arrived({ id: 'tenant_other', name: 'default' }, 0);
  const text = readFileSync(file, 'utf8');
  assert.ok(text === '' || text.endsWith('}\n'));
  JSON.parse(text.trimEnd().split('\n').at(-1) || '{}');
};

/** The mark's presence counts, not its content. */
const staysSealed: Check = async () => {
  await assert.rejects(start(''), { code: 'sealed', message: /somebody sealed it on purpose/ });
};

const staysFenced: Check = async () => {
  await assert.rejects(start(''), { code: 'refused', message: /this appliance no longer serves/ });
};

const fencedAlone = 'that it is there is all that counts: a standby took over';
const nameAlone = 'that it is there is all that counts: the appliance stays sealed';
const nobody = 'nothing is ever read from it';
const anew = 'it is made anew at each start';
const whoever = 'a write that was cut off, which nobody was answered, looks the same: it is cut off, and said';
const lastPoint = 'the last line may be torn: what came before it is restored';
const byHash = 'only its end is read, and mended; the log has all of it, and the hashes tell what was changed';
const store = '(?:system|tenants/[0-9a-f]{16})';

const kinds: readonly Kind[] = [
  { name: 'seal', pattern: /^data\/kms\.seal$/, check: doctor },
  { name: 'witness', pattern: /^data\/kms\.witness$/, check: doctor },
  { name: 'snapshot', pattern: new RegExp(`^data/${store}/snapshot-[0-9]{10}\\.kms$`), check: doctor },
  {
    name: 'log',
    pattern: new RegExp(`^data/${store}/log-[0-9]{10}\\.kms$`),
    check: doctor,
    cutIsHarmless: whoever,
    growthIsHarmless: whoever,
  },
  { name: 'activity segment', pattern: new RegExp(`^data/${store}/activity-[0-9]{12}\\.kms$`), check: doctor },
  { name: 'backup', pattern: /^(?:backups\/|data\/before-migration-).*\.kms-backup$/, check: openBackupFile },
  {
    name: 'key file',
    pattern: /^data\.master\.key$/,
    check: opensWith(key),
    loose: 1,
    growthIsHarmless: 'white space',
  },
  {
    name: 'recovery kit',
    pattern: /^kit\.txt$/,
    check: opensWith(kit),
    flipIsHarmless: 'only the code counts, and it has a checksum',
    cutIsHarmless: 'only the code counts, and it has a checksum',
    growthIsHarmless: 'only the code counts, and it has a checksum',
  },
  { name: 'shipped seal', pattern: /^shipped\/[^/]+\/kms\.seal$/, check: restored },
  {
    name: 'journal of shipping',
    pattern: /^shipped\/[^/]+\/points\.kms$/,
    check: restored,
    flipIsHarmless: lastPoint,
    cutIsHarmless: lastPoint,
    growthIsHarmless: lastPoint,
  },
  {
    name: 'shipped snapshot',
    pattern: new RegExp(`^shipped/[^/]+/${store}/snapshot-[0-9]{10}\\.kms$`),
    check: restored,
    flipIsHarmless: 'a later snapshot stands for it',
    cutIsHarmless: 'a later snapshot stands for it',
    growthIsHarmless: 'a later snapshot stands for it',
  },
  {
    name: 'shipped log',
    pattern: new RegExp(`^shipped/[^/]+/${store}/log-[0-9]{10}\\.kms$`),
    check: restored,
    flipIsHarmless: 'a later snapshot stands for it',
    cutIsHarmless: 'a later snapshot stands for it',
    growthIsHarmless: 'only the bytes that a point counts are read',
  },
  {
    name: 'shipped activity segment',
    pattern: new RegExp(`^shipped/[^/]+/${store}/activity-[0-9]{12}\\.kms\\.[0-9]+$`),
    check: restored,
  },
  {
    name: 'streamed activity',
    pattern: /^streamed\/default\/[0-9-]{10}\.[0-9]{4}\.jsonl$/,
    check: streamedOn,
    flipIsHarmless: byHash,
    cutIsHarmless: byHash,
    growthIsHarmless: byHash,
  },
  {
    name: 'reserve',
    pattern: /^data\/kms\.reserve$/,
    check: start,
    flipIsHarmless: nobody,
    cutIsHarmless: anew,
    growthIsHarmless: anew,
  },
  {
    name: 'lock',
    pattern: /^data\/kms\.lock$/,
    check: start,
    flipIsHarmless: nobody,
    cutIsHarmless: nobody,
    growthIsHarmless: nobody,
  },
  {
    name: 'process number',
    pattern: /^data\/kms\.pid$/,
    check: start,
    flipIsHarmless: anew,
    cutIsHarmless: anew,
    growthIsHarmless: anew,
    passing: true,
  },
  {
    name: 'mark of a takeover',
    pattern: /^data\/kms\.fenced$/,
    check: staysFenced,
    flipIsHarmless: fencedAlone,
    cutIsHarmless: fencedAlone,
    growthIsHarmless: fencedAlone,
    passing: true,
  },
  {
    name: 'mark of a seal on purpose',
    pattern: /^data\/kms\.stay-sealed$/,
    check: staysSealed,
    flipIsHarmless: nameAlone,
    cutIsHarmless: nameAlone,
    growthIsHarmless: nameAlone,
    passing: true,
  },
];

/** Files listed while the server runs, and after it was closed. */
let listed: string[] = [];

function list(): string[] {
  return readdirSync(place, { recursive: true })
    .map(String)
    .filter((name) => statSync(join(place, name)).isFile())
    .sort();
}

before(async () => {
  mkdirSync(place, { mode: 0o700 });
  const made = await initAppliance({ data, recoveryKit: true, env });
  writeFileSync(kit, made.recoveryKit ?? '', { mode: 0o600 });
  const opened = await openSealFile(data, { keyFile: key, env });
  const files = nodeFiles(data);
  const seal = new SealKeeper(opened.seal, sealInFiles(files, '/nowhere'));
  const { place: stores } = storesIn({ root: data, files, wasm: sqlWasm });
  await backupBeforeMigration({ files, place: stores, root: data, seal, now: Date.now }, undefined)();
  await closeSegments(data, seal.current, 9);
  const serving = await serve({
    data,
    listen: '127.0.0.1:0',
    logLevel: 'silent',
    sources: { env },
    space: { every: 20, reserve: 4096, floor: 4096 },
    copies: {
      scheduled: { to: join(place, 'backups'), schedule: '0 3 * * *', keep: 3 },
      shipping: { to: join(place, 'shipped'), every: 20, window: 1e9 },
    },
    streaming: { targets: [{ kind: 'directory', name: join(place, 'streamed'), path: join(place, 'streamed') }] },
  });
  const headers = { authorization: `Bearer ${made.apiKey.key}`, 'content-type': 'application/json' };
  for (const name of ['one', 'two', 'three']) {
    const body = JSON.stringify({ name });
    assert.equal((await fetch(`${serving.url}/ks/keyrings`, { method: 'POST', headers, body })).status, 200);
    const since = Date.now();
    const { copies } = serving.appliance;
    await until('it is shipped', () => (copies.status().shipping?.arrivedAt ?? 0) > since);
  }
  await serving.appliance.copies.backUpNow();
  assert.equal((await fetch(`${serving.url}/system/seal`, { method: 'POST', headers })).status, 200);
  listed = list();
  await serving.close();
  writeFileSync(join(data, fencedMark), '{}');
  listed = [...listed, ...list()];
  for (const mark of [sealMark, fencedMark]) rmSync(join(data, mark));
  listed = [...new Set([...listed, ...list()])].sort();
});

test('every file is of a kind in the table, and every kind is there', () => {
  for (const name of listed) {
    if (name.endsWith('/kms.sock')) continue;
    assert.equal(kinds.filter(({ pattern }) => pattern.test(name)).length, 1, name);
  }
  for (const { name, pattern } of kinds)
    assert.ok(
      listed.some((file) => pattern.test(file)),
      name,
    );
});

test('undamaged, all of it is sound', async () => {
  for (const check of new Set(kinds.map((kind) => kind.check))) {
    if (check !== openBackupFile && check !== staysSealed && check !== staysFenced) await check('');
  }
});

let all = 0;

interface Count {
  damages: number;
  harmless: number;
}

/** Most bytes of a header, a sample of the rest, and the end. */
function regions(length: number, random: ReturnType<typeof prng>): number[] {
  const near = [0, 4, 8, 9, 10, 12, 13, 16, 24, 31, length - 64, length - 17, length - 16, length - 1];
  const spread = Array.from({ length: flips }, () => random.int(length));
  return [...new Set([...near.slice(0, flips), ...spread])].filter((at) => at >= 0 && at < length).slice(0, flips);
}

async function damaged(kind: Kind, name: string, bytes: Uint8Array, harmless: string | undefined, count: Count) {
  const file = join(place, name);
  const sound = readFileSync(file);
  writeFileSync(file, bytes);
  count.damages++;
  all++;
  try {
    await kind.check(file);
    assert.ok(harmless, `${name}: the damage was not found`);
    count.harmless++;
  } catch (error) {
    assert.ok(error instanceof KmsError, `${name}: ${error}`);
    const wanted = basename(name).replace(/\.kms\.[0-9]+$/, '.kms');
    assert.ok(
      error.message.includes(wanted) || /seal|shipped holds no state/.test(error.message),
      `${error.message} does not name ${name}`,
    );
    assert.ok(error.hint, `${error.message}: without a hint`);
  } finally {
    writeFileSync(file, sound);
  }
}

for (const kind of kinds) {
  test(`damage to each ${kind.name}`, async (context) => {
    const count: Count = { damages: 0, harmless: 0 };
    for (const name of listed.filter((each) => kind.pattern.test(each))) {
      if (kind.passing) writeFileSync(join(place, name), '12345\n', { mode: 0o600 });
      const sound = readFileSync(join(place, name));
      const random = prng(sound.length);
      const length = sound.length - (kind.loose ?? 0);
      for (const at of regions(length, random)) {
        const bytes = Buffer.from(sound);
        bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << random.int(8)), at);
        await damaged(kind, name, bytes, kind.flipIsHarmless, count);
      }
      const cuts = [0, 9, Math.floor(length / 2), length - 1].filter((size) => size >= 0 && size < length);
      for (const size of new Set(cuts)) {
        await damaged(kind, name, sound.subarray(0, size), kind.cutIsHarmless, count);
      }
      for (const added of ['\n', '\0'.repeat(64), 'x'.repeat(600)]) {
        await damaged(kind, name, Buffer.concat([sound, Buffer.from(added)]), kind.growthIsHarmless, count);
      }
      if (kind.passing) rmSync(join(place, name));
    }
    context.diagnostic(`${count.damages} damages, ${count.harmless} of them harmless by design`);
    assert.ok(count.damages > 0);
  });
}

test('what doctor finds stops a start too, and a backup that is damaged does not verify', async (context) => {
  context.diagnostic(`${all} damages in all`);
  for (const kind of ['seal', 'witness', 'snapshot', 'log']) {
    const pattern = kinds.find(({ name }) => name === kind)?.pattern;
    for (const name of listed.filter((each) => pattern?.test(each))) {
      const file = join(place, name);
      const sound = readFileSync(file);
      const bytes = Buffer.from(sound);
      bytes.writeUInt8(bytes.readUInt8(20) ^ 1, 20);
      writeFileSync(file, bytes);
      await assert.rejects(start(file), (error: Error) => error.message.includes(basename(name)), name);
      writeFileSync(file, sound);
    }
  }
  const backup = listed.find((name) => name.startsWith('backups/')) ?? '';
  const sound = readFileSync(join(place, backup));
  await verifyBackup(join(place, backup), { data, keys: { keyFile: key, env } });
  const bytes = Buffer.from(sound);
  bytes.writeUInt8(bytes.readUInt8(5000) ^ 1, 5000);
  writeFileSync(join(place, backup), bytes);
  await assert.rejects(verifyBackup(join(place, backup), { data, keys: { keyFile: key, env } }), { code: 'corrupt' });
});
