// The services that run over the open data: copies, streamed activity, retention and other background work.

import { type Copies, openCopies } from '../backup/service.ts';
import type { KeyWorker } from '../core/key-rehearsal.ts';
import { purgeExpired } from '../core/keyrings.ts';
import { native } from '../crypto/primitives.ts';
import { KmsError } from '../errors.ts';
import { FairQueue, usualFairLimits } from '../http/fair-queue.ts';
import { startWorker } from '../platform/program-files.ts';
import type { ManagedKeyWork } from '../platform/threads/jobs.ts';
import { keyWorker } from '../platform/threads/key-work.ts';
import { SegmentVerifier } from '../platform/threads/segments.ts';
import { Aging } from '../storage/aging.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import { Retention } from '../telemetry/retention.ts';
import { openStreaming } from '../telemetry/streaming/streaming.ts';
import type { ApplianceOptions, Holder, LiveConfig } from './config.ts';
import type { End, Ends } from './ends.ts';
import { ServedPeople } from './mail.ts';
import type { OpenData } from './open-data.ts';
import { Rekeying } from './rekey.ts';

/** The services over the open data: copies, streams, retention, and the work between requests. */
export interface Services {
  readonly copies: Copies;
  readonly streaming: Awaited<ReturnType<typeof openStreaming>>;
  readonly aging: Aging;
  readonly retention: Retention;
  readonly rekeying: Rekeying;
  /** Absent where closed segments are not verified in the background. */
  readonly verifier: SegmentVerifier | undefined;
  readonly people: ServedPeople;
  readonly keyWorker: KeyWorker;
  /** The settings in force. */
  readonly config: () => LiveConfig;
  /** Applies new settings, one change at a time. Waits for a running backup. */
  reconfigure(next: LiveConfig): Promise<void>;
  /** Aborted with the reason once the appliance is closing. */
  readonly closing: AbortSignal;
  /** Ends long work that changes nothing, as the appliance is about to be closed. */
  giveUp(): void;
}

/** Opens the services, each on those before it. */
export async function openServices(
  options: ApplianceOptions,
  data: OpenData,
  { directory, world, stopping, serves }: Holder,
  ends: Ends,
): Promise<Services> {
  const { onEvent } = options;
  let config: LiveConfig = options;
  const { root, seal, space, system, tenants, admin } = data;
  const whenFree = ends.starting(options.held);
  const closing = new AbortController();
  const giveUp = (): void =>
    closing.abort(
      new KmsError('unavailable', 'the appliance is closing', { hint: 'ask again when it is open', retryAfter: 1 }),
    );
  const copies = await openCopies(
    { ...data, world, stopping, closing: closing.signal },
    options.copies ?? {},
    onEvent,
    whenFree,
  );
  ends.push(() => copies.close());
  data.place.follow({
    async refresh() {
      await admin.refresh();
      await copies.refresh();
    },
    isDeleted: (name) => admin.isDeleted(name),
  });
  const mustWait = (): boolean => space.refusal !== undefined;
  const streaming = await openStreaming(
    { root, system, tenants, now: world.now, onEvent, mustWait, whenFree },
    options.streaming,
  );
  ends.push(() => streaming.close());
  const { uptime = () => performance.now() } = options;
  const aging = new Aging({ system, tenants, world, uptime, mustWait, onEvent: serves ? onEvent : undefined });
  aging.start();
  ends.push(() => aging.close());
  const retention = new Retention({ tenants, world, aging, streaming, onEvent, mustWait }, options.retention);
  whenFree(() => retention.start());
  ends.push(() => retention.close());
  const rekeying = new Rekeying({ seal, tenants, world, onEvent });
  if (serves) rekeying.resume();
  const verifier = serves || options.segments ? verifierOf(options, data) : undefined;
  verifier?.start();
  ends.push(() => verifier?.close());
  const people = new ServedPeople(world, options.people, () => directory.nodes);
  ends.push(() => people.close());
  const keyWork = keyWorker({
    start: () => startWorker({ kind: 'keys', hasRsa: native().rsa !== undefined } satisfies ManagedKeyWork),
    turns: new FairQueue({ ...usualFairLimits, atOnce: 1 }),
  });
  ends.push(() => keyWork.close());
  whenFree(() => ends.push(startPurging(data, aging, onEvent)));
  const changes = new SerialQueue();
  ends.push(() => changes.idle());
  const reconfigure = async (next: LiveConfig): Promise<void> => {
    // While it closes, nothing must start again.
    if (closing.signal.aborted) return;
    config = next;
    people.settings = next.people ?? {};
    retention.settings = next.retention;
    await streaming.change(next.streaming);
    await copies.reschedule(next.copies?.scheduled);
  };
  return {
    copies,
    streaming,
    aging,
    retention,
    rekeying,
    verifier,
    people,
    keyWorker: keyWork,
    config: () => config,
    reconfigure: (next) => changes.run(() => reconfigure(next)),
    closing: closing.signal,
    giveUp,
  };
}

/** Verifies closed activity segments in the background. */
function verifierOf({ onEvent, segments }: ApplianceOptions, data: OpenData): SegmentVerifier {
  const { root, seal, place } = data;
  const verified = {
    root,
    stores: () => storesOf(data),
    keysFor: (name: string) => seal.keysFor(place.elsewhere?.nameOf(name) ?? name),
    ...(place.elsewhere && { read: place.elsewhere.read }),
    onEvent,
  };
  return new SegmentVerifier(verified, segments);
}

/** The stores of the appliance and of its tenants. */
export function storesOf({ system, tenants }: Pick<OpenData, 'system' | 'tenants'>) {
  return [system, ...tenants.all.map(({ handle }) => handle.store)];
}

const day = 24 * 60 * 60 * 1000;

/** Erases expired deletions now and once a day; the returned function ends that. */
function startPurging({ admin, tenants }: OpenData, aging: Aging, onEvent: ApplianceOptions['onEvent']): End {
  const purge = async (): Promise<void> => {
    const now = await aging.now();
    await admin.purge(now);
    for (const { handle } of tenants.all) await purgeExpired(handle.store, now);
  };
  let purging: Promise<void> = Promise.resolve();
  const purgeQuietly = (): void => {
    purging = purge().catch((cause: unknown) =>
      onEvent?.({ level: 'warn', message: 'deleted keyrings and tenants could not be erased', cause }),
    );
  };
  const timer = setInterval(purgeQuietly, day).unref();
  purgeQuietly();
  return async () => {
    clearInterval(timer);
    await purging;
  };
}
