// Those clients that Debian and PyPI bring, against an appliance served from the sources. All of them, against the
// executable: scripts/interop.
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { clients } from './clients/all.ts';
import { openDesk } from './desk.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const desk = await openDesk([process.execPath, main]);
after(() => desk[Symbol.asyncDispose]());

for (const { name, from, install } of clients) {
  if (from !== 'Debian' && from !== 'PyPI') continue;
  const { version, scenarios } = await install();
  for (const { does, run } of scenarios) test(`${name} ${version}: ${does}`, async () => void (await run(desk)));
}
