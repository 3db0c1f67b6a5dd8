// The mark of a seal on purpose, across crashes and failing disks: once a change is acknowledged the appliance is
// sealed or not accordingly; before that it is either.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSealedOnPurpose, sealInFiles } from '../../src/custody/seal-keeper.ts';
import { sealMark } from '../../src/platform/data-dir.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import type { Prng } from '../support/prng.ts';
import { SimFiles } from '../support/sim-files.ts';

const sealOnPurpose = (files: SimFiles): Promise<void> => sealInFiles(files, '/nowhere').sealOnPurpose();
const endOnPurpose = (files: SimFiles): Promise<void> => sealInFiles(files, '/nowhere').endOnPurpose();

async function prepare(generator: Prng): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  // The seal file always stands beside it.
  await files.replace('kms.seal', new Uint8Array([1]));
  return files;
}

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const files = breaking(base, fault, generator);
  /** The last acknowledged state, and the one requested since. */
  let answered = false;
  let asked: boolean | undefined;
  for (const wanted of [true, true, false, true, false, false]) {
    if (files.crashed) break;
    asked = wanted;
    if (await done(files, fault, wanted ? sealOnPurpose(files) : endOnPurpose(files))) {
      answered = wanted;
      asked = undefined;
    } else if (!files.crashed) {
      mend(files, fault);
      break;
    }
  }
  const came = mend(files, fault);
  const after = files.restart({ prng: generator });
  const found = await isSealedOnPurpose(after);
  if (asked === undefined) assert.equal(found, answered);
  assert.ok(found === answered || found === asked);
  assert.deepEqual(
    (await after.list('.')).filter((name) => !['kms.seal', sealMark, `${sealMark}.tmp`].includes(name)),
    [],
  );
  // Later changes succeed, whatever was left.
  await endOnPurpose(after);
  assert.equal(await isSealedOnPurpose(after.restart({ prng: generator })), false);
  const last = after.restart({ prng: generator });
  await sealOnPurpose(last);
  assert.equal(await isSealedOnPurpose(last.restart({ prng: generator })), true);
  return came;
}

test('a fault at every step of sealing and unsealing on purpose', async (context) => {
  const points = await crashSweep({ file: import.meta.filename, seeds: 12, prepare, attempt });
  context.diagnostic(`${points} crash points`);
  assert.ok(points > 100, `${points}`);
});
