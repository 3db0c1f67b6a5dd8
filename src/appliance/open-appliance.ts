// An appliance with its keys: its data (seal, stores, tenants), and the services over them (copies, background work,
// the app's operations). They are opened in order, each on those before it, and closed in reverse.

import { resolve } from 'node:path';
import type { OpenStatus } from '../api/local/status.ts';
import type { SealStatus } from '../api/system.ts';
import type { Copies } from '../backup/service.ts';
import { byOperator } from '../core/authorization.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import type { SealPlace } from '../custody/seal-keeper.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import { examineServed } from '../doctor/served.ts';
import { systemError } from '../errors.ts';
import type { OpenState, Sealing } from '../http/appliance-port.ts';
import { formatMark } from '../model/store-mark.ts';
import type { Seal } from '../seal/seal.ts';
import type { Slot } from '../seal/slot.ts';
import { type ApplianceActivity, recordInTenants, type Tenants } from '../storage/served-tenants.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { ApplianceOptions, Holder, LiveConfig } from './config.ts';
import { Ends } from './ends.ts';
import { masterHandlers } from './master-handlers.ts';
import { type OpenData, openData } from './open-data.ts';
import { openServices, type Services, storesOf } from './services.ts';
import { activityDetails, applianceStatus, brokenIn, diskDetails, glassDetails, readiness } from './status.ts';
import { tenantHandlers } from './tenant-handlers.ts';

/** The open state of an appliance, for the app and for the process around it. */
export interface Unsealed extends OpenState {
  readonly seal: SealPlace;
  /** Takes over the seal under a new master key, rotated on another node. */
  adopt(seal: Seal): Promise<void>;
  status(): Promise<OpenStatus>;
  /** Backups and shipping, and their status for `/readyz`, metrics and doctor. */
  readonly copies: Pick<Copies, 'status' | 'backUpNow'>;
  /** Custodians of the master key. */
  custodians(): readonly Slot[];
  /** Adds a record to the log of every tenant. */
  record(activity: ApplianceActivity): Promise<void>;
  /** Applies new settings, one change at a time. Waits for a running backup. */
  reconfigure(config: LiveConfig): Promise<void>;
  /** Ends long work that changes nothing, as it is about to be closed. */
  giveUp(): void;
  /** Waits for work under way, makes it durable, wipes the keys and closes the files. */
  close(): Promise<void>;
}

/** Opens everything that the seal has keys for. The caller holds the lock on the directory until all is closed. */
export async function openUnsealed(options: ApplianceOptions, opened: OpenedSeal, holder: Holder): Promise<Unsealed> {
  const ends = new Ends();
  try {
    const data = await openData(options, opened, holder, ends);
    return unsealed(data, await openServices(options, data, holder, ends), holder, ends);
  } catch (error) {
    await ends.all();
    throw systemError(error, resolve(options.data));
  }
}

/** An unsealed appliance, as the app and the process around it use it. */
function unsealed(data: OpenData, services: Services, { directory, world, sealing }: Holder, ends: Ends): Unsealed {
  const { node } = directory;
  const { seal, space, metrics, system, tenants, admin, baseUrl } = data;
  const { copies, streaming, aging, retention, rekeying, people, giveUp } = services;
  const status = async (): Promise<OpenStatus> => {
    const clock = await aging.doubt();
    return applianceStatus(seal.current, system, tenants, {
      ...(clock && { clock }),
      ...(node && { shared: await node.status() }),
      copies: copies.status(),
      activityTo: streaming.status(),
      ...(retention.status && { activityRetention: retention.status }),
      disk: space.status(),
    });
  };
  // One at a time: each holds a copy of all stores.
  const examinations = new SerialQueue();
  return {
    sealed: false,
    tenants,
    get baseUrl() {
      return baseUrl();
    },
    keyWorker: services.keyWorker,
    closing: services.closing,
    get people() {
      return people.current;
    },
    meter: metrics.meter,
    local: {
      applianceStatus: status,
      sealAppliance: () => sealLocally(sealing, tenants, world),
      examineAppliance: () =>
        examinations.run(() =>
          examineServed({
            ...data,
            ...services,
            certificates: services.config().certificates ?? {},
            tangAllow: services.config().tangAllow ?? [],
            now: world.now,
            node,
          }),
        ),
      ...copies.local,
      ...tenantHandlers(admin, rekeying, baseUrl),
      ...masterHandlers({ seal, tenants, world }),
    },
    readiness: () => ({
      ...readiness(system, tenants, space, directory),
      details: {
        ...copies.details(),
        ...diskDetails(space),
        ...activityDetails(storesOf(data)),
        ...glassDetails(tenants),
      },
    }),
    refuseWrites: () => space.refusal,
    backup: () => copies.stream(),
    backups: () => copies.backups(),
    startBackup: () => copies.startBackup(),
    recordInOthers: (action, { tenant }) =>
      recordInTenants(tenants, world, { action, keyid: byOperator.by, props: {} }, tenant.id),
    logNumbers({ tenant, store }) {
      const { failedWrites, failedCheckpoints } = metrics.store(tenants.dirOf(tenant.id));
      const status = store.status();
      const disk = space.status();
      return {
        logBytes: status.logBytes,
        snapshotBytes: status.snapshotBytes,
        lastCheckpointAt: status.lastCheckpointAt ?? null,
        activityRecords: status.activityCount - (status.activityDropped?.seq ?? 0),
        activityBytes: status.activityBytes,
        ...(disk && { diskFreeBytes: disk.freeBytes }),
        writesRefused: space.refusal !== undefined,
        failures: failedWrites + failedCheckpoints,
      };
    },
    metrics: ({ tenant, store }) =>
      metrics.text(tenant.id, tenants.dirOf(tenant.id), {
        store: store.status(),
        copies: copies.status(),
        streams: streaming.status(),
        retention: retention.status,
        space: space.status(),
        nodes: node?.nodes?.count,
        approvals: {
          open: store.read(({ approvalRequests }) => approvalRequests.countOpen(world.now())),
          brokenGlass: brokenIn([store]),
        },
      }),
    stateOf: ({ tenant, store }) =>
      `${seal.current.applianceId}.${tenant.id}.${copies.epoch.number}.${formatMark(store.mark)}`,
    seal: data.sealPlace,
    adopt: (opened) => seal.adopt(opened),
    status,
    copies,
    custodians: () => seal.current.slots,
    record: (activity) => recordInTenants(tenants, world, activity),
    reconfigure: services.reconfigure,
    giveUp,
    close: () => {
      giveUp();
      return ends.all();
    },
  };
}

/** Seals for the administrator at the machine, whose request has no tenant. */
async function sealLocally(sealing: Sealing, tenants: Tenants, world: World): Promise<SealStatus> {
  await recordInTenants(tenants, world, { action: 'system.seal', keyid: localCaller.id, props: {} });
  await sealing.seal();
  return sealing.status();
}
