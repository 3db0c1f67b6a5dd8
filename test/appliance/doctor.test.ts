// `kms doctor` on appliances with one planted fault each: it is found by its name, nothing else is found, and nothing
// is changed.
import assert from 'node:assert/strict';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { openSealFile } from '../../src/custody/seal-keeper.ts';
import { type DoctorOptions, examine } from '../../src/doctor/doctor.ts';
import type { Host } from '../../src/doctor/machine.ts';
import { KmsError } from '../../src/errors.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import { lockDirectory } from '../../src/platform/lock.ts';
import { nodeFiles } from '../../src/platform/node-files.ts';
import { sqlWasm } from '../../src/platform/program-files.ts';
import { selfSigned } from '../../src/platform/self-signed.ts';
import { openSystemStore, storesIn } from '../../src/storage/stores.ts';
import { authority } from '../support/certificates.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { smallDisks } from '../support/small-disk.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-doctor-'));
after(() => rmSync(base, { recursive: true, force: true }));
const day = 24 * 60 * 60 * 1000;
const gib = 1024 ** 3;

const quiet: Host = {
  read: async () => undefined,
  space: async () => ({ free: 60 * gib, total: 100 * gib, freeFiles: 1_000_000 }),
};

before(async () => {
  const data = join(base, 'sound', 'data');
  const { apiKey } = await initAppliance({ data });
  const appliance = await openAppliance({ data });
  for (const name of ['one', 'two', 'three']) {
    const headers = { authorization: `Bearer ${apiKey.key}`, 'content-type': 'application/json' };
    const request = new Request('http://kms.local/ks/keyrings', {
      method: 'POST',
      headers,
      body: JSON.stringify({ name }),
    });
    assert.equal((await appliance.app.fetch(request, {})).status, 200);
  }
  await appliance.close();
});

interface Patient {
  readonly dir: string;
  readonly data: string;
  readonly key: string;
  /** The directory of the only tenant. */
  readonly tenant: string;
}

let count = 0;

function patient(): Patient {
  const dir = join(base, `patient-${++count}`);
  cpSync(join(base, 'sound'), dir, { recursive: true, preserveTimestamps: true });
  chmodSync(dir, 0o700);
  const data = join(dir, 'data');
  const [tenant = ''] = readdirSync(join(data, 'tenants'));
  return { dir, data, key: `${data}.master.key`, tenant: join(data, 'tenants', tenant) };
}

/** Findings as name and subject, without advice. */
async function found(
  { data, key }: Patient,
  options: Partial<DoctorOptions> = {},
  severities: readonly string[] = ['error', 'warning'],
) {
  const before = picture(data);
  const { findings } = await examine({
    data,
    keyFile: key,
    host: quiet,
    sources: { env: () => undefined },
    ...options,
  });
  assert.deepEqual(picture(data), before, 'nothing was changed');
  const chosen = findings.filter(({ severity }) => severities.includes(severity));
  for (const { message, advice } of chosen) assert.ok(message !== '' && advice !== '');
  return chosen.map(
    ({ name, subject }) => `${name} ${subject.replace(`${data}/`, '').replace(/tenants\/[0-9a-f]+/, 'TENANT')}`,
  );
}

function picture(data: string): unknown {
  return readdirSync(data, { recursive: true })
    .sort()
    .map((name) => {
      const { mode, size, mtimeMs } = statSync(join(data, String(name)));
      return [name, mode, size, mtimeMs];
    });
}

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  const place = at < 0 ? bytes.length + at : at;
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
  writeFileSync(file, bytes);
}

async function note(one: Patient, value: object): Promise<void> {
  const { seal } = await openSealFile(one.data, one.key);
  const world = storesIn({ root: one.data, files: nodeFiles(one.data), wasm: await sqlWasm() });
  const system = await openSystemStore(world, seal.keysFor('system'));
  const proof = { stores: 2, transactions: 1, activities: 1, rows: 1, lacks: [] };
  const whole = { bytes: 1, verifiedAt: '2026-01-01T00:00:00.000Z', ...proof, ...value };
  await system.transaction(({ settings }) => settings.set('backup', JSON.stringify(whole)));
  await system.close();
}

test('a sound appliance has nothing but advice', async () => {
  const one = patient();
  assert.deepEqual(await found(one), []);
  const { stores, activities } = await examine({ data: one.data, keyFile: one.key, host: quiet });
  assert.deepEqual([stores, activities], [2, 3]);
  const advice = await found(one, {}, ['advice']);
  assert.deepEqual(advice.map((each) => each.split(' ')[0]).sort(), [
    'key-beside-data',
    'no-backup',
    'ring-x25519',
    'single-custodian',
  ]);
});

/** Plants a fault. May return options for the examination. */
type Plant = (one: Patient) => unknown;

const faults: readonly [name: string, plant: Plant, ...expected: readonly string[]][] = [
  ['a data directory that everybody can reach', ({ data }) => void chmodSync(data, 0o755), 'data-exposed DATA'],
  [
    'a log with the mode 0644',
    ({ data }) => void chmodSync(join(data, 'system', 'log-0000000001.kms'), 0o644),
    'file-exposed system/log-0000000001.kms',
  ],
  ['a key file that everybody can read', ({ key }) => void chmodSync(key, 0o644), 'key-exposed KEY'],
  [
    'a key file in the data directory',
    ({ data, key }) => {
      renameSync(key, join(data, 'master.key'));
      return { keyFile: join(data, 'master.key') };
    },
    'key-inside-data master.key',
    'unknown-file master.key',
  ],
  ['no key file', ({ key }) => void rmSync(key), 'key-missing DATA', 'sealed DATA'],
  [
    'the key file of another appliance',
    async ({ dir, key }) => {
      const { keyFile = '' } = await initAppliance({ data: join(dir, 'other') });
      writeFileSync(key, readFileSync(keyFile));
      return undefined;
    },
    'key-wrong KEY',
    'not-examined DATA',
  ],
  ['a byte changed in the seal', ({ data }) => flip(join(data, 'kms.seal'), 200), 'damaged DATA'],
  [
    'a byte changed in a snapshot',
    ({ data }) => flip(join(data, 'system', 'snapshot-0000000000.kms'), -1),
    'damaged system',
  ],
  ["a byte changed in a tenant's log", ({ tenant }) => flip(join(tenant, 'log-0000000001.kms'), 150), 'damaged TENANT'],
  ['a file of a newer format', ({ tenant }) => flip(join(tenant, 'log-0000000001.kms'), 8), 'newer-format TENANT'],
  ["a tenant's store is gone", ({ tenant }) => void rmSync(tenant, { recursive: true }), 'store-missing TENANT'],
  ['a log is gone', ({ tenant }) => void rmSync(join(tenant, 'log-0000000001.kms')), 'damaged TENANT'],
  [
    'a server was killed',
    async ({ data }) => {
      const server = createServer().listen(join(data, 'kms.sock'));
      await new Promise((resolve) => server.once('listening', resolve));
      renameSync(join(data, 'kms.sock'), join(data, 'kept'));
      await new Promise((resolve) => server.close(resolve));
      renameSync(join(data, 'kept'), join(data, 'kms.sock'));
      chmodSync(join(data, 'kms.sock'), 0o600);
      writeFileSync(join(data, 'kms.pid'), '1\n', { mode: 0o600 });
      return undefined;
    },
    'stale-socket kms.sock',
    'stale-pid kms.pid',
  ],
  [
    'a write was cut off',
    ({ data }) => writeFileSync(join(data, 'system', 'snapshot-0000000001.kms.tmp'), '', { mode: 0o600 }),
    'leftover system/snapshot-0000000001.kms.tmp',
  ],
  [
    'a file of somebody else',
    ({ data }) => writeFileSync(join(data, 'notes.txt'), '', { mode: 0o600 }),
    'unknown-file notes.txt',
  ],
  ['a directory above that everybody may write to', ({ dir }) => chmodSync(dir, 0o777), 'parent-writable DIR'],
  ['the clock was set back', () => ({ now: () => Date.now() - 3 * day }), 'clock-behind TENANT'],
  [
    'a full disk',
    () => ({ host: { ...quiet, space: async () => ({ free: 4 * gib, total: 100 * gib, freeFiles: 12 }) } }),
    'disk-low DATA',
    'files-low DATA',
  ],
  [
    'backups stopped',
    async (one) => {
      await note(one, { file: join(one.dir, 'gone.kms-backup'), madeAt: new Date(Date.now() - 9 * day).toISOString() });
      return undefined;
    },
    'backup-old DIR/gone.kms-backup',
    'backup-missing DIR/gone.kms-backup',
  ],
  [
    'a certificate that ran out, with a key that everybody can read',
    async ({ dir }) => {
      const { cert, key } = await selfSigned(['localhost'], 5, new Date(Date.now() - 6 * day));
      const files = { tlsCert: join(dir, 'cert.pem'), tlsKey: join(dir, 'key.pem') };
      writeFileSync(files.tlsCert, cert);
      writeFileSync(files.tlsKey, key, { mode: 0o644 });
      chmodSync(files.tlsKey, 0o644);
      return files;
    },
    'certificate-expired DIR/cert.pem',
    'certificate-key-exposed DIR/key.pem',
  ],
  [
    'a certificate with the key of another',
    async ({ dir }) => {
      const files = { tlsCert: join(dir, 'cert.pem'), tlsKey: join(dir, 'key.pem') };
      writeFileSync(files.tlsCert, (await selfSigned(['localhost'], 30, new Date())).cert);
      writeFileSync(files.tlsKey, (await selfSigned(['localhost'], 30, new Date())).key, { mode: 0o600 });
      return files;
    },
    'certificate-refused DIR/key.pem',
  ],
  [
    'a certificate whose key is not there',
    async ({ dir }) => {
      writeFileSync(join(dir, 'cert.pem'), (await selfSigned(['localhost'], 30, new Date())).cert);
      return { tlsCert: join(dir, 'cert.pem'), tlsKey: join(dir, 'key.pem') };
    },
    'certificate-refused DIR/key.pem',
  ],
  [
    'a certificate that soon runs out',
    async ({ dir }) => {
      writeFileSync(join(dir, 'cert.pem'), (await selfSigned(['localhost'], 5, new Date())).cert);
      return { tlsCert: join(dir, 'cert.pem') };
    },
    'certificate-expiring DIR/cert.pem',
  ],
  [
    'a certificate without that of its issuer',
    async ({ dir }) => {
      const issuing = await (await authority('root')).below('issuing');
      const { cert } = await issuing.sign({ names: ['localhost'], issuerUrl: 'http://ca.example/issuing.der' });
      writeFileSync(join(dir, 'cert.pem'), cert);
      return { tlsCert: join(dir, 'cert.pem') };
    },
    'certificate-chain DIR/cert.pem',
  ],
];

for (const [name, plant, ...expected] of faults) {
  test(`found: ${name}`, async () => {
    const one = patient();
    // Cast: see `Plant`.
    const options = (await plant(one)) as Partial<DoctorOptions> | undefined;
    const names = await found(one, options ?? {});
    const placed = expected.map((each) =>
      each.replace('DATA', one.data).replace('KEY', one.key).replace('DIR', one.dir),
    );
    assert.deepEqual(names.sort(), placed.sort());
  });
}

test('all faults that can be had at once are found at once', async () => {
  const one = patient();
  await note(one, { madeAt: new Date(Date.now() - 9 * day).toISOString() });
  chmodSync(one.data, 0o755);
  chmodSync(one.key, 0o644);
  chmodSync(join(one.data, 'kms.seal'), 0o644);
  flip(join(one.tenant, 'log-0000000001.kms'), 150);
  writeFileSync(join(one.data, 'notes.txt'), '', { mode: 0o600 });
  writeFileSync(join(one.data, 'kms.pid'), '1\n', { mode: 0o600 });
  writeFileSync(join(one.data, 'kms.seal.tmp'), '', { mode: 0o600 });
  writeFileSync(join(one.dir, 'cert.pem'), (await selfSigned(['localhost'], 5, new Date())).cert);
  chmodSync(one.dir, 0o777);
  const host = { ...quiet, space: async () => ({ free: 4 * gib, total: 100 * gib, freeFiles: undefined }) };
  const names = (await found(one, { host, tlsCert: join(one.dir, 'cert.pem') })).map((each) => each.split(' ')[0]);
  assert.deepEqual(names.sort(), [
    'backup-old',
    'certificate-expiring',
    'damaged',
    'data-exposed',
    'disk-low',
    'file-exposed',
    'key-exposed',
    'leftover',
    'parent-writable',
    'stale-pid',
    'unknown-file',
  ]);
});

test('found: what cannot be written to, once for a whole file system and by name in one that can', async (t) => {
  const one = patient();
  if (process.getuid?.() !== 0) {
    chmodSync(one.tenant, 0o500);
    assert.deepEqual(await found(one), ['not-writable TENANT']);
  }
  const [kind] = smallDisks(8);
  if (!kind) return t.skip('nothing can be mounted here');
  const disk = kind.mount();
  try {
    const there = { ...patient(), data: join(disk.path, 'data') };
    cpSync(join(base, 'sound', 'data'), there.data, { recursive: true, preserveTimestamps: true });
    chmodSync(there.data, 0o700);
    disk.remount('ro');
    assert.deepEqual(await found(there), [`not-writable ${there.data}`]);
    await assert.rejects(openAppliance({ data: there.data, keyFile: there.key }), /read-only/);
  } finally {
    disk.unmount();
  }
});

test('memory that may get onto a disk is advice', async () => {
  const files: Readonly<Record<string, string>> = {
    '/proc/swaps':
      'Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n/dev/zram0 partition 1 0 5\n/dev/dm-1 partition 1 0 5\n/dev/dm-2 partition 1 0 5\n',
    '/sys/block/dm-1/dm/uuid': 'CRYPT-PLAIN-swap\n',
    '/sys/block/dm-2/dm/uuid': 'LVM-x\n',
    '/proc/self/limits':
      'Limit  Soft Limit  Hard Limit  Units\nMax core file size        unlimited            unlimited            bytes\n',
  };
  const host = { ...quiet, read: async (path: string) => files[path] };
  const names = await found(patient(), { host }, ['advice']);
  assert.deepEqual(
    names.filter((each) => /^(swap|core)/.test(each)),
    ['swap /dev/sda2', 'swap /dev/dm-2', 'core-dumps /proc/self/limits'],
  );
  assert.deepEqual(await found(patient(), { host }), []);
});

test('a directory that another process has open is said to be', async () => {
  const one = patient();
  const lock = lockDirectory(one.data);
  try {
    assert.deepEqual(await found(one, {}), [`in-use ${one.data}`]);
  } finally {
    lock.release();
  }
});

test('Tang: a listener that is open to everybody, and pairs that nothing uses any more', async () => {
  const one = patient();
  const clock = systemWorld();
  let ahead = 0;
  const world = { ...clock, now: () => clock.now() + ahead };
  const tangAllow = ['10.0.0.0/8', '::/0'];
  const appliance = await openAppliance({ data: one.data, keyFile: one.key, world, tangAllow });
  const local = async (method: string, path: string) => {
    const answer = await appliance.fetchLocal(new Request(`http://kms.local${path}`, { method }));
    assert.equal(answer.status, 200);
    return answer.json();
  };
  const tang = async (): Promise<string[]> =>
    (await local('GET', '/local/doctor')).findings
      .filter(({ name }: { name: string }) => name.startsWith('tang-'))
      .map(({ name, severity, subject }: Record<string, string>) => `${name} ${severity} ${subject}`);
  try {
    await local('POST', '/tang/pairs');
    ahead = 100 * day;
    assert.deepEqual(await tang(), ['tang-open warning --tang-listen'], 'what is advertised is never too old');
    const { pair } = await local('POST', '/tang/pairs');
    ahead += 89 * day;
    assert.deepEqual(await tang(), ['tang-open warning --tang-listen']);
    ahead += 2 * day;
    assert.deepEqual(await tang(), ['tang-open warning --tang-listen', 'tang-old-pairs advice default']);
    assert.equal((await local('GET', '/tang/pairs')).pairs[0].thumbprint, pair.thumbprint);
  } finally {
    await appliance.close();
  }
});

test('client certificates of API keys that end soon are named with their ends', async () => {
  const one = patient();
  const appliance = await openAppliance({ data: one.data, keyFile: one.key, world: systemWorld() });
  const local = async (path: string, body?: object) => {
    const init = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const request = new Request(`http://kms.local${path}`, { method: body ? 'POST' : 'GET', ...init });
    const answer = await appliance.fetchLocal(request);
    assert.equal(answer.status, 200, path);
    return answer.json();
  };
  const soon = (findings: readonly { readonly name: string }[]) =>
    findings.filter(({ name }) => name === 'proof-expiring');
  try {
    const { id: accountId } = await local('/auth/accounts', { uid: 'tills' });
    for (const [name, days] of [
      ['till', 13],
      ['shop', 15],
      ['door', 2],
    ] as const) {
      const { keyid } = await local('/auth/apikey', { accountId, name, flags: {} });
      const notAfter = Date.now() + days * day;
      const { pem } = await TestCertificate.alone(Date.now(), { notAfter });
      await local(`/auth/apikeys/${keyid}/proofs`, { kind: 'certificate', certificate: pem });
    }
    const [found, ...others] = soon((await local('/local/doctor')).findings);
    assert.equal(others.length, 0);
    assert.match(JSON.stringify(found), /"warning".*"tenant default".*just ended: 2 \(door at .{10}, till at .{10}\)/);
  } finally {
    await appliance.close();
  }
  const stopped = await examine({ data: one.data, keyFile: one.key, host: quiet });
  assert.equal(soon(stopped.findings).length, 1, 'without a server, too');
  const later = () => Date.now() + 30 * day;
  const muchLater = await examine({ data: one.data, keyFile: one.key, host: quiet, now: later });
  assert.equal(soon(muchLater.findings).length, 0, 'what ended long ago is no news');
});

test('where no appliance is there is nothing to examine', async () => {
  mkdirSync(join(base, 'empty'));
  await assert.rejects(
    examine({ data: join(base, 'empty') }),
    (error: unknown) => error instanceof KmsError && error.code === 'unavailable',
  );
});
