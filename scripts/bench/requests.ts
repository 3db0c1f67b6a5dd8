// Requests per second of the executable beside a bare route on the same runtime, in alternation, so that both meet the
// same noise.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { goal, median, row, short } from './figures.ts';
import { inTurns, load, type Measured, throughput } from './load.ts';
import { anonymousMegabytes, residentMegabytes, start } from './process.ts';

/** Of the bare route. */
const wanted: Readonly<Record<string, number>> = {
  encrypt: 0.5,
  decrypt: 0.6,
  hash: 0.5,
  header: 0.5,
  validate: 0.5,
  'encrypt with asset': 0.15,
  'decrypt with asset': 0.25,
};

const node = process.execPath;
const here = import.meta.dirname;
const kms = join(here, '../../dist/kms');

/** @param seconds of each measurement. @param rounds in which each operation is measured once, beside its bare twin. */
export async function measureRequests(seconds: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const data = join(home, 'data');
  const before = performance.now();
  const empty = await start(0, kms, ['--data', data, 'serve', '--listen', '127.0.0.1:0'], /listening on (\S+)/);
  const startMilliseconds = performance.now() - before;
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const idle = residentMegabytes(empty.child.pid);
  const idleAnonymous = anonymousMegabytes(empty.child.pid);
  await empty.stop();
  rmSync(data, { recursive: true });
  rmSync(`${data}.master.key`);

  const root = JSON.parse(run(['--data', data, 'init', '--json'])).apiKey.key;
  const server = await start(0, kms, ['--data', data, 'serve', '--listen', '127.0.0.1:0'], /listening on (\S+)/);
  const headers = { authorization: `Bearer ${root}`, 'content-type': 'application/json' };
  const ask = async (path: string, body?: object) => {
    const method = body ? 'POST' : 'GET';
    const response = await fetch(server.match + path, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  await ask('/ks/keyrings', { name: 'bench' });
  const issued = await ask('/ks/encrypt', { ringname: 'bench' });
  const asset = { data: { file: 'report.pdf', owner: 'bench' } };
  const withAsset = await ask('/ks/encrypt', { ringname: 'bench', asset });
  const operations: readonly { name: string; path: string; bare: string; body?: object; answer: object }[] = [
    { name: 'encrypt', path: '/ks/encrypt', bare: '/encrypt', body: { ringname: 'bench' }, answer: issued },
    {
      name: 'decrypt',
      path: '/ks/decrypt',
      bare: '/decrypt',
      body: { header: issued.header },
      answer: await ask('/ks/decrypt', { header: issued.header }),
    },
    {
      name: 'hash',
      path: `/ks/hash/${issued.hash}`,
      bare: `/hash/${issued.hash}`,
      answer: await ask(`/ks/hash/${issued.hash}`),
    },
    {
      name: 'header',
      path: `/ks/header/${issued.header}`,
      bare: `/header/${issued.header}`,
      answer: await ask(`/ks/header/${issued.header}`),
    },
    {
      name: 'validate',
      path: '/auth/validate',
      bare: '/validate',
      body: { key: root },
      answer: await ask('/auth/validate', { key: root }),
    },
    {
      name: 'encrypt with asset',
      path: '/ks/encrypt',
      bare: '/asset',
      body: { ringname: 'bench', asset },
      answer: withAsset,
    },
    {
      name: 'decrypt with asset',
      path: '/ks/decrypt',
      bare: '/opened',
      body: { header: withAsset.header },
      answer: await ask('/ks/decrypt', { header: withAsset.header }),
    },
  ];
  const answers = Object.fromEntries(operations.map(({ bare, answer }) => [`/${bare.split('/')[1]}`, answer]));
  const bare = await start(0, node, [join(here, 'bare-route.ts'), JSON.stringify(answers)], /listening on (\S+)/);

  // One after the other, since assets leave rows behind that later checkpoints write.
  const results = new Map<string, { kms: Measured[]; bare: Measured[] }>();
  for (const { name, path, bare: twin, body } of operations) {
    const request = {
      method: body ? ('POST' as const) : ('GET' as const),
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    };
    const sides = [bare.match + twin, server.match + path].map((url) => ({ ...request, url }));
    const [ofBare = [], ofKms = []] = await inTurns(sides, seconds, rounds);
    results.set(name, { kms: ofKms, bare: ofBare });
  }

  console.log(`\nRequests: 64 connections, ${rounds} rounds of ${seconds} s; a second over all of them, medians else`);
  row('', 'kms req/s', 'p50 ms', 'p99 ms', 'bare req/s', 'p50 ms', 'p99 ms', 'ratio', 'wanted');
  const ratios = new Map<string, number>();
  for (const [name, { kms: ours, bare: theirs }] of results) {
    const failed = [...ours, ...theirs].reduce((sum, each) => sum + each.failed, 0);
    if (failed > 0) throw new Error(`${name}: ${failed} requests failed`);
    const of = (from: Measured[], field: 'p50' | 'p99') => median(from.map((each) => each[field]));
    const ratio = throughput(ours) / throughput(theirs);
    ratios.set(name, ratio);
    const cells = (from: Measured[]) => [short(throughput(from)), of(from, 'p50'), of(from, 'p99')];
    row(name, ...cells(ours), ...cells(theirs), ratio.toFixed(3), wanted[name] ?? '');
  }
  for (const [name, least] of Object.entries(wanted)) {
    goal(`${name}, durable, of the bare route`, ratios.get(name) ?? 0, least, 'at least');
  }
  const [encrypt] = operations;
  if (encrypt) {
    // In a round of a second the load's own start is a good part of the tail.
    const request = { url: server.match + encrypt.path, method: 'POST' as const, headers };
    const { p50, p99, failed } = await load(1, { ...request, body: JSON.stringify(encrypt.body), seconds: 30 });
    if (failed > 0) throw new Error(`${failed} encrypts of half a minute failed`);
    goal(`p99 of encrypt (${p99} ms over half a minute), of its p50 (${p50} ms)`, p99 / p50, 3, 'at most');
  }
  console.log('\nThe process');
  goal('start on an empty directory, until it listens', startMilliseconds / 1000, 0.2, 'at most', ' s');
  goal('idle memory', idle, 100, 'at most', ' MB');
  console.log(`  of it no file's: ${short(idleAnonymous)} MB`);
  console.log(`  memory after the load: ${short(residentMegabytes(server.child.pid))} MB`);
  goal('size of the executable', readFileSync(kms).length / 1e6, 100, 'at most', ' MB');
  await server.stop();
  await bare.stop();
  rmSync(home, { recursive: true });
}

function run(args: readonly string[]): string {
  return execFileSync(kms, args, { encoding: 'utf8' });
}
