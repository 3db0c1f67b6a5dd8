// Local endpoints are those of the administrator at the machine: served on the local socket and in process, unknown to
// everybody else, and no part of the API description or of the client.
import { z } from 'zod';
import { custodianKinds } from '../model/custodian-kinds.ts';
import { isJsonObject } from '../model/json.ts';
import { custodyPolicies } from '../model/transit.ts';
import { activityHead } from './activity.ts';
import { fullApiKey } from './apikeys.ts';
import { endpoint } from './endpoint.ts';
import type { Sent } from './endpoints.ts';
import { pageOf } from './page.ts';
import { sealStatus } from './system.ts';
import { pathText, requiredText, secretText, trueParam } from './values.ts';

const tag = 'Local';
const ofAppliance = { kind: 'local', of: 'appliance' } as const;
const ofTenant = { kind: 'local', of: 'tenant' } as const;

/**
 * A body in which a field that is none is refused, with those that there are, since what the operator means must not
 * get lost.
 */
function only<const S extends z.core.$ZodLooseShape>(shape: S) {
  const unknown = `is not known here; expected ${Object.keys(shape).join(', ')}`;
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? unknown : undefined) });
}

const epochMilliseconds = z.number();

const verifiedBackup = z.object({
  file: z.string().exactOptional().meta({ description: 'absent where the backup was thrown away' }),
  bytes: z.int(),
  madeAt: z.string(),
  verifiedAt: z.string(),
  stores: z.int(),
  transactions: z.int(),
  activities: z.int(),
  rows: z.int(),
  lacks: z.array(z.string()).meta({ description: 'segments of the activity log, each with what is wrong with it' }),
});

const copiesStatus = z.object({
  epoch: z.object({
    number: z.int().meta({ description: 'grows with each restore' }),
    restoredAt: z.string().exactOptional(),
    madeAt: z.string().exactOptional(),
  }),
  lastVerified: verifiedBackup.optional().meta({ description: 'the last backup that was kept and found to restore' }),
  backupAge: z.number().optional().meta({ description: 'seconds' }),
  shipping: z
    .object({ to: z.string(), arrivedAt: epochMilliseconds.optional(), error: z.string().exactOptional() })
    .optional(),
  shippingAge: z.number().optional().meta({ description: 'seconds' }),
});

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
        transitRings: z.int().meta({ description: 'rings whose keys the appliance holds (custody `server`)' }),
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
  shared,
});
export type SealedStatus = Sent<z.output<typeof sealedStatus>>;

const reached = z
  .object({ at: z.string().meta({ description: 'everything was committed by then' }), transactions: z.int() })
  .nullable();

const standbyStatus = z.object({
  version: z.string(),
  sealed: z.literal(true),
  standby: z.object({
    from: z.string().meta({ description: 'what it follows' }),
    appliance: z.string().exactOptional(),
    epoch: z.int().exactOptional(),
    shipped: reached.meta({ description: 'what lies there; null where the last look could not tell' }),
    copied: reached.meta({ description: 'what of it is here' }),
    proven: reached.meta({ description: 'what of that is known to open' }),
    behind: z.object({ transactions: z.int(), seconds: z.int() }).nullable(),
    hasKey: z.boolean().meta({ description: 'without the master key nothing is proven' }),
    problem: z.string().exactOptional().meta({ description: 'why the last look took nothing' }),
  }),
});
export type StandbyAnswer = Sent<z.output<typeof standbyStatus>>;

const takenOver = z.object({
  data: z.string(),
  applianceId: z.string(),
  epoch: z.int(),
  madeAt: z.string().meta({ description: 'of which time the state is' }),
  isComplete: z.boolean().meta({ description: 'the one before said that it stopped, and that nothing is missing' }),
  stores: z.int(),
  transactions: z.int(),
  activities: z.int(),
  lacks: z.array(z.string()).meta({ description: 'segments of the activity log, each with what is wrong with it' }),
  heads: z
    .record(z.string(), z.object({ seq: z.int(), hash: z.string() }))
    .meta({ description: 'the end of the activity log of each store, before the new epoch' }),
  keyFile: z.string().exactOptional(),
  keyFileMade: z.boolean(),
});
export type TakenOverAnswer = Sent<z.output<typeof takenOver>>;

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

const limitNames = ['keyrings', 'keysPerRing', 'users', 'accounts', 'apikeys', 'assets', 'assetVersions'] as const;

const custodyPolicy = z
  .enum(custodyPolicies)
  .meta({ description: 'who may hold the keys of new rings: `client` keeps the appliance from it' });

const tenant = z.object({
  id: z.string(),
  name: z.string(),
  hosts: z.array(z.string()),
  url: z.string().meta({ description: 'where it is reached' }),
  limits: z.partialRecord(z.enum(limitNames), z.int()).meta({ description: 'by kind; what is not there is unlimited' }),
  secondFactorFor: z.array(z.string()).meta({ description: 'flags: users who have one need a second factor' }),
  custody: custodyPolicy,
  createdAt: z.string(),
  updatedAt: z.string(),
  deletedAt: z.string().exactOptional(),
  restorableUntil: z.string().exactOptional().meta({ description: 'when a deleted one is erased' }),
});
export type TenantAnswer = Sent<z.output<typeof tenant>>;

function texts(problem: string) {
  return z.custom<readonly string[]>(
    (value) => Array.isArray(value) && value.every((each) => typeof each === 'string'),
    problem,
  );
}

const hosts = texts('expected an array of host names');
const flags = texts('expected an array of permission flags');
const limit = z
  .custom<number | null>(
    (value) => value === null || (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0),
    'expected an integer from 0 on, or null for no limit',
  )
  .exactOptional();
const limits = Object.fromEntries(limitNames.map((name) => [name, limit])) as Record<
  (typeof limitNames)[number],
  typeof limit
>;
const tenantParams = z.object({ name: pathText });
const newName = { name: z.string().exactOptional(), hosts: hosts.exactOptional() };

const custodianKind = z.enum(custodianKinds);
const custodianParams = z.record(z.string(), z.union([z.string(), z.number(), z.array(z.string())]));
const custodian = z.object({
  id: z.string(),
  version: z.int().meta({ description: 'of its slot: 1 falls to a quantum computer, 2 does not' }),
  kind: custodianKind,
  params: custodianParams,
});
export type CustodianAnswer = Sent<z.output<typeof custodian>>;
const master = z.object({ fingerprint: z.string(), custodians: z.array(custodian) });
export type MasterAnswer = Sent<z.output<typeof master>>;

/** The flags that each value of a claim gives; looked at by whoever stores them. */
const claimFlags = z.custom<Readonly<Record<string, readonly string[]>>>(isJsonObject, 'expected an object');
const oidcProvider = z.object({
  issuer: z.string(),
  clientId: z.string(),
  name: z.string(),
  scope: z.string(),
  userClaim: z.string(),
  createUsers: z.boolean(),
  flagsClaim: z.string().exactOptional(),
  claimFlags,
  hasCa: z.boolean().meta({ description: 'authorities of its own vouch for it' }),
  changedAt: z.string(),
});
export type OidcProviderAnswer = Sent<z.output<typeof oidcProvider>>;

/** `since` is a head that was kept. */
const sinceBody = z.object({ since: z.unknown().optional() });

export const localEndpoints = [
  endpoint('applianceStatus', {
    tag,
    summary: 'Tell all that the appliance tells of itself',
    access: ofAppliance,
    answer: z.union([openStatus, sealedStatus, standbyStatus]),
  }),
  endpoint('sealAppliance', {
    changes: false,
    tag,
    summary: 'Seal the appliance',
    access: ofAppliance,
    answer: sealStatus,
  }),
  endpoint('examineAppliance', {
    tag,
    summary: 'Examine the stores of the running appliance',
    access: ofAppliance,
    answer: examination,
  }),
  endpoint('streamBackup', {
    changes: false,
    tag,
    summary: 'Make a backup of the whole appliance, sealed, while it serves',
    access: ofAppliance,
    answer: z.unknown(),
    binary: true,
  }),
  endpoint('drillBackup', {
    changes: false,
    tag,
    summary: 'Make a backup, restore it on trial, and throw both away',
    access: ofAppliance,
    answer: verifiedBackup,
  }),
  endpoint('readCopies', {
    tag,
    summary: 'Tell of the last verified backup and of shipping',
    access: ofAppliance,
    answer: copiesStatus,
  }),
  endpoint('promoteStandby', {
    changes: false,
    tag,
    summary: 'Have a standby take over from the appliance that it follows',
    access: ofAppliance,
    body: only({
      wait: z.int().min(0).exactOptional().meta({ description: 'milliseconds' }),
      fence: z.boolean().exactOptional(),
      acceptOlder: z.boolean().exactOptional(),
    }),
    answer: takenOver,
  }),

  endpoint('createTenant', {
    tag,
    summary: 'Make a tenant, with its root API key',
    access: ofAppliance,
    body: only({ name: z.string(), hosts: hosts.exactOptional() }),
    answer: z.object({ tenant: z.string(), hosts: z.array(z.string()), accountId: z.string(), apiKey: fullApiKey }),
  }),
  endpoint('listTenants', {
    tag,
    summary: 'List all tenants, with `deleted` the deleted ones, too',
    access: ofAppliance,
    query: z.object({ deleted: trueParam.exactOptional() }),
    answer: pageOf(tenant),
  }),
  endpoint('getTenant', {
    tag,
    summary: 'Read a tenant, by name or id',
    access: ofAppliance,
    params: tenantParams,
    answer: tenant,
  }),
  endpoint('updateTenant', {
    tag,
    summary: 'Change the name or the hosts of a tenant, whose logins need a second factor, or who may hold keys',
    access: ofAppliance,
    params: tenantParams,
    body: only({ ...newName, secondFactorFor: flags.exactOptional(), custody: custodyPolicy.exactOptional() }),
    answer: tenant,
  }),
  endpoint('limitTenant', {
    tag,
    summary: 'Set or lift limits of a tenant',
    access: ofAppliance,
    params: tenantParams,
    body: only(limits),
    answer: tenant,
  }),
  endpoint('deleteTenant', {
    tag,
    summary: 'Delete a tenant; for a while it can be restored',
    access: ofAppliance,
    params: tenantParams,
    answer: tenant,
  }),
  endpoint('restoreTenant', {
    tag,
    summary: 'Bring a deleted tenant back, under another name or with other hosts where these are taken',
    access: ofAppliance,
    params: z.object({ id: pathText }),
    body: only(newName),
    answer: tenant,
  }),
  endpoint('rekeyTenant', {
    tag,
    summary: 'Give a tenant a new key, and its files with it',
    access: ofAppliance,
    params: tenantParams,
    answer: z.object({ tenant: z.string(), epoch: z.int(), complete: z.boolean() }),
  }),

  endpoint('getMaster', {
    tag,
    summary: 'Tell the fingerprint of the master key, and who holds it',
    access: ofAppliance,
    answer: master,
  }),
  endpoint('rotateMaster', {
    changes: false,
    tag,
    summary: 'Make a new master key for the same custodians',
    access: ofAppliance,
    answer: master,
  }),
  endpoint('addCustodian', {
    changes: false,
    tag,
    summary: 'Add a custodian, whose secret stays with whoever made it',
    access: ofAppliance,
    body: z.object({
      id: z.string().exactOptional(),
      kind: custodianKind,
      params: custodianParams,
      publicKey: z.string(),
    }),
    answer: master,
  }),
  endpoint('removeCustodian', {
    changes: false,
    tag,
    summary: 'End a custodian',
    access: ofAppliance,
    params: z.object({ id: pathText }),
    answer: master,
  }),

  endpoint('verifyActivity', {
    changes: false,
    tag,
    summary: "Verify the whole chain of the tenant's activity log",
    access: ofTenant,
    body: sinceBody,
    answer: z.object({
      tenant: z.string(),
      valid: z.boolean(),
      count: z.int(),
      head: z.object({ seq: z.int(), hash: z.string() }),
      dropped: z
        .object({ seq: z.int(), hash: z.string() })
        .exactOptional()
        .meta({ description: 'the last record that retention dropped, after which the chain begins' }),
      broken: z.object({ position: z.int(), seq: z.int(), problem: z.string() }).exactOptional(),
      since: activityHead.exactOptional(),
    }),
  }),

  endpoint('getOidc', {
    tag,
    summary: "Read the settings of the tenant's identity provider, but for the secret",
    access: ofTenant,
    answer: oidcProvider,
  }),
  endpoint('setOidc', {
    tag,
    summary: 'Let people log in with an identity provider',
    access: ofTenant,
    body: only({
      issuer: requiredText,
      clientId: requiredText,
      clientSecret: secretText,
      name: requiredText.exactOptional(),
      scope: requiredText.exactOptional(),
      userClaim: requiredText.exactOptional(),
      createUsers: z.boolean().exactOptional(),
      flagsClaim: requiredText.exactOptional(),
      claimFlags: claimFlags.exactOptional(),
      allowRoot: z.boolean().exactOptional(),
      ca: requiredText.exactOptional(),
    }),
    answer: oidcProvider,
  }),
  endpoint('removeOidc', {
    tag,
    summary: 'Let nobody log in with the identity provider any more',
    access: ofTenant,
    answer: oidcProvider,
  }),
  endpoint('unlinkOidc', {
    tag,
    summary: 'Forget who a user is at the identity provider',
    access: ofTenant,
    body: z.object({ username: requiredText }),
    answer: z.object({ username: z.string() }),
  }),

  endpoint('makeSetUpLink', {
    changes: false,
    tag,
    summary: 'Make the link by which the first user of a fresh appliance sets it up',
    access: ofTenant,
    answer: z.object({ url: z.string(), expiresAt: z.string() }),
  }),
  endpoint('makeResetLink', {
    tag,
    summary: 'Make a link by which a user chooses a new password',
    access: ofTenant,
    body: z.object({ username: requiredText, email: z.boolean().exactOptional() }),
    answer: z.object({ username: z.string(), resetUrl: z.string(), expiresAt: z.string() }),
  }),
  endpoint('resetSecondFactor', {
    tag,
    summary: 'Take all second factors and recovery codes of a user away, and end the sessions',
    access: ofTenant,
    body: z.object({ username: requiredText, email: z.boolean().exactOptional() }),
    answer: z.object({ username: z.string(), removed: z.int() }),
  }),
] as const;

type AnyLocalEndpoint = (typeof localEndpoints)[number];
export type LocalId = AnyLocalEndpoint['id'];
export type LocalOf<Id extends LocalId> = Extract<AnyLocalEndpoint, { readonly id: Id }>;

/** Path parameters, query and body of a request, as far as the endpoint has them. */
type Requested<E> = Part<E, 'params'> & Part<E, 'query'> & Part<E, 'body'>;

type Part<E, P extends string> = E extends { readonly [Q in P]: infer S extends z.ZodType }
  ? object extends z.input<S>
    ? { readonly [Q in P]?: Sent<z.input<S>> }
    : { readonly [Q in P]: Sent<z.input<S>> }
  : object;

/** What a caller gives with the id: nothing where nothing has to be given. */
export type LocalArguments<Id extends LocalId> =
  object extends Requested<LocalOf<Id>> ? [request?: Requested<LocalOf<Id>>] : [request: Requested<LocalOf<Id>>];
