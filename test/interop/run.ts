// Runs real clients against an appliance that the executable serves, and prints a line for each client and scenario:
// `run.ts [--record|--install] [NAME…]`. Only scenarios that ran are counted; clients that could not be installed are
// reported with the reason.
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { paths } from '../../build/paths.ts';
import { clients } from './clients/all.ts';
import { lastOf, openDesk } from './desk.ts';
import { Absent } from './install.ts';
import { Recorder } from './recording.ts';

const names = process.argv.slice(2).filter((arg) => arg !== '--record' && arg !== '--install');
const records = process.argv.includes('--record');
const unknown = names.filter((name) => !clients.some((client) => client.name === name));
if (unknown.length > 0) {
  const known = clients.map(({ name }) => name).join(', ');
  console.error(`kms: no client is called ${unknown.join(', ')}; there are: ${known}`);
  process.exit(2);
}
const wanted = clients.filter(({ name, onlyIfNamed }) => (names.length === 0 ? !onlyIfNamed : names.includes(name)));
if (process.argv.includes('--install')) {
  for (const { name, install } of wanted) {
    await install().catch((error: unknown) => console.error(`kms: ${name} could not be installed: ${reason(error)}`));
  }
  process.exit(0);
}
if (!existsSync(paths.executable)) throw new Error('dist/kms is missing: run scripts/build first');

let passed = 0;
let failed = 0;
let absent = 0;
const recorder = new Recorder();
await using desk = await openDesk([paths.executable], recorder);
// Ends the child processes with this process.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.on(signal, () => void desk[Symbol.asyncDispose]().finally(() => process.exit(code)));
}
for (const client of wanted) await each(client);
recorder.close();
if (records) {
  const biome = ['node_modules/@biomejs/biome/bin/biome', 'format', '--write', 'test/interop/recorded'];
  execFileSync(process.execPath, biome, { cwd: paths.root, stdio: 'ignore' });
}
console.log(`${passed} passed, ${failed} failed, ${absent} not to be had here`);
process.exitCode = failed === 0 ? 0 : 1;

async function each({ name, from, install }: (typeof clients)[number]): Promise<void> {
  try {
    const { version, scenarios } = await install();
    recorder.take();
    const failedBefore = failed;
    for (const { does, run } of scenarios) {
      try {
        await run(desk);
        recorder.refuseFaults();
        passed++;
        console.log(`ok      ${name} ${version} (${from}): ${does}`);
      } catch (error) {
        failed++;
        console.log(`FAILED  ${name} ${version} (${from}): ${does}: ${reason(error)}`);
      }
    }
    const steps = recorder.take();
    // Clients that the gate installs need no recording.
    if (
      records &&
      failed === failedBefore &&
      (from === 'Go' || from === 'Maven') &&
      steps.some((step) => 'ask' in step)
    ) {
      const file = new URL(`recorded/${name}.json`, import.meta.url);
      writeFileSync(file, `${JSON.stringify({ client: name, version, steps }, null, 2)}\n`);
    }
  } catch (error) {
    if (error instanceof Absent) absent++;
    else failed++;
    console.log(`${error instanceof Absent ? 'absent ' : 'FAILED '} ${name} (${from}): ${reason(error)}`);
  }
}

function reason(error: unknown): string {
  return lastOf(error instanceof Error ? error.message : String(error));
}
