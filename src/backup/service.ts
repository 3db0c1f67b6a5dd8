// Everything about copies of the appliance while it is open: backups on request and on schedule, shipping, and what
// health checks, `kms status` and metrics tell of them.

import { isDeepStrictEqual } from 'node:util';
import type { Backups } from '../api/system.ts';
import { KmsError } from '../errors.ts';
import type { LocalHandlers } from '../http/appliance-port.ts';
import { epochTimeOf } from '../model/timestamp.ts';
import { currentEpoch, type Epoch } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { confirmStop, FenceWatch, fencedOff, rememberFence } from './fence.ts';
import { BackupKeeper, BackupSchedule, type KeeperDeps, type ScheduleSettings, type VerifiedBackup } from './keeper.ts';
import { Shipping, type ShippingSettings, type ShippingStatus } from './ship.ts';

export interface CopySettings {
  readonly scheduled?: ScheduleSettings | undefined;
  readonly shipping?: ShippingSettings | undefined;
}

export interface CopiesStatus {
  readonly epoch: Epoch;
  /** The last backup that was kept and found to restore. */
  readonly lastVerified: VerifiedBackup | undefined;
  /** Seconds since the moment of which it is. */
  readonly backupAge: number | undefined;
  readonly shipping: ShippingStatus | undefined;
  /** Seconds since the moment up to which everything has arrived. */
  readonly shippingAge: number | undefined;
}

export interface Copies {
  readonly epoch: Epoch;
  readonly local: CopyHandlers;
  /** The whole appliance as a backup; nothing happens before the first piece is asked for. */
  stream(): AsyncIterable<Uint8Array>;
  status(): CopiesStatus;
  /** For `/readyz`. */
  details(): Readonly<Record<string, unknown>>;
  /** What the appliance makes by itself. */
  backups(): Backups;
  /** Begins a backup on request, where there is a schedule; it is recorded already. */
  startBackup(): void;
  /** Makes a scheduled backup now, where there is a schedule. */
  backUpNow(): Promise<VerifiedBackup | undefined>;
  /** Replaces or ends the schedule, after a running backup has finished. */
  reschedule(settings: CopySettings['scheduled']): Promise<void>;
  /** Another node may have begun a new epoch. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** What ends serving once a standby took over. */
export interface Stopping {
  /** Nobody is answered from here on, but for `reason`; resolves once those under way were. */
  stop(reason: KmsError): Promise<void>;
  /** Wipes the keys and lets go of the stores. */
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
      // Closing ships the last of it.
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

/** Once a standby took over: nobody is answered, what was answered before arrives, and only then it hears of that. */
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
      throw new KmsError('conflict', 'this is an appliance, no standby; if it was one, it took over');
    },
  };
}
