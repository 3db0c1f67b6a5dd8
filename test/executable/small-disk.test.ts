// The executable on a real small file system that another program fills up: writes are refused with the reason,
// decrypts continue; after a kill and a start on the full disk it has everything that it acknowledged, and once there
// is space again it writes, without a restart.
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { reserveFile } from '../../src/platform/data-dir.ts';
import { type SmallDisk, smallDisks } from '../support/small-disk.ts';
import { until } from '../support/until.ts';
import { kms, type RunningServer, serve, workDirectory } from './kms.ts';

const kib = 1024;
const disks = smallDisks(24);
if (disks.length === 0) {
  process.stderr.write('kms: nothing can be mounted here: the executable is not run on a real disk that fills up\n');
}

for (const { kind, mount } of disks) {
  test(`the executable on ${kind} that fills up`, async (context) => {
    const disk = mount();
    try {
      context.diagnostic(await fillUp(disk));
    } finally {
      disk.unmount();
    }
  });
}

async function fillUp({ path }: SmallDisk): Promise<string> {
  const cwd = workDirectory();
  const data = join(path, 'data');
  const args = ['--data', data];
  let server: RunningServer = await serve(cwd, args);
  const key = server.apiKey;
  const call = async (method: string, where: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const init = body ? { method, headers, body: JSON.stringify(body) } : { method, headers };
    const response = await fetch(server.url + where, init);
    return { status: response.status, body: await response.json() };
  };
  const made: string[] = [];
  const make = async (): Promise<number> => {
    const name = `ring-${made.length}`;
    const { status } = await call('POST', '/ks/keyrings', { name });
    if (status === 200) made.push(name);
    return status;
  };
  const everythingIsThere = async (): Promise<void> => {
    const { body } = await call('GET', '/ks/keyrings?limit=10000');
    assert.deepEqual(
      body.data.map((ring: { name: string }) => ring.name),
      made,
    );
  };
  assert.equal(await make(), 200);
  const { body: sealed } = await call('POST', '/ks/encrypt', { ringname: made[0] });
  let decrypts = 0;
  const decrypt = async (): Promise<void> => {
    const { status } = await call('POST', '/ks/decrypt', { hash: sealed.hash });
    assert.equal(status, 200);
    decrypts++;
  };
  await until('the reserve is made', async () => existsSync(join(data, reserveFile)));

  // Writes continue while the disk fills up.
  const filling = fill(join(path, 'other'));
  await until('writes are refused', async () => (await make()) === 503);
  await filling;
  await until('writes stay refused', async () => (await make()) === 503);
  for (let n = 0; n < 50; n++) await decrypt();
  assert.equal((await call('GET', '/readyz')).status, 503);

  await server.end('SIGKILL');
  server = await serve(cwd, args);
  await everythingIsThere();
  assert.equal(await make(), 503);
  for (let n = 0; n < 50; n++) await decrypt();

  rmSync(join(path, 'other'));
  await until('writes are taken again', async () => (await make()) === 200);
  await everythingIsThere();
  const { body } = await call('POST', '/auth/search/activity?limit=10000', { action: 'keyring.decrypt' });
  assert.equal(body.data.filter(({ status }: { status: number }) => status === 200).length, decrypts);
  assert.equal(await server.end('SIGTERM'), 0);
  assert.equal((await kms(cwd, ['activity', 'verify', '--data', data])).code, 0);
  return `${made.length} rings, ${decrypts} decrypts recorded, all but the first ring's on a filling or full disk`;
}

/** Takes all remaining space, in steps. */
async function fill(file: string): Promise<void> {
  const fd = openSync(file, 'w');
  try {
    for (let size = 1024 * kib; size >= kib; ) {
      try {
        writeSync(fd, new Uint8Array(size));
        await delay(5);
      } catch {
        size = Math.floor(size / 4);
      }
    }
  } finally {
    closeSync(fd);
  }
}
