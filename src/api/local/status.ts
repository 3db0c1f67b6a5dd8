// Local endpoints that report the state of the whole appliance, and its problems.
import { z } from 'zod';
import { endpoint, ofAppliance } from '../endpoint.ts';
import type { Sent } from '../endpoints.ts';
import { sealStatus } from '../system.ts';
import { copiesStatus, standbyStatus } from './copies.ts';

const epochMilliseconds = z.number();

const faultKind = z.enum(['name', 'unreachable', 'timeout', 'broken', 'certificate', 'answer', 'file', 'log']);

const storeStatus = z.object({
  writable: z.boolean(),
  reason: z.string().exactOptional(),
  logBytes: z.int(),
  snapshotBytes: z.int(),
  activityBytes: z.int(),
  sequence: z.int(),
  lastCheckpointAt: epochMilliseconds.optional(),
  activityCount: z.int().meta({ description: 'number of the last record of activity' }),
  activityDropped: z
    .object({
      seq: z.int().meta({ description: 'all records up to this one' }),
      hash: z.string().meta({ description: 'of that record, base64url: the first kept one goes on from it' }),
      until: epochMilliseconds.meta({ description: 'the latest of them' }),
    })
    .optional()
    .meta({ description: 'the beginning of the activity log, where retention dropped it' }),
  activitySegments: z.int(),
  activityFaults: z.array(z.object({ path: z.string(), problem: z.string(), since: epochMilliseconds })),
  activityVerified: z.int(),
  activityVerifiedAt: epochMilliseconds.optional(),
});

const cryptoInUse = z
  .union([
    z.object({ by: z.literal('node'), openssl: z.string() }),
    z.object({
      by: z.literal('noble'),
      problem: z.string().exactOptional().meta({ description: 'why it is not node, where it was to be' }),
    }),
  ])
  .meta({ description: 'what does the primitives: node:crypto, which is OpenSSL, or noble' });
export type CryptoInUse = z.output<typeof cryptoInUse>;

const sharedStatus = z.object({
  database: z.string().meta({ description: 'its address, without a password' }),
  nodes: z.array(
    z.object({
      id: z.string(),
      own: z.boolean().meta({ description: 'whether it is the one that was asked' }),
      live: z.boolean().meta({ description: 'whether it was heard of within the last 15 seconds' }),
      build: z.string().meta({ description: 'the version of its program' }),
      schemas: z.object({ system: z.int(), tenant: z.int() }).meta({ description: 'the newest that it knows' }),
      appendRule: z.int(),
      places: z.array(z.string()).meta({ description: 'where it listens' }),
      upFor: z.number().meta({ description: 'milliseconds since it began' }),
      age: z.number().meta({ description: 'milliseconds since it was last heard of' }),
    }),
  ),
});

const shared = sharedStatus
  .exactOptional()
  .meta({ description: 'the database and the nodes, where several share the appliance' });

const openStatus = z.object({
  version: z.string(),
  sealed: z.literal(false),
  applianceId: z.string(),
  masterKey: z.object({
    fingerprint: z.string(),
    custodians: z.array(z.object({ kind: z.string(), fingerprint: z.string() })),
  }),
  crypto: cryptoInUse,
  copies: copiesStatus,
  activityTo: z
    .array(
      z.object({
        kind: z.enum(['syslog', 'webhook', 'directory']),
        to: z.string(),
        lagRecords: z.int().meta({ description: 'records that have not arrived' }),
        lagSeconds: z.int().meta({ description: 'for how long the oldest of them has been there' }),
        fault: faultKind.exactOptional().meta({ description: 'of the last try; absent when it went well' }),
        error: z.string().exactOptional(),
      }),
    )
    .meta({ description: 'targets that activity is streamed to, in the order in which they were given' }),
  activityRetention: z
    .object({
      seconds: z.int().meta({ description: 'for how long activity is kept' }),
      waitingRecords: z.int().meta({ description: 'older ones that have to arrive where activity is streamed to' }),
    })
    .exactOptional()
    .meta({ description: 'absent where activity is kept for ever' }),
  clock: z
    .object({
      aheadSeconds: z.int().meta({ description: 'how far the clock is ahead of the time by which things are old' }),
      believedAfterSeconds: z.int().meta({ description: 'of running with it that are left until it is believed' }),
    })
    .exactOptional()
    .meta({ description: 'why nothing is erased for its age; absent while the clock of the machine is believed' }),
  disk: z
    .object({
      freeBytes: z.number(),
      totalBytes: z.number(),
      freePercent: z.number(),
      reserveBytes: z.number(),
      reason: z.string().exactOptional().meta({ description: 'why writes are refused; absent while they are not' }),
    })
    .optional()
    .meta({ description: 'where the system tells' }),
  tenants: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      hosts: z.array(z.string()),
      counts: z.object({
        keyrings: z.int(),
        managedKeys: z.int().meta({ description: 'rings whose keys the appliance holds (custody `server`)' }),
        users: z.int(),
        accounts: z.int(),
        apikeys: z.int(),
        assets: z.int(),
      }),
      store: storeStatus,
    }),
  ),
  system: storeStatus,
  shared,
});
export type OpenStatus = Sent<z.output<typeof openStatus>>;

const sealedStatus = sealStatus.extend({
  version: z.string(),
  sealed: z.literal(true),
  onPurpose: z.boolean().meta({ description: 'it stays so until it is unsealed on purpose' }),
  reason: z
    .string()
    .exactOptional()
    .meta({ description: 'why a node of several is not open, where nobody sealed it on purpose; it tries again' }),
  shared,
});
export type SealedStatus = Sent<z.output<typeof sealedStatus>>;

const finding = z.object({
  severity: z.enum(['error', 'warning', 'advice']),
  name: z.string(),
  subject: z.string(),
  message: z.string(),
  advice: z.string(),
});

const examination = z.object({
  stores: z.int(),
  activities: z.int(),
  dropped: z.int().meta({ description: 'records of activity before those, which retention dropped' }),
  crypto: cryptoInUse.exactOptional().meta({ description: 'of the server that was examined' }),
  findings: z.array(finding),
});

export const statusEndpoints = [
  endpoint('applianceStatus', {
    summary: 'Tell all that the appliance tells of itself',
    ...ofAppliance,
    answer: z.union([openStatus, sealedStatus, standbyStatus]),
  }),
  endpoint('sealAppliance', {
    changes: false,
    summary: 'Seal the appliance',
    ...ofAppliance,
    answer: sealStatus,
  }),
  endpoint('examineAppliance', {
    summary: 'Examine the stores of the running appliance',
    ...ofAppliance,
    answer: examination,
  }),
] as const;
