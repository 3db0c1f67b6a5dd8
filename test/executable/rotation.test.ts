// The master key and the tenant's keys are rotated repeatedly, while clients encrypt and decrypt: no client notices,
// and everything they hold from before stays valid, after a kill too.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { asker, kms, serve, workDirectory } from './kms.ts';

const rounds = 4;

test('rotating and rekeying under load fails no request', async () => {
  const cwd = workDirectory();
  const quiet = ['--log-level', 'warn'];
  let server = await serve(cwd, quiet);
  assert.ok(server.apiKey);
  const ask = asker(server.apiKey);
  for (const name of ['one', 'two']) await ask(`${server.url}/ks/keyrings`, 'POST', { name });
  const encrypt = { ringname: 'one', asset: { data: { case: 17 } } };
  const before = await (await ask(`${server.url}/ks/encrypt`, 'POST', encrypt)).json();
  const first = await (await ask(`${server.url}/ks/keyrings?limit=1`, 'GET')).json();
  assert.equal(first.pagination.hasMore, true);
  const head = await kms(cwd, ['activity', 'head', '--json']);

  const headers: string[] = [];
  const failed: string[] = [];
  let stop = false;
  const request = async (path: string, body: object): Promise<{ readonly header?: string }> => {
    const answer = await ask(server.url + path, 'POST', body);
    if (answer.status !== 200) failed.push(`${path}: ${answer.status}`);
    return answer.json();
  };
  const load = Array.from({ length: 8 }, async () => {
    while (!stop) {
      const { header } = await request('/ks/encrypt', { ringname: 'one' });
      if (header === undefined) return;
      headers.push(header);
      await request('/ks/decrypt', { header });
      await request('/ks/decrypt', { header: before.header });
    }
  });
  const fingerprints = new Set<string>();
  for (let round = 0; round < rounds; round++) {
    const rotated = await kms(cwd, ['master', 'rotate', '--json']);
    assert.equal(rotated.code, 0, rotated.stderr);
    fingerprints.add(JSON.parse(rotated.stdout).fingerprint);
    const rekeyed = await kms(cwd, ['tenant', 'rekey', 'default']);
    assert.equal(rekeyed.code, 0, rekeyed.stderr);
  }
  stop = true;
  await Promise.all(load);
  assert.deepEqual(failed, []);
  assert.equal(fingerprints.size, rounds);
  assert.ok(headers.length > 0);
  await server.end('SIGKILL');

  server = await serve(cwd, quiet);
  const opened = headers.filter((_, i) => i % Math.ceil(headers.length / 50) === 0);
  for (const header of opened) {
    assert.equal((await ask(`${server.url}/ks/decrypt`, 'POST', { header })).status, 200);
  }
  const decrypted = await (await ask(`${server.url}/ks/decrypt`, 'POST', { header: before.header })).json();
  assert.deepEqual(decrypted.key, before.key);
  assert.deepEqual([decrypted.asset.valid, decrypted.asset.data], [true, { case: 17 }]);
  assert.equal((await ask(`${server.url}/ks/hash/${before.hash}`, 'GET')).status, 200);
  const next = await ask(`${server.url}/ks/keyrings?limit=1&cursor=${first.pagination.nextCursor}`, 'GET');
  assert.deepEqual(
    (await next.json()).data?.map(({ name }: { name: string }) => name),
    ['two'],
  );
  writeFileSync(`${cwd}/head.json`, head.stdout);
  const verified = await kms(cwd, ['activity', 'verify', '--since', 'head.json']);
  assert.equal(verified.code, 0, verified.stderr);
  assert.equal(await server.end('SIGTERM'), 0);
  const doctor = await kms(cwd, ['doctor']);
  assert.equal(doctor.code, 0, doctor.stdout);
});
