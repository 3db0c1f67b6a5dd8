// Faults planted in a data directory, one at a time and all at once, as `kms doctor` of the executable finds them: each
// by its name, with advice. The clock, a full disk and swap are planted where that is possible: in doctor's own tests.
import assert from 'node:assert/strict';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { until } from '../support/until.ts';
import { asker, kms, serve, workDirectory } from './kms.ts';

const cwd = workDirectory();
const at = (...names: string[]): string => join(cwd, ...names);
let tenant = '';

interface Examination {
  readonly findings: readonly {
    readonly severity: string;
    readonly name: string;
    readonly message: string;
    readonly advice: string;
  }[];
}

/** Findings about `x`; the output for people and the JSON must agree. */
async function doctor(args: readonly string[] = []): Promise<readonly string[]> {
  const { code, stdout, stderr } = await kms(cwd, ['doctor', '--data', 'x', '--json', ...args]);
  const { findings }: Examination = JSON.parse(stdout);
  const wrong = findings.filter(({ severity }) => severity !== 'advice');
  assert.equal(code, wrong.length > 0 ? 1 : 0, stderr);
  for (const { message, advice } of wrong) assert.ok(message !== '' && advice !== '');
  return [...new Set(wrong.map(({ name }) => name))].sort();
}

function flip(...names: string[]): void {
  const bytes = readFileSync(at(...names));
  const middle = Math.floor(bytes.length / 2);
  bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle);
  writeFileSync(at(...names), bytes);
}

/** A file in the directory whose name matches `kind`. */
function one(directory: string, kind: RegExp): string {
  const name = readdirSync(at(directory)).find((each) => kind.test(each));
  assert.ok(name, `${kind} in ${directory}`);
  return join(directory, name);
}

before(async () => {
  writeFileSync(at('give'), `#!/bin/sh\necho ${'a1b2c3d4'.repeat(8)}\n`, { mode: 0o700 });
  assert.equal((await kms(cwd, ['init', '--data', 'sound'])).code, 0);
  const server = await serve(cwd, ['--data', 'sound']);
  assert.equal((await kms(cwd, ['keyring', 'create', 'r', '--data', 'sound'])).code, 0);
  assert.equal(await server.end('SIGTERM'), 0);
  assert.equal((await kms(cwd, ['master', 'add-custodian', 'exec', '--exec', at('give'), '--data', 'sound'])).code, 0);
  assert.equal((await kms(cwd, ['tls', 'self-signed', '--host', 'localhost', '--days', '9', '--out', 'tls'])).code, 0);
  chmodSync(at('tls', 'key.pem'), 0o644);
  tenant = join('x', 'tenants', readdirSync(at('sound', 'tenants'))[0] ?? '');
});

function fresh(): void {
  rmSync(at('x'), { recursive: true, force: true });
  cpSync(at('sound'), at('x'), { recursive: true });
  cpSync(at('sound.master.key'), at('x.master.key'));
}

/** A list returned by `plant` is appended to the `kms doctor` command. */
const faults: readonly (readonly [string, plant: () => unknown, ...expected: string[]])[] = [
  ['nothing', () => {}],
  ['everybody can reach the data', () => chmodSync(at('x'), 0o755), 'data-exposed'],
  ['a file that others can read', () => chmodSync(at('x', 'kms.seal'), 0o644), 'file-exposed'],
  ['a key file that others can read', () => chmodSync(at('x.master.key'), 0o644), 'key-exposed'],
  [
    'a key file in the data directory',
    () => {
      renameSync(at('x.master.key'), at('x', 'k'));
      return ['--key-file', join('x', 'k')];
    },
    'key-inside-data',
    'unknown-file',
  ],
  ['a byte of the seal', () => flip('x', 'kms.seal'), 'damaged'],
  ['a byte of a snapshot', () => flip(one(tenant, /^snapshot/)), 'damaged'],
  ['a byte of a log', () => flip(one(tenant, /^log/)), 'damaged'],
  ['a log is missing', () => rmSync(at(one(tenant, /^log/))), 'damaged'],
  ["a tenant's directory is missing", () => rmSync(at(tenant), { recursive: true }), 'store-missing'],
  [
    'the key of another appliance',
    () => writeFileSync(at('x.master.key'), 'b1b2c3d4'.repeat(8), { mode: 0o600 }),
    'key-wrong',
  ],
  [
    'a certificate that runs out, with a key that others can read',
    () => ['--tls-cert', join('tls', 'cert.pem'), '--tls-key', join('tls', 'key.pem')],
    'certificate-expiring',
    'certificate-key-exposed',
  ],
  ['what a crash left', () => writeFileSync(at('x', 'kms.seal.tmp'), '', { mode: 0o600 }), 'leftover'],
  ['what is not a file of the appliance', () => writeFileSync(at('x', 'notes'), '', { mode: 0o600 }), 'unknown-file'],
];

for (const [name, plant, ...expected] of faults) {
  test(`planted: ${name}`, async () => {
    fresh();
    const args = plant();
    assert.deepEqual(await doctor(Array.isArray(args) ? args : []), expected.sort());
  });
}

test('planted: a custodian that does not answer any more, where no other is at hand', async () => {
  fresh();
  for (const name of ['x.master.key', 'sound.master.key']) renameSync(at(name), at(`${name}.away`));
  renameSync(at('give'), at('taken'));
  assert.deepEqual(await doctor(), ['key-missing', 'sealed']);
  renameSync(at('taken'), at('give'));
  assert.deepEqual(await doctor(), ['key-missing']);
  for (const name of ['x.master.key', 'sound.master.key']) renameSync(at(`${name}.away`), at(name));
});

test('planted under a server: a backup that is gone, and a directory to ship to that went away', async () => {
  fresh();
  mkdirSync(at('backups'));
  const copies = [
    '--backup-to',
    'backups',
    '--backup-schedule',
    '* * * * * *',
    '--ship-to',
    'shipped',
    '--ship-every',
    '1s',
  ];
  const server = await serve(cwd, ['--data', 'x', '--log-level', 'warn', ...copies]);
  const ask = asker(server.apiKey ?? '');
  const ready = async () => (await ask(`${server.url}/readyz`, 'GET')).json();
  await until('a verified backup and a shipment', async () => {
    const { lastVerifiedBackup, shipping } = await ready();
    return lastVerifiedBackup && shipping?.ok;
  });
  assert.deepEqual(await doctor(), []);
  rmSync(at('shipped'), { recursive: true });
  writeFileSync(at('shipped'), 'in its place');
  await until('shipping fails', async () => (await ready()).shipping?.ok === false);
  assert.deepEqual(await doctor(), ['shipping-fails']);
  assert.equal(await server.end('SIGTERM'), 0);
  rmSync(at('backups'), { recursive: true });
  assert.deepEqual(await doctor(), ['backup-missing']);
});
