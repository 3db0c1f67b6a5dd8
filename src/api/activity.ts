// Activity on the wire: the record of a request, and the endpoints that search and read it.
import { z } from 'zod';
import { ringTypes } from '../model/activity-details.ts';
import { endpoint, errorBody, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { pageOf, pageQuery } from './page.ts';
import {
  addressPattern,
  base64,
  base64urlPattern,
  callerId,
  count,
  eitherOf,
  epochTime,
  freeForm,
  idOf,
  pastTime,
  pathText,
  requiredText,
  timestamp,
  trueParam,
} from './values.ts';

export const activity = z
  .object({
    id: idOf('act').meta({ description: 'id of the record', examples: [sample.activityId] }),
    keyid: callerId.meta({
      description: 'id of the API key; with an access token, of the User; `local` for the administrator at the machine',
      examples: [sample.apikeyId],
    }),
    createdAt: pastTime,
    props: freeForm.meta({ examples: [{}] }),
    action: z.string().meta({
      description: 'what was asked for: the flag without the name of the KeyRing, or another word of yours',
      examples: ['keyring.encrypt'],
    }),
    ringname: z.string().meta({
      description: 'the KeyRing that it was about, in lower case; empty where there is none',
      examples: ['payroll'],
    }),
    validAction: z.boolean().meta({ description: 'the verdict of authorization', examples: [true] }),
    status: z
      .int()
      .min(100)
      .max(599)
      .meta({ description: 'the HTTP status that came of it', examples: [200] }),
    address: z
      .string()
      .exactOptional()
      .meta({
        description: 'where the request came from; a request from the machine itself, by its socket, has none',
        examples: ['203.0.113.7'],
      }),
    reporter: callerId.exactOptional().meta({
      description:
        'id of the API key or User that stored the record with `POST /auth/validate`; the records of the service itself have none',
      examples: [sample.apikeyId],
    }),
  })
  .meta({ id: 'Activity', description: 'one request, as the activity log keeps it' });
export type Activity = z.output<typeof activity>;

const flagFilter = z.union([z.literal(true), requiredText], { error: 'expected true or the name of a flag' });

/** A record must match all given filters. */
const searchActivityBody = z.object({
  accountUid: requiredText.exactOptional().meta({
    description: "by the Account's API keys, the Account given by its UID",
    examples: ['billing'],
  }),
  accountId: requiredText.exactOptional().meta({
    description: "by the Account's API keys",
    examples: [sample.accountId],
  }),
  action: requiredText.exactOptional().meta({
    description:
      "this action; of the service's own, `*` may stand before or behind the dot: `*.delete` for whatever deletes, `user.*` for all of users",
    examples: ['keyring.encrypt'],
  }),
  ring: requiredText.exactOptional().meta({ description: 'about the KeyRing of this name', examples: ['payroll'] }),
  start: epochTime.exactOptional().meta({
    description: 'not before this time, in milliseconds since 1970-01-01T00:00:00Z',
    examples: [1767225600000],
  }),
  end: epochTime.exactOptional().meta({
    description: 'not after this time, in milliseconds since 1970-01-01T00:00:00Z',
    examples: [1769904000000],
  }),
  keyid: requiredText.exactOptional().meta({
    description: 'by this API key or User',
    examples: [sample.apikeyId],
  }),
  valid: z
    .boolean()
    .exactOptional()
    .meta({ description: '`true`: granted; `false`: denied', examples: [true] }),
  address: requiredText.exactOptional().meta({
    pattern: addressPattern,
    description: 'from this IP address, or from any of this CIDR block',
    examples: ['203.0.113.0/24'],
  }),
  object: requiredText.exactOptional().meta({
    description:
      'about what has this id, or this name in any case: it was made, changed or removed, or touched along with that',
    examples: [sample.apikeyId],
  }),
  about: requiredText.exactOptional().meta({
    description:
      "by the API key or User with this id or name, by the Account's API keys, about the KeyRing or managed key with this id or name, or as `object` finds it; deleted API keys, Users and Accounts by their id; not together with `keyid`, `accountId`, `accountUid`, `ring` and `object`",
    examples: [sample.apikeyId],
  }),
  aboutType: z
    .enum(ringTypes)
    .exactOptional()
    .meta({
      description:
        'with `about`, which is a name then: only what is of this type, since rings and managed keys of one name have nothing else in common',
      examples: ['keyring'],
    }),
  granted: flagFilter.exactOptional().meta({
    description:
      'by which somebody gained permission flags: `true` any, or the name of one: that one, or a wildcard that includes it',
    examples: ['keyring.payroll.decrypt'],
  }),
  revoked: flagFilter.exactOptional().meta({
    description: 'by which somebody lost permission flags, likewise',
    examples: [true],
  }),
  exclude: z
    .object({
      keyid: requiredText.exactOptional().meta({ description: 'by this API key or User', examples: [sample.userId] }),
      action: requiredText.exactOptional().meta({ description: 'this action', examples: ['activity.read'] }),
    })
    .refine(({ keyid, action }) => keyid !== undefined || action !== undefined, 'expected keyid, action or both')
    .exactOptional()
    .meta({
      ...eitherOf('keyid', 'action'),
      description: 'without the records that have all of this, such as those of your own reading of the log',
    }),
  reads: z
    .boolean()
    .exactOptional()
    .meta({
      description:
        '`false`: without granted requests that only read, list or search, and without renewed sessions; what is left is what was changed, encrypted, decrypted, denied, and who logged in',
      examples: [false],
    }),
  props: freeForm.exactOptional().meta({
    description: 'whose `props` contain this object: every property that it names, at any depth, with the same value',
    examples: [{}],
  }),
});

export const activityHead = z
  .object({
    format: z.literal('kms-activity-head-1').meta({ description: 'what this is', examples: ['kms-activity-head-1'] }),
    tenant: idOf('tenant').meta({ description: 'id of the tenant', examples: [sample.tenantId] }),
    seq: count.meta({ description: 'number of the last record; 0 where there is none', examples: [1] }),
    hash: z.string().meta({
      description: "the chain's hash at that record, base64url",
      pattern: base64urlPattern,
      examples: [sample.chainHash],
    }),
    from: z
      .int()
      .min(1)
      .exactOptional()
      .meta({
        description: 'number of the first record that is kept, where retention dropped those before it; not signed',
        examples: [8193],
      }),
    signedAt: timestamp,
    publicKey: base64.meta({
      description: 'the Ed25519 key that signed, base64 SPKI DER',
      examples: [sample.headKey],
    }),
    signature: base64.meta({ description: 'base64', examples: [sample.headSignature] }),
    mlDsaPublicKey: base64.exactOptional().meta({
      description: 'with `postQuantum`: the ML-DSA-65 key that signed the same, base64 SPKI DER',
      examples: [sample.mlDsaKey],
    }),
    mlDsaSignature: base64
      .exactOptional()
      .meta({ description: 'with `postQuantum`: base64 of 3309 bytes', examples: [sample.mlDsaSignature] }),
  })
  .meta({ id: 'ActivityHead', description: 'the last record of the activity log with its hash, signed by the tenant' });

const headExample = {
  format: 'kms-activity-head-1',
  tenant: sample.tenantId,
  seq: 1,
  hash: sample.chainHash,
  signedAt: sample.time,
  publicKey: sample.headKey,
  signature: sample.headSignature,
};

const tag = 'Activity';

export const activityEndpoints = [
  endpoint('searchActivity', {
    changes: false,
    tag,
    summary: 'Search activity, newest first',
    access: { kind: 'flag', action: 'activity.read' },
    query: z.object(pageQuery),
    body: searchActivityBody,
    answer: pageOf(activity),
    paginated: true,
  }),
  endpoint('getActivityHead', {
    tag,
    summary: 'Read the signed head of the activity log',
    access: { kind: 'flag', action: 'activity.read' },
    query: z.object({
      postQuantum: trueParam.exactOptional().meta({
        description: '`true`: signed with ML-DSA-65, too, for a time in which Ed25519 can be forged',
      }),
    }),
    answer: activityHead,
  }),
  endpoint('exportActivity', {
    changes: false,
    tag,
    summary: 'Read all activity with its hash chain, oldest first',
    access: { kind: 'flag', action: 'activity.read' },
    body: z.object({
      since: freeForm.exactOptional().meta({
        description: 'a head that was kept: only the records after it, of which the first continues its hash',
        examples: [headExample],
      }),
    }),
    answer: z.unknown(),
    lines: 'application/jsonl',
    errors: { 429: { description: 'several exports are under way already', schema: errorBody } },
  }),
  endpoint('getActivity', {
    tag,
    summary: 'Read an activity',
    access: { kind: 'flag', action: 'activity.read' },
    params: z.object({ id: pathText }),
    answer: activity,
    errors: missing('no such activity'),
  }),
] as const;
