// Clients from Debian, PyPI and npm, against an appliance served from the sources. scripts/interop runs all of them against
// the executable.
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { clients } from './clients/all.ts';
import { openDesk } from './desk.ts';
import { Absent } from './install.ts';
import { Recorder } from './recording.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const recorder = new Recorder();
const desk = await openDesk([process.execPath, main], recorder);
after(async () => {
  recorder.close();
  await desk[Symbol.asyncDispose]();
});

for (const { name, from, onlyByHand, install } of clients) {
  if (onlyByHand || from === 'Go' || from === 'Maven') continue;
  const { version, scenarios } = await install().catch((error: unknown) => {
    if (!(error instanceof Absent)) throw error;
    console.error(`kms: ${name} is not tried: ${error.message}`);
    return { version: '', scenarios: [] };
  });
  for (const { does, run } of scenarios)
    test(`${name} ${version}: ${does}`, async () => {
      await run(desk);
      recorder.refuseFaults();
    });
}
