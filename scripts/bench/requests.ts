// Requests per second of the executable beside a bare route on the same runtime, in alternation, so that both meet the
// same noise.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { kms, makeAppliance, serve } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { inTurns, load, type MeasuredSide, mean } from './load.ts';
import { anonymousMegabytes, type Core, cpuSeconds, residentMegabytes, type Started, start } from './process.ts';

/** Goals, as a share of the bare route's rate. */
const wanted: Readonly<Record<string, number>> = {
  encrypt: 0.6,
  decrypt: 0.6,
  hash: 0.55,
  header: 0.55,
  validate: 0.5,
  'encrypt with asset': 0.2,
  'decrypt with asset': 0.4,
};

const startsMeasured = 7;

/** @param seconds of each measurement. @param rounds in which each operation is measured once, beside its bare twin. */
export async function measureRequests(seconds: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const started = await measureStarts(home);
  const appliance = makeAppliance(join(home, 'data'));
  const { headers } = appliance;
  const server = await serve(0, appliance);
  const ask = async (path: string, body?: object) => JSON.parse(await server.ask(path, body));
  await ask('/ks/keyrings', { name: 'bench' });
  const key = headers.authorization.slice('Bearer '.length);
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
      body: { key },
      answer: await ask('/auth/validate', { key }),
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
  const bare = await start(
    0,
    process.execPath,
    [join(import.meta.dirname, 'bare-route.ts'), JSON.stringify(answers)],
    /listening on (\S+)/,
  );

  // One after the other, since assets leave rows behind that later checkpoints write.
  const results = new Map<string, { kms: MeasuredSide[]; bare: MeasuredSide[] }>();
  for (const { name, path, bare: twin, body } of operations) {
    const side = (url: string, { child }: Started) => ({
      url,
      headers,
      ...(body && { body: JSON.stringify(body) }),
      cpu: () => cpuSeconds(child.pid),
    });
    const sides = [side(bare.match + twin, bare), side(server.url + path, server)];
    const [ofBare = [], ofKms = []] = await inTurns(sides, seconds, rounds);
    results.set(name, { kms: ofKms, bare: ofBare });
  }

  console.log(`\nRequests: 64 connections, ${rounds} rounds of ${seconds} s; means, and medians of p50 and p99 in ms`);
  row('', 'kms req/s', 'p50', 'p99', 'CPU µs', 'bare req/s', 'p50', 'p99', 'CPU µs', 'ratio', 'by CPU', 'wanted');
  const ratios = new Map<string, number>();
  for (const [name, { kms, bare }] of results) {
    const ratio = mean(kms, 'perSecond') / mean(bare, 'perSecond');
    ratios.set(name, ratio);
    const byCpu = mean(bare, 'cpu') / mean(kms, 'cpu');
    row(name, ...cells(kms), ...cells(bare), ratio.toFixed(3), byCpu.toFixed(3), wanted[name] ?? '');
  }
  for (const [name, least] of Object.entries(wanted)) {
    goal(`${name}, durable, of the bare route`, ratios.get(name) ?? 0, least, 'at least');
  }
  // In a round of a second the load's own start makes up much of the tail.
  const encrypt = { url: `${server.url}/ks/encrypt`, headers, body: JSON.stringify({ ringname: 'bench' }) };
  const { p50, p99 } = await load(1, { ...encrypt, seconds: 30 });
  console.log(`Encrypts over half a minute: p50 ${p50} ms, p99 ${p99} ms`);
  goal('p99 of encrypt, of its p50', p99 / p50, 3, 'at most');
  console.log('\nThe process');
  const { times, onAnyCore, idle, idleAnonymous } = started;
  goal('first answer on an empty directory', median(times) / 1000, 0.2, 'at most', ' s');
  console.log(
    `  median of ${times.length}, from ${short(Math.min(...times))} to ${short(Math.max(...times))} ms; on both cores: ${short(onAnyCore)} ms`,
  );
  goal('idle memory', idle, 100, 'at most', ' MB');
  console.log(`  of it no file's: ${short(idleAnonymous)} MB`);
  console.log(`  memory after the load: ${short(server.megabytes())} MB`);
  goal('size of the executable', statSync(kms).size / 1e6, 100, 'at most', ' MB');
  await server.stop();
  await bare.stop();
  rmSync(home, { recursive: true });
}

function cells(of: readonly MeasuredSide[]): string[] {
  const middle = (field: 'p50' | 'p99') => short(median(of.map((each) => each[field])));
  return [short(mean(of, 'perSecond')), middle('p50'), middle('p99'), mean(of, 'cpu').toFixed(1)];
}

/**
 * Milliseconds until the first answer on empty directories, on the server's core and on any core; and megabytes of an
 * idle process.
 */
async function measureStarts(home: string) {
  const data = join(home, 'empty');
  // Modules that this process loads for its first request must not count.
  await fetch('http://127.0.0.1:1').catch(() => {});
  const first = async (core: Core, idleMilliseconds: number) => {
    const before = performance.now();
    const server = await start(core, kms, ['--data', data, 'serve', '--listen', '127.0.0.1:0'], /listening on (\S+)/);
    const { ok } = await fetch(`${server.match}/healthz`);
    const milliseconds = performance.now() - before;
    if (!ok) throw new Error('a server that has just started is not healthy');
    await setTimeout(idleMilliseconds);
    const { pid } = server.child;
    const idle = residentMegabytes(pid);
    const idleAnonymous = anonymousMegabytes(pid);
    await server.stop();
    rmSync(data, { recursive: true });
    rmSync(`${data}.master.key`);
    return { milliseconds, idle, idleAnonymous };
  };
  const times: number[] = [];
  const timesOnAny: number[] = [];
  for (let n = 0; n < startsMeasured; n++) {
    times.push((await first(0, 0)).milliseconds);
    timesOnAny.push((await first('any', 0)).milliseconds);
  }
  const { idle, idleAnonymous } = await first(0, 2000);
  return { times, onAnyCore: median(timesOnAny), idle, idleAnonymous };
}
