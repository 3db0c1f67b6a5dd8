// Copies of the appliance while it is open: backups on request and on schedule, shipping, and their status for health
// checks, `kms status` and metrics.

import { isDeepStrictEqual } from 'node:util';
import type { Backups } from '../api/backups.ts';
import { KmsError } from '../errors.ts';
import type { LocalHandlers } from '../http/appliance-port.ts';
import { epochTimeOf } from '../model/timestamp.ts';
import { currentEpoch, type Epoch } from '../platform/epoch.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { confirmStop, FenceWatch, fencedOff, rememberFence } from './fence.ts';
import { BackupKeeper, BackupSchedule, type KeeperDeps, type ScheduleSettings } from './keeper.ts';
import { Shipping, type ShippingSettings, type ShippingStatus } from './ship.ts';
import type { VerifiedBackup } from './verified-backup.ts';

export interface CopySettings {
  readonly scheduled?: ScheduleSettings | undefined;
  readonly shipping?: ShippingSettings | undefined;
}

export interface CopiesStatus {
  readonly epoch: Epoch;
  /** The last kept backup that restored without a gap. */
  readonly lastVerified: VerifiedBackup | undefined;
  /** Seconds since the time of its data. */
  readonly backupAge: number | undefined;
  readonly shipping: ShippingStatus | undefined;
  /** Seconds since the time up to which everything has arrived. */
  readonly shippingAge: number | undefined;
}

export interface Copies {
  readonly epoch: Epoch;
  readonly local: CopyHandlers;
  /** The whole appliance as a backup; nothing happens before the first piece is read. */
  stream(): AsyncIterable<Uint8Array>;
  status(): CopiesStatus;
  /** For `/readyz`. */
  details(): Readonly<Record<string, unknown>>;
  /** The scheduled backups. */
  backups(): Backups;
  /** Starts a backup on request, if there is a schedule; the request is already recorded. */
  startBackup(): void;
  /** Makes a scheduled backup now, if there is a schedule. */
  backUpNow(): Promise<VerifiedBackup | undefined>;
  /** Replaces or ends the schedule, after a running backup has finished. */
  reschedule(settings: CopySettings['scheduled']): Promise<void>;
  /** Notices a new epoch begun by another node. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** Ways to end serving once a standby took over. */
export interface Stopping {
  /** Refuses all requests with `reason` from here on; resolves once those under way are answered. */
  stop(reason: KmsError): Promise<void>;
  /** Wipes the keys and closes the stores. */
  end(): void;
}

export async function openCopies(
  deps: KeeperDeps & { readonly stopping: Stopping },
  settings: CopySettings,
  onEvent: (event: ApplianceEvent) => void = () => {},
  whenFree: (start: () => void) => void = (start) => start(),
): Promise<Copies> {
  const { system, seal, world } = deps;
  const readEpoch = (): Promise<Epoch> => system.transaction((tables) => currentEpoch(tables.settings));
  let epoch = await readEpoch();
  const keeper = new BackupKeeper(deps);
  await keeper.open();
  const scheduleOf = (scheduled: CopySettings['scheduled']): BackupSchedule | undefined =>
    scheduled && new BackupSchedule(keeper, scheduled, seal.current.applianceId, onEvent);
  let { scheduled } = settings;
  let schedule = scheduleOf(scheduled);
  const shipping =
    settings.shipping && new Shipping({ ...deps, epoch: epoch.number, now: world.now }, settings.shipping, onEvent);
  let isFree = false;
  const watch = shipping && fenceWatch(shipping, deps, onEvent, () => isFree);
  watch?.start();
  whenFree(() => {
    isFree = true;
    schedule?.start();
    shipping?.start();
  });
  const age = (at: number | undefined): number | undefined =>
    at === undefined ? undefined : Math.max(0, Math.round((world.now() - at) / 1000));
  const status = (): CopiesStatus => {
    const { lastVerified } = keeper;
    return {
      epoch,
      lastVerified,
      backupAge: age(lastVerified && epochTimeOf(lastVerified.madeAt)),
      shipping: shipping?.status,
      shippingAge: age(shipping?.status.arrivedAt),
    };
  };
  return {
    get epoch() {
      return epoch;
    },
    async refresh() {
      epoch = await readEpoch();
    },
    status,
    local: copyHandlers(keeper, status),
    stream: () => keeper.stream(),
    details: () => detailsOf(status(), seal.current.applianceId),
    backups: () => backupsOf(keeper, schedule),
    startBackup: () => schedule?.begin({ isRequested: true }),
    backUpNow: async () => schedule?.run(),
    async reschedule(next) {
      if (isDeepStrictEqual(scheduled, next)) return;
      await schedule?.close();
      scheduled = next;
      schedule = scheduleOf(next);
      if (isFree) schedule?.start();
    },
    async close() {
      watch?.close();
      // Closing would ship the rest, which must wait too.
      if (!isFree) return;
      await schedule?.close();
      await shipping?.close();
    },
  };
}

function backupsOf({ lastVerified }: BackupKeeper, schedule: BackupSchedule | undefined): Backups {
  return {
    configured: null,
    running: false,
    lastFailure: null,
    ...schedule?.status(),
    lastVerified: lastVerified
      ? { at: lastVerified.madeAt, file: lastVerified.file ?? '', bytes: lastVerified.bytes }
      : null,
  };
}

/** Once a standby took over: stops answering, ships everything answered before, and only then confirms the stop. */
function fenceWatch(
  shipping: Shipping,
  { files, world, stopping }: KeeperDeps & { readonly stopping: Stopping },
  onEvent: (event: ApplianceEvent) => void,
  maySend: () => boolean,
): FenceWatch {
  return new FenceWatch({
    ...shipping.fenced,
    onEvent,
    async onFenced(fence) {
      const reason = fencedOff(fence, 'unavailable');
      await stopping.stop(reason);
      await rememberFence(files, fence);
      if (maySend()) {
        await shipping.finish();
        await confirmStop(shipping.fenced, fence, world.now());
      }
      onEvent({ level: 'error', message: reason.message });
      stopping.end();
    },
  });
}

function detailsOf({ epoch, lastVerified, backupAge, shipping, shippingAge }: CopiesStatus, appliance: string) {
  return {
    appliance,
    epoch: epoch.number,
    lastVerifiedBackup: lastVerified ? { at: lastVerified.madeAt, ageSeconds: backupAge } : null,
    ...(shipping && { shipping: { ageSeconds: shippingAge ?? null, ok: shipping.error === undefined } }),
  };
}

type CopyHandlers = Pick<LocalHandlers, 'streamBackup' | 'drillBackup' | 'readCopies' | 'promoteStandby'>;

function copyHandlers(keeper: BackupKeeper, status: () => CopiesStatus): CopyHandlers {
  return {
    async streamBackup() {
      await keeper.record({ operation: 'create' });
      return keeper.stream();
    },
    drillBackup: () => keeper.drill(),
    readCopies: async () => status(),
    async promoteStandby() {
      throw new KmsError('conflict', 'this is an appliance, not a standby; if it was one, it took over');
    },
  };
}
