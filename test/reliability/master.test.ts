// A fault at every step of new master keys and changes of custodians, while a tenant writes: the seal and the stores
// always open together, everything acknowledged holds, and every change that took effect is recorded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { masterHandlers, sentSlot } from '../../src/appliance/master-handlers.ts';
import { toBase64Url } from '../../src/crypto/bytes.ts';
import { KmsError } from '../../src/errors.ts';
import { sealFile } from '../../src/platform/data-dir.ts';
import { parseHeader } from '../../src/seal/header.ts';
import { makeCustodian, slotIdOf } from '../../src/seal/slot.ts';
import type { Store, Tables } from '../../src/store/port.ts';
import { testWorld } from '../support/context.ts';
import { reached } from '../support/crash-points.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import { type Prng, prng } from '../support/prng.ts';
import {
  createSealedAppliance,
  numbersIn,
  openSealedAppliance,
  type SealedAppliance,
} from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';

const first = new Uint8Array(32).fill(1);
const second = new Uint8Array(32).fill(2);
const slots = { first: slotIdOf(first), second: slotIdOf(second) };

/** Properties of the seal that show which changes it has. */
interface Look {
  readonly master: string;
  readonly slots: readonly string[];
}

function lookAt(bytes: Uint8Array): Look {
  const { header } = parseHeader(bytes, sealFile);
  return { master: header.master, slots: header.slots.map(({ id }) => id) };
}

interface Change {
  readonly name: string;
  make(appliance: SealedAppliance, generator: Prng): Promise<unknown>;
  /** Whether the seal has the change. */
  shows(before: Look, after: Look): boolean;
}

function handlers(appliance: SealedAppliance, generator: Prng) {
  const world = testWorld({ now: 2000 }, generator.int(1_000_000));
  return masterHandlers({ ...appliance, world });
}

const nothing = { params: {}, query: {}, body: {}, handle: undefined };

const rotation: Change = {
  name: 'rotate',
  make: (appliance, generator) => handlers(appliance, generator).rotateMaster(nothing),
  shows: (before, after) => before.master !== after.master,
};

const changes: readonly Change[] = [
  rotation,
  {
    name: 'add-custodian',
    async make(appliance, generator) {
      const made = handlers(appliance, generator);
      const body = sentSlot(makeCustodian('recovery-kit', second), await made.getMaster(nothing));
      return made.addCustodian({ ...nothing, body });
    },
    shows: (_, after) => after.slots.includes(slots.second),
  },
  rotation,
  {
    name: 'remove-custodian',
    make: (appliance, generator) =>
      handlers(appliance, generator).removeCustodian({ ...nothing, params: { id: slots.first } }),
    shows: (_, after) => !after.slots.includes(slots.first),
  },
];

test('a custodian is added by a public key of X-Wing and a proof, and by nothing else', async () => {
  const generator = prng(7);
  const appliance = await openSealedAppliance(await prepare(generator), first, generator);
  const made = handlers(appliance, generator);
  const whole = sentSlot(makeCustodian('recovery-kit', second), await made.getMaster(nothing));
  const add = (body: Partial<typeof whole>) => made.addCustodian({ ...nothing, body: { ...whole, ...body } });
  const publicKey = Buffer.from(whole.publicKey, 'base64url');
  const overflowing = publicKey.slice();
  overflowing.fill(0xff, 0, 3);
  for (const [field, body] of [
    ['publicKey', { publicKey: '' }],
    ['publicKey', { publicKey: '!' }],
    ['publicKey', { publicKey: toBase64Url(publicKey.subarray(1)) }],
    ['publicKey', { publicKey: toBase64Url(overflowing) }],
    ['publicKey', { publicKey: toBase64Url(new Uint8Array(1216)) }],
    ['publicKey', { publicKey: toBase64Url(new Uint8Array(32)) }],
    ['proof', { proof: '' }],
    ['proof', { proof: whole.proof.slice(1) }],
  ] as const) {
    await assert.rejects(
      async () => add(body),
      (error) => error instanceof KmsError && error.code === 'invalid' && error.message.includes(field),
    );
  }
  await assert.rejects(async () => add({ master: '0'.repeat(64) }), { code: 'conflict' });
  const { custodians } = await add({});
  assert.deepEqual(custodians.at(-1), { id: slots.second, kind: 'recovery-kit', params: {} });
  await appliance.close();
});

/**
 * Whether the records contain these in order. Others may lie between: a change that failed after its record was
 * repeated, with another record.
 */
function isWithin(wanted: readonly string[], records: readonly string[]): boolean {
  let at = 0;
  for (const record of records) if (record === wanted[at]) at++;
  return at === wanted.length;
}

async function recorded(tenant: Store<Tables>): Promise<string[]> {
  const { items } = await tenant.activity.search({ action: 'system.master' }, { limit: 100 });
  return items.map(({ props }) => String(props?.operation)).reverse();
}

async function prepare(generator: Prng): Promise<SimFiles> {
  const files = new SimFiles({ prng: generator });
  await createSealedAppliance(files, first, generator);
  return files;
}

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const files = breaking(base, fault, generator);
  let written = 0;
  let look = lookAt(files.disk.names.get(sealFile)?.data ?? new Uint8Array());
  let secret = first;
  /** The change that was under way at the crash. */
  let doubtful: Change | undefined;
  const answered: string[] = [];

  const work = async (): Promise<void> => {
    const appliance = await openSealedAppliance(files, secret, generator);
    const write = async (): Promise<void> => {
      if (await done(files, fault, appliance.write())) written++;
    };
    for (const change of changes) {
      if (files.crashed) break;
      // A change that failed without a crash is repeated.
      for (let tries = 0; tries < 2; tries++) {
        doubtful = change;
        const [made] = await Promise.all([done(files, fault, change.make(appliance, generator)), write()]);
        if (files.crashed) break;
        doubtful = undefined;
        if (made) {
          const now = lookAt(appliance.seal.current.toBytes());
          assert.ok(change.shows(look, now), change.name);
          look = now;
          answered.push(change.name);
          if (change.name === 'add-custodian') secret = second;
          break;
        }
        mend(files, fault);
        await appliance.settle();
      }
    }
    await appliance.close();
  };
  await done(files, fault, work());
  const came = mend(files, fault);

  const after = files.restart({ prng: generator });
  const found = lookAt(await after.read(sealFile));
  const took = doubtful?.shows(look, found) ?? false;
  if (!took) assert.deepEqual(found, look, 'the seal is neither the one of before nor the new one');
  const appliance = await openSealedAppliance(after, secret, generator);
  const removed = !found.slots.includes(slots.first);
  if (removed) await assert.rejects(openSealedAppliance(after, first, generator), { code: 'refused' });
  const numbers = (await numbersIn(appliance.tenant)).length;
  assert.ok(numbers === written || (files.crashed && numbers === written + 1), `${numbers}, ${written} were answered`);
  const records = await recorded(appliance.tenant);
  const needed = took && doubtful ? [...answered, doubtful.name] : answered;
  assert.ok(isWithin(needed, records), `${needed.join()} took effect, ${records.join()} are recorded`);
  await appliance.write();
  await rotation.make(appliance, generator);
  await appliance.close();
  return came;
}

test('a fault at every step of rotations and of changes of custodians', async (context) => {
  reached(context, 'master', await crashSweep({ file: import.meta.filename, seeds: 2, prepare, attempt }));
});
