// Streaming is the set of all targets of activity while the appliance is open: each has its own stream, so that none
// waits for another.
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { ApplianceEvent } from '../../platform/events.ts';
import { Places, type PlacesDeps } from '../../storage/streamed-positions.ts';
import { DirectoryReceiver } from './directory.ts';
import type { Receiver } from './receiver.ts';
import { headerWord } from './record.ts';
import { type Pace, Stream, type StreamStatus, usualPace } from './stream.ts';
import { SyslogReceiver } from './syslog.ts';
import type { ActivityTarget } from './target.ts';
import { WebhookReceiver } from './webhook.ts';

export interface StreamingSettings {
  readonly targets: readonly ActivityTarget[];
  /** Start of a target that was never streamed to. Default: the current end. */
  readonly from?: 'end' | 'start' | undefined;
  /** PEM of the authorities trusted for syslog servers and webhooks, instead of the system's. */
  readonly ca?: string | undefined;
  /** Secrets that sign webhook calls. */
  readonly secrets?: readonly Uint8Array[] | undefined;
  readonly pace?: Partial<Pace> | undefined;
  /** Size in bytes at which a day gets another file in a directory. */
  readonly fileBytes?: number | undefined;
}

interface StreamingDeps extends PlacesDeps {
  /** The data directory. */
  readonly root: string;
  readonly now: () => number;
  readonly onEvent?: ((event: ApplianceEvent) => void) | undefined;
  readonly mustWait: () => boolean;
  /** Calls `start` once the streams may send. */
  readonly whenFree: (start: () => void) => void;
}

export interface Streaming {
  /** In the order of the given targets. */
  status(): readonly StreamStatus[];
  /** The last record of a tenant that has arrived at every target; unlimited if there is no target. */
  arrived(tenant: string): number;
  /** Applies new settings if they differ. A target that stays continues where it was. */
  change(settings: StreamingSettings | undefined): Promise<void>;
  close(): Promise<void>;
}

export async function openStreaming(deps: StreamingDeps, settings: StreamingSettings | undefined): Promise<Streaming> {
  let current = settings;
  let isCurrent = true;
  let streams = await streamsOf(deps, settings);
  let isFree = false;
  deps.whenFree(() => {
    isFree = true;
    for (const stream of streams) stream.start();
  });
  const close = async () => void (isFree && (await Promise.all(streams.map((stream) => stream.close()))));
  return {
    status: () => streams.map(({ status }) => status),
    arrived: (tenant) => Math.min(...streams.map((stream) => stream.arrived(tenant))),
    async change(next) {
      if (isCurrent && isDeepStrictEqual(current, next)) return;
      isCurrent = false;
      // Closed first: two streams to one target would send its records twice.
      await close();
      // If this fails the closed ones stay: retention still asks them what has arrived.
      streams = await streamsOf(deps, next);
      current = next;
      isCurrent = true;
      if (isFree) for (const stream of streams) stream.start();
    },
    close,
  };
}

async function streamsOf(deps: StreamingDeps, settings: StreamingSettings | undefined): Promise<readonly Stream[]> {
  const { targets = [], from = 'end', pace } = settings ?? {};
  const { onEvent = () => {} } = deps;
  const streams: Stream[] = [];
  for (const target of targets) {
    const places = await Places.open(deps, target.name, from);
    const receiver = receiverOf(target, settings, { ...deps, onEvent });
    streams.push(new Stream(target, receiver, { ...deps, onEvent, places, pace: { ...usualPace, ...pace } }));
  }
  return streams;
}

type ReceiverDeps = Pick<StreamingDeps, 'now' | 'root'> & { readonly onEvent: (event: ApplianceEvent) => void };

function receiverOf(
  target: ActivityTarget,
  { ca, secrets = [], fileBytes }: Omit<StreamingSettings, 'targets'> = {},
  { now, onEvent, root }: ReceiverDeps,
): Receiver {
  switch (target.kind) {
    case 'syslog':
      return new SyslogReceiver(target, { ca, hostname: headerWord(hostname()) });
    case 'webhook':
      return new WebhookReceiver(target, { ca, secrets, now });
    case 'directory':
      return new DirectoryReceiver(target, { now, onEvent, root, fileBytes });
  }
}
