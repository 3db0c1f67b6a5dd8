// An attacker with write access to the data directory, but no key, cuts or replaces a log of a serving appliance to
// bring a revoked key back. The key stays revoked, the appliance answers 503 with advice, and no start takes the
// remains for the whole log.
import assert from 'node:assert/strict';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { KmsError } from '../../src/errors.ts';
import { until } from '../support/until.ts';
import { asking, type Place, place } from './tenant-appliance.ts';

const host = 'kms.local';

function lastLog(dir: string): string {
  const logs = readdirSync(dir).filter((name) => name.startsWith('log-'));
  return join(dir, logs.sort().at(-1) ?? '');
}

/** The end of its last record. */
function endOf(log: string): number {
  return readFileSync(log).findLastIndex((byte) => byte !== 0) + 1;
}

interface Before {
  /** A copy of the log from before the key was revoked, and its end. */
  readonly copy: string;
  readonly end: number;
}

const damages: Readonly<Record<string, (log: string, before: Before) => void>> = {
  'cut where a record ends': (log, { end }) => truncateSync(log, end),
  'filled with zeros from there': (log, { end }) => {
    const size = statSync(log).size;
    const file = openSync(log, 'r+');
    writeSync(file, new Uint8Array(size - end), 0, size - end, end);
    closeSync(file);
  },
  'written over with an older copy': (log, { copy }) => writeFileSync(log, readFileSync(copy)),
  'replaced by an older copy': (log, { copy }) => {
    copyFileSync(copy, `${log}.new`);
    renameSync(`${log}.new`, log);
  },
  removed: (log) => rmSync(log),
};

/** Checks that the key is never accepted, whatever other requests do meanwhile. */
async function staysRevoked(p: Place, key: string, how: () => Promise<unknown>): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await how().catch(() => {});
    const { status } = await p.at(host, 'POST', '/ks/encrypt', key, { ringname: 'ring' });
    assert.ok([401, 500, 503].includes(status), `a revoked key was answered ${status}`);
  }
}

async function stopped(p: Place): Promise<void> {
  await until('it is out of service', async () => (await p.at(host, 'GET', '/readyz', undefined)).status === 503);
  // Longer than the pause between two attempts to recover.
  await new Promise((resolve) => setTimeout(resolve, 1200));
  const { status, body } = await p.at(host, 'GET', '/readyz', undefined);
  assert.equal(status, 503);
  assert.match(body.message, /put the newer file back, or stop the server and restore a backup/);
}

async function refusesToStart(data: string, message = /is older than it was|log-[0-9]+\.kms at offset/): Promise<void> {
  await assert.rejects(openAppliance({ data }), (error: unknown) => {
    assert.ok(error instanceof KmsError, String(error));
    assert.match(error.message, message);
    return true;
  });
}

/** A copy of the data, as a kill at this moment leaves it. */
function killed(data: string): string {
  const to = `${data}.killed`;
  rmSync(to, { recursive: true, force: true });
  cpSync(data, to, { recursive: true, filter: (name) => !/kms\.(sock|lock|pid)$/.test(name) });
  chmodSync(to, 0o700);
  copyFileSync(`${data}.master.key`, `${to}.master.key`);
  return to;
}

for (const [what, damage] of Object.entries(damages)) {
  for (const noticed of ['a write', 'a backup'] as const) {
    test(`a log is ${what} behind a revocation, and ${noticed} meets that: the key stays revoked`, async () => {
      const p = await place();
      const admin = p.made.apiKey.key;
      const flags = { 'keyring.ring.encrypt': true };
      const made = await p.at(host, 'POST', '/auth/apikey', admin, { accountId: p.made.accountId, flags });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      const { key } = made.body;
      const ring = await p.at(host, 'POST', '/ks/keyrings', admin, { name: 'ring' });
      assert.equal(ring.status, 200);
      assert.equal((await p.at(host, 'POST', '/ks/encrypt', key, { ringname: 'ring' })).status, 200);
      const [tenant = ''] = readdirSync(join(p.data, 'tenants'));
      const log = lastLog(join(p.data, 'tenants', tenant));
      const before = { copy: `${p.data}.log`, end: endOf(log) };
      copyFileSync(log, before.copy);
      const off = await p.at(host, 'DELETE', `/auth/apikey/${key}`, admin);
      assert.equal(off.status, 200, JSON.stringify(off.body));
      assert.equal((await p.at(host, 'POST', '/ks/encrypt', key, { ringname: 'ring' })).status, 401);
      const whole = readFileSync(log);

      damage(log, before);
      await staysRevoked(p, key, async () =>
        noticed === 'a write'
          ? p.at(host, 'POST', '/ks/encrypt', admin, { ringname: 'ring' })
          : p.appliance
              .fetchLocal(new Request('http://kms.local/system/backup', { method: 'POST' }))
              .then((r) => r.arrayBuffer()),
      );
      await stopped(p);
      await staysRevoked(p, key, async () => {});
      assert.ok(
        p.events.some(({ level, message }) => level === 'error' && message.includes('log-')),
        p.events.map(({ message }) => message).join('\n'),
      );
      await refusesToStart(killed(p.data));

      if (what === 'cut where a record ends') {
        // The operator puts the original file back.
        writeFileSync(log, whole);
        await until('it serves', async () => (await p.at(host, 'GET', '/readyz', undefined)).status === 200);
        assert.equal((await p.at(host, 'POST', '/ks/encrypt', key, { ringname: 'ring' })).status, 401);
        assert.equal((await p.at(host, 'POST', '/ks/encrypt', admin, { ringname: 'ring' })).status, 200);
        return p[Symbol.asyncDispose]();
      }
      await p.appliance.close();
      await refusesToStart(p.data);
      return undefined;
    });
  }
}

for (const isWarm of [false, true]) {
  test(`another process revokes a key beside a ${isWarm ? 'busy' : 'quiet'} server: it stays revoked`, async () => {
    const p = await place();
    const admin = p.made.apiKey.key;
    const flags = { 'keyring.ring.encrypt': true };
    const made = await p.at(host, 'POST', '/auth/apikey', admin, { accountId: p.made.accountId, flags });
    const { key } = made.body;
    assert.equal((await p.at(host, 'POST', '/ks/keyrings', admin, { name: 'ring' })).status, 200);
    if (isWarm) assert.equal((await p.at(host, 'POST', '/ks/encrypt', key, { ringname: 'ring' })).status, 200);
    // Without the lock file, which only a person would move, a command finds the directory free.
    const names = ['kms.lock', 'kms.pid'].filter((name) => existsSync(join(p.data, name)));
    for (const name of names) renameSync(join(p.data, name), join(p.data, `away-${name}`));
    const other = await openAppliance({ data: p.data });
    const off = await asking(other)('DELETE', `/auth/apikey/${key}`);
    assert.equal(off.status, 200, JSON.stringify(off.body));
    await other.close();
    for (const name of names) renameSync(join(p.data, `away-${name}`), join(p.data, name));
    const statuses: number[] = [];
    for (let n = 0; n < 20 && statuses.at(-1) !== 401; n++) {
      statuses.push((await p.at(host, 'POST', '/ks/encrypt', key, { ringname: 'ring' })).status);
      if (statuses.at(-1) === 503) await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.ok(!statuses.includes(200), `a revoked key was answered ${statuses}`);
    await p.reopen();
    assert.equal((await p.at(host, 'POST', '/ks/encrypt', key, { ringname: 'ring' })).status, 401);
    await p[Symbol.asyncDispose]();
  });
}
