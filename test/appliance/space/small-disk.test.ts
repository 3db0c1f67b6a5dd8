// A real small disk that another program fills up under a serving appliance.
import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { reserveFile } from '../../../src/platform/data-dir.ts';
import { serve } from '../../../src/server/serve.ts';
import { type SmallDisk, smallDisks } from '../../support/small-disk.ts';
import { until } from '../../support/until.ts';

const kib = 1024;
const reserve = 256 * kib;
const disks = smallDisks(16);
if (disks.length === 0) {
  process.stderr.write('kms: nothing can be mounted here: the test with a real disk that fills up is not run\n');
}

for (const { kind, mount } of disks) {
  test(`${kind} that fills up: writes are refused, decrypts go on and are recorded, and all is well once there is room`, async () => {
    const disk = mount();
    try {
      await fillUp(disk);
    } finally {
      disk.unmount();
    }
  });
}

async function fillUp({ path, kind }: SmallDisk): Promise<void> {
  const data = join(path, 'data');
  let key = '';
  const options = { data, listen: '127.0.0.1:0', logLevel: 'silent', space: { every: 20, reserve, floor: 512 * kib } };
  const first = await serve({
    ...options,
    onInitialised: (made) => {
      key = made.apiKey.key;
    },
  });
  const call = async (method: string, where: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const init = body ? { method, headers, body: JSON.stringify(body) } : { method, headers };
    const response = await fetch(first.url + where, init);
    return { status: response.status, body: await response.json() };
  };
  const reserved = (): number => statSync(join(data, reserveFile), { throwIfNoEntry: false })?.size ?? 0;
  let recorded = 0;
  try {
    assert.equal((await call('POST', '/ks/keyrings', { name: 'payroll' })).status, 200);
    const { body: made } = await call('POST', '/ks/encrypt', { ringname: 'payroll' });
    await until('the reserve is made', () => reserved() === reserve);
    const decrypt = async (): Promise<number> => {
      const { status } = await call('POST', '/ks/decrypt', { hash: made.hash });
      if (status === 200) recorded++;
      return status;
    };

    fill(join(path, 'other'));
    await until(
      'writes are refused',
      async () => (await call('POST', '/ks/encrypt', { ringname: 'payroll' })).status === 503,
    );
    const refused = await call('POST', '/ks/keyrings', { name: 'second' });
    assert.equal(refused.status, 503);
    assert.match(refused.body.message, /the disk is (nearly )?full|no space left/);
    const ready = await call('GET', '/readyz');
    assert.equal(ready.status, 503);
    assert.deepEqual(ready.body.disk, { freePercent: 0, writable: false });
    assert.equal((await call('GET', '/ks/keyrings')).status, 200);

    while ((await decrypt()) === 200) assert.ok(recorded < 100_000);
    assert.ok(recorded > 100, `${kind}: only ${recorded} decrypts before the reserve was used up`);
    assert.equal(reserved(), 0);

    rmSync(join(path, 'other'));
    await until('writes are taken again', async () => (await call('GET', '/readyz')).status === 200);
    assert.equal(reserved(), reserve);
    assert.equal((await call('POST', '/ks/keyrings', { name: 'second' })).status, 200);
    assert.equal(await decrypt(), 200);
    assert.equal(await granted(call), recorded);
  } finally {
    await first.close();
  }
  const second = await serve(options);
  try {
    const found = await fetch(`${second.url}/ks/keyrings`, { headers: { authorization: `Bearer ${key}` } });
    const { data: rings } = (await found.json()) as { data: { name: string }[] };
    assert.deepEqual(
      rings.map(({ name }) => name),
      ['payroll', 'second'],
    );
  } finally {
    await second.close();
  }
}

/** Takes every remaining byte. */
function fill(file: string): void {
  const fd = openSync(file, 'w');
  try {
    for (let size = 1024 * kib; size >= 1; ) {
      try {
        writeSync(fd, new Uint8Array(size));
      } catch {
        size = Math.floor(size / 4);
      }
    }
  } finally {
    closeSync(fd);
  }
}

/** The number of decrypts that the activity log records as granted. */
async function granted(
  call: (method: string, where: string, body?: object) => Promise<{ body: { data: { status: number }[] } }>,
): Promise<number> {
  const { body } = await call('POST', '/auth/search/activity?limit=10000', { action: 'keyring.decrypt' });
  return body.data.filter(({ status }) => status === 200).length;
}

test('the reserve is made with the start, not by the first of the usual looks', async () => {
  const base = mkdtempSync(join(tmpdir(), 'kms-reserve-'));
  const data = join(base, 'data');
  const serving = await serve({ data, listen: '127.0.0.1:0', logLevel: 'silent', space: { every: 1e9, reserve } });
  try {
    const size = (): number => statSync(join(data, reserveFile), { throwIfNoEntry: false })?.size ?? 0;
    await until('the reserve is made', () => size() === reserve);
  } finally {
    await serving.close();
    rmSync(base, { recursive: true, force: true });
  }
});
