// `kms metrics` as typed, with and without a server, and over the network.
import assert from 'node:assert/strict';
import test from 'node:test';
import { parsePrometheus } from '../support/prometheus-text.ts';
import { desk } from './kms.ts';

test('kms metrics prints what Prometheus would read, with and without a server', async () => {
  await using d = await desk();
  await d.kms('init');
  const { code, stdout, stderr } = await d.kms('metrics');
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(parsePrometheus(stdout).get('kms_sealed')?.samples[0]?.value, 0);
  const { metrics } = await d.json<{ metrics: string }>('metrics --json');
  assert.ok(parsePrometheus(metrics).has('kms_requests_total'));

  await d.kms('tenant create blue --host blue.example');
  const unnamed = await d.kms('metrics');
  assert.deepEqual([unnamed.code, unnamed.stdout], [2, '']);
  assert.match(unnamed.stderr, /--tenant/);
  assert.equal((await d.kms('metrics --tenant blue')).code, 0);
  assert.equal((await d.kms('metrics --tenant none')).code, 1);
});

test('kms metrics over the network needs a key with the flag', async () => {
  await using d = await desk();
  await d.kms('init');
  await d.kms('apikey create --account admin --flag system.metrics --secret-out good.key');
  await d.kms('apikey create --account admin --flag system.backup --secret-out weak.key');
  const stop = new AbortController();
  const listening = Promise.withResolvers<string>();
  const served = d.kms('serve --listen 127.0.0.1:0 --log-level silent', {
    signal: stop.signal,
    onStderr: (text) => {
      const [, url] = /listening on (\S+)/.exec(text) ?? [];
      if (url !== undefined) listening.resolve(url);
    },
  });
  const url = await Promise.race([listening.promise, served.then(({ stderr }) => assert.fail(stderr))]);
  const good = await d.kms(['metrics', '--server', url, '--api-key-file', 'good.key']);
  assert.deepEqual([good.code, good.stderr], [0, '']);
  parsePrometheus(good.stdout);
  const weak = await d.kms(['metrics', '--server', url, '--api-key-file', 'weak.key']);
  assert.deepEqual([weak.code, weak.stdout], [1, '']);
  assert.match(weak.stderr, /system\.metrics/);
  stop.abort();
  assert.equal((await served).code, 0);
});
