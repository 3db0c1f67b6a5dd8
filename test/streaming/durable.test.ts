// A power failure, a failed write and a full disk at every step of an appliance that streams while it writes:
// afterwards everything received is in its log, and in the end everything in the log is received.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Places } from '../../src/storage/streamed-positions.ts';
import { type Batch, DeliveryFault, type Receiver } from '../../src/telemetry/streaming/receiver.ts';
import { type Pace, Stream, usualPace } from '../../src/telemetry/streaming/stream.ts';
import { breaking, crashSweep, done, type Fault, mend } from '../support/crash-sweep.ts';
import { effort } from '../support/effort.ts';
import type { Prng } from '../support/prng.ts';
import { createSealedAppliance, openSealedAppliance, type SealedAppliance } from '../support/sim-appliance.ts';
import { SimFiles } from '../support/sim-files.ts';

const secret = new Uint8Array(32).fill(1);
const pace: Pace = { ...usualPace, poll: 0, rest: 0, save: 0, pause: 0, longestPause: 1, idle: 0, farewell: 1000 };
const writes = 12;
const target = { kind: 'directory', name: '/target', path: '/target' } as const;

/** Hashes by sequence number, in the order in which records first arrived. */
class Received implements Receiver {
  readonly hashes = new Map<number, string>();
  readonly problems: string[] = [];
  readonly #generator: Prng;

  constructor(generator: Prng) {
    this.#generator = generator;
  }

  async ready(): Promise<void> {}

  /** Some attempts fail, before or after the records arrive. */
  async send({ records }: Batch): Promise<void> {
    if (this.#generator.chance(0.1)) throw new DeliveryFault('unreachable', 'nobody there');
    for (const { record, hash } of records) {
      const known = this.hashes.get(record.seq);
      if (known !== undefined && known !== hash) this.problems.push(`record ${record.seq} came as two`);
      if (known === undefined && record.seq !== this.hashes.size + 1)
        this.problems.push(`${record.seq} came too early`);
      this.hashes.set(record.seq, hash);
    }
    if (this.#generator.chance(0.1)) throw new DeliveryFault('broken', 'the answer was lost');
  }

  drop(): void {}
}

async function streamOf(appliance: SealedAppliance, receiver: Receiver): Promise<Stream> {
  const { system, tenants } = appliance;
  const places = await Places.open({ system, tenants }, target.name, 'start');
  return new Stream(target, receiver, {
    tenants,
    places,
    now: Date.now,
    onEvent: () => {},
    mustWait: () => false,
    pace,
  });
}

async function attempt(base: SimFiles, fault: Fault, generator: Prng): Promise<boolean> {
  const files = breaking(base, fault, generator);
  const receiver = new Received(generator);
  const work = async (): Promise<void> => {
    const appliance = await openSealedAppliance(files, secret, generator);
    const stream = await streamOf(appliance, receiver);
    stream.start();
    try {
      for (let n = 0; n < writes && !files.crashed; n++) await done(files, fault, appliance.write());
      mend(files, fault);
      if (!files.crashed) await appliance.settle();
    } finally {
      await stream.close();
    }
    await appliance.close();
  };
  await done(files, fault, work());
  const came = mend(files, fault);
  const appliance = await openSealedAppliance(files.restart({ prng: generator }), secret, generator);
  await appliance.write();
  const stream = await streamOf(appliance, receiver);
  stream.start();
  while (stream.status.lagRecords > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await stream.close();
  const log: [number, string][] = [];
  for await (const { record, hash } of appliance.tenant.activity.read(1)) log.push([record.seq, hash]);
  await appliance.close();
  assert.deepEqual(receiver.problems, []);
  assert.deepEqual([...receiver.hashes], log);
  return came;
}

test('whatever breaks, what was received is what the log has', async (context) => {
  const points = await crashSweep({
    file: import.meta.filename,
    seeds: 1,
    every: 2,
    async prepare(generator) {
      const files = new SimFiles({ prng: generator });
      await createSealedAppliance(files, secret, generator);
      return files;
    },
    attempt,
  });
  context.diagnostic(`${points} crash points`);
  assert.ok(points > effort(20, 50));
});
