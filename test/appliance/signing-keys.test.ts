// Assets verified without the appliance: by the two programs of docs/verify-asset, from a header, an asset and the
// public keys alone, with the output of a live appliance through two rekeys and with the vectors of
// test/vectors/assets.json.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspectHeader } from '../../src/crypto/header.ts';
import { pythonCommand, pythonMissing } from '../support/python.ts';
import { vectorsOf } from '../support/vectors.ts';
import { place } from './tenant-appliance.ts';

const programs = fileURLToPath(new URL('../../docs/verify-asset/', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'kms-signing-'));
after(() => rmSync(dir, { recursive: true, force: true }));

const verifiers = [
  { name: 'verify.mjs', command: [process.execPath], skip: false },
  { name: 'verify.py', command: [pythonCommand, '-B'], skip: pythonMissing },
] as const;

interface Verdict {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs each program that is available here and returns their common verdict. */
function verified(header: string, asset: string, keys: string): Verdict {
  const files = { header, asset, keys };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  const verdicts = verifiers
    .filter(({ skip }) => skip === false)
    .map(({ name, command: [command, ...options] }) => {
      const args = [...options, join(programs, name), ...Object.keys(files).map((each) => join(dir, each))];
      const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
      return { name, code: status, stdout, stderr };
    });
  const [first] = verdicts;
  assert.ok(first);
  for (const { name, code, stdout, stderr } of verdicts) {
    assert.deepEqual([code, stdout], [first.code, first.stdout], `${name}: ${stderr}`);
    assert.match(stderr, code === 0 ? /^$/ : /^(NOT VALID|not verified): .+\n$/, name);
  }
  return first;
}

interface Vector {
  readonly name: string;
  readonly header: string;
  readonly asset: string;
  readonly keys: object;
  readonly message?: string;
  readonly valid: boolean;
}

test('the vectors', () => {
  const vectors: Vector[] = vectorsOf('assets');
  for (const { name, header, asset, keys, valid } of vectors) {
    const { code, stdout, stderr } = verified(`${header}\n`, asset, JSON.stringify(keys));
    assert.deepEqual([code, stdout === ''], valid ? [0, false] : [1, true], `${name}: ${stdout}${stderr}`);
  }
});

test('what a live appliance signed verifies without it, through two rekeys', async () => {
  await using p = await place();
  const ok = async (method: string, path: string, body?: object) => {
    const answer = await p.local(method, path, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  };
  await ok('POST', '/ks/keyrings', { name: 'r' });
  const parent = await ok('POST', '/ks/encrypt', { ringname: 'r', asset: {} });
  const data = {
    file: 'salaries.xlsx',
    n: [1e21, 0.1, -0, 1e-7, 123456789012345],
    ' ': { ü: ['\u{1f511}', '\ue000'] },
  };
  const parents = [parent.asset.id];
  const first = await ok('POST', '/ks/encrypt', { ringname: 'r', asset: { data, parents } });
  const made: { header: string; asset: object }[] = [first, parent];
  const before = Date.now();
  for (let n = 2; n <= 3; n++) {
    await ok('POST', '/local/tenants/default/rekey', {});
    const asset = { assetId: first.asset.id, data: { n } };
    made.push(await ok('POST', '/ks/encrypt', { ringname: 'r', asset }));
  }
  await p.reopen();

  const answer = await ok('GET', '/assets/signing-keys');
  const keys: { epoch: number; publicKey: string; createdAt: string }[] = answer.keys;
  assert.deepEqual(Object.keys(answer), ['keys']);
  assert.deepEqual(
    keys.map((key) => [Object.keys(key).join(), key.epoch, key.publicKey.length]),
    [1, 2, 3].map((epoch) => ['epoch,publicKey,createdAt', epoch, 60]),
  );
  assert.equal(new Set(keys.map(({ publicKey }) => publicKey)).size, 3);
  const times = keys.map(({ createdAt }) => Date.parse(createdAt));
  assert.deepEqual(times, times.toSorted());
  assert.ok(
    (times[0] ?? 0) <= before && before <= (times[1] ?? 0) && (times[2] ?? 0) <= Date.now(),
    `${before} ${times}`,
  );

  const published = JSON.stringify(answer);
  for (const { header, asset } of made) {
    assert.equal(verified(header, JSON.stringify(asset), published).code, 0);
    const { epoch } = { epoch: Buffer.from(header, 'base64url').readUInt16BE(3) };
    const others = JSON.stringify({ keys: keys.filter((key) => key.epoch !== epoch) });
    assert.equal(verified(header, JSON.stringify(asset), others).code, 1);
  }
  const newest = made.at(-1)?.header ?? '';
  const current = await ok('GET', `/assets/${first.asset.id}`);
  assert.match(
    verified(newest, JSON.stringify(current), published).stdout,
    /^valid: asset_\w{26}, version 3, .* epoch 3\n$/,
  );
  assert.equal(verified(first.header, JSON.stringify(current), published).code, 1, 'an older header signed older data');
  // Decrypt returns the data of the version that the header signed; the parents have not changed.
  const old = await ok('POST', '/ks/decrypt', { header: first.header });
  const asItWas = { ...current, data: old.asset.data };
  assert.deepEqual(asItWas.data, first.asset.data);
  assert.equal(verified(first.header, JSON.stringify(asItWas), published).code, 0);
  assert.equal(inspectHeader(first.header)?.assetVersion, 1);

  const { data: records } = await ok('POST', '/auth/search/activity', { action: 'asset.signing-keys' });
  assert.deepEqual(
    records.map(({ keyid, validAction, status }: Record<string, unknown>) => [keyid, validAction, status]),
    [['local', true, 200]],
  );
  assert.equal((await p.local('GET', '/assets/signing-key')).status, 404, 'any other word is an id');
  assert.equal((await p.local('DELETE', '/assets/signing-keys')).status, 405, 'and there is nothing to delete');

  const blue = await ok('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
  assert.ok(blue.tenant);
  const theirs = (await p.local('GET', '/assets/signing-keys', undefined, 'blue')).body;
  assert.equal(theirs.keys.length, 1);
  assert.ok(!keys.some(({ publicKey }) => publicKey === theirs.keys[0].publicKey));
  assert.equal(verified(first.header, JSON.stringify(first.asset), JSON.stringify(theirs)).code, 1);
});

test('wrong usage, a file that is not there, and no package for signatures are no verdict', () => {
  for (const { name, command, skip } of verifiers) {
    if (skip !== false) continue;
    const [program, ...options] = command;
    const run = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync(program, [...options, ...args], { encoding: 'utf8' });
      assert.equal(stdout, '', name);
      assert.ok(stderr.length > 10, name);
      return status;
    };
    const file = join(programs, name);
    assert.equal(run(file), 2);
    assert.equal(run(file, file, file, file, file), 2);
    assert.equal(run(file, join(dir, 'none'), file, file), 3);
  }
  if (pythonMissing !== false) return;
  const vectors: Vector[] = vectorsOf('assets');
  const [good] = vectors;
  assert.ok(good?.valid);
  verified(good.header, good.asset, JSON.stringify(good.keys));
  const without = `import runpy, sys; sys.modules["cryptography"] = None; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name="__main__")`;
  const args = [
    '-B',
    '-c',
    without,
    join(programs, 'verify.py'),
    ...['header', 'asset', 'keys'].map((each) => join(dir, each)),
  ];
  const { status, stdout, stderr } = spawnSync(pythonCommand, args, { encoding: 'utf8' });
  assert.deepEqual([status, stdout], [3, '']);
  assert.match(stderr, /^not verified: .*cryptography/);
});
