// Approvals on the wire: the rules, the requests that wait, the words (approvals and denials), and broken glass. What a
// verifier needs of them is in the activity's records.
import { z } from 'zod';
import {
  approvalModes,
  defaultObjects,
  longestReason,
  longestRuleName,
  longestWindow,
  mostActions,
  mostApprovers,
  mostObjects,
  mostWords,
  presetNames,
  requestStates,
  shortestWindow,
  verdicts,
} from '../model/approval-rules.ts';
import { maxFlagLength } from '../model/flags.ts';
import { isJsonObject } from '../model/json.ts';
import { emptyBody, endpoint, missing, tooManyTries } from './endpoint.ts';
import { sample } from './example-values.ts';
import { pageInfo, pageQuery } from './page.ts';
import { requestOptions, usedPasskey } from './passkeys.ts';
import {
  base64urlPattern,
  callerId,
  count,
  epochTime,
  freeForm,
  idOf,
  pastTime,
  pathText,
  requiredText,
  secretText,
  textList,
  trueParam,
} from './values.ts';

const tag = 'Approvals';

const ruleId = idOf('rule').meta({ description: 'id of the rule', examples: [sample.ruleId] });
const requestId = idOf('appr').meta({ description: 'id of the request', examples: [sample.approvalId] });

function shortText(most: number, what: string) {
  return requiredText
    .refine((value) => [...value].length <= most, `has at most ${most} characters`)
    .meta({
      description: what,
      maxLength: most,
    });
}

const reason = shortText(longestReason, 'why, for the others to read').meta({ examples: ['the old key leaked'] });

const ruleName = z.string().meta({ description: 'what people call the rule', examples: ['deleting keys'] });

const ruleFields = {
  name: shortText(longestRuleName, 'what people call the rule').meta({ examples: ['deleting keys'] }),
  actions: textList(mostActions).meta({
    description:
      'flag names, wildcards allowed: `key.payroll.export`, `keyring.*.delete`, `apikey.create`, `approval.*`; the presets have further names, which are no flags',
    examples: [['key.*.delete', 'keyring.*.delete']],
  }),
  objects: textList(mostObjects).meta({
    description: 'names or ids of objects, `*` standing for any characters; absent: any object',
    examples: [defaultObjects],
  }),
  approvers: z
    .object({
      users: textList(mostApprovers)
        .exactOptional()
        .meta({ description: 'Users, by id or name', examples: [[sample.userId]] }),
      flag: requiredText
        .refine((flag) => [...flag].length <= maxFlagLength, `has at most ${maxFlagLength} characters`)
        .exactOptional()
        .meta({ description: 'or a flag: everybody who has it', examples: ['approval.give'] }),
    })
    .refine(({ users, flag }) => (users === undefined) !== (flag === undefined), 'expected either users or flag')
    .meta({ description: 'who can approve: either `users` or `flag`' }),
  count: z
    .int()
    .min(1)
    .max(mostWords)
    .meta({ description: 'how many of them must approve', examples: [2] }),
  selfApproval: z
    .literal(false)
    .meta({ description: 'always false: nobody approves their own request', examples: [false] }),
  mode: z.enum(approvalModes).meta({
    description: '`ask`: a request that needs approval is refused at once; `hold`: it waits for up to 60 s first',
    examples: ['ask'],
  }),
  window: z.union([z.literal('once'), z.int().min(shortestWindow).max(longestWindow)]).meta({
    description:
      '`once`: an approval is good for one use; or the number of seconds for which the same caller may repeat the operation on the same object',
    examples: ['once', 3600],
  }),
  breakers: textList(mostApprovers).meta({
    description: 'Users, by id or name, who may break the glass, which does without approval',
    examples: [[]],
  }),
  expires: epochTime.nullable().meta({ description: 'when the rule ends, in milliseconds; null: never' }),
  props: freeForm.meta({ examples: [{ managedBy: 'team' }] }),
};

const newRule = z.object({
  name: ruleFields.name,
  actions: ruleFields.actions,
  objects: ruleFields.objects.exactOptional(),
  approvers: ruleFields.approvers,
  count: ruleFields.count.exactOptional(),
  selfApproval: ruleFields.selfApproval.exactOptional(),
  mode: ruleFields.mode.exactOptional(),
  window: ruleFields.window.exactOptional(),
  breakers: ruleFields.breakers.exactOptional(),
  expires: ruleFields.expires.exactOptional(),
  props: ruleFields.props.exactOptional(),
});

const changedRule = z.object({
  name: ruleFields.name.exactOptional(),
  actions: ruleFields.actions.exactOptional(),
  objects: ruleFields.objects.exactOptional(),
  approvers: ruleFields.approvers.exactOptional(),
  count: ruleFields.count.exactOptional(),
  selfApproval: ruleFields.selfApproval.exactOptional(),
  mode: ruleFields.mode.exactOptional(),
  window: ruleFields.window.exactOptional(),
  breakers: ruleFields.breakers.exactOptional(),
  expires: ruleFields.expires.exactOptional(),
  props: ruleFields.props.exactOptional(),
  vouch: z
    .literal(true)
    .exactOptional()
    .meta({ description: 'the rule vouches for its approvers as they are now', examples: [true] }),
});

const person = z.object({
  id: callerId.meta({ description: 'id of the API key or User, or `local`', examples: [sample.userId] }),
  name: z.string().meta({ description: 'what people call it; may be empty', examples: ['ada'] }),
});

const rule = z
  .object({
    id: ruleId,
    name: ruleName,
    actions: z.array(z.string()).meta({ description: 'flag names with wildcards', examples: [['key.*.delete']] }),
    objects: z.array(z.string()).meta({ description: 'names or ids, with wildcards', examples: [defaultObjects] }),
    approvers: z
      .object({
        users: z.array(person).exactOptional().meta({ description: 'these Users' }),
        flag: z
          .string()
          .exactOptional()
          .meta({ description: 'or all Users with this flag', examples: ['approval.give'] }),
      })
      .meta({ description: 'who can approve' }),
    count: ruleFields.count,
    selfApproval: ruleFields.selfApproval,
    mode: ruleFields.mode,
    window: ruleFields.window,
    breakers: z.array(person).meta({ description: 'who may break the glass' }),
    expires: ruleFields.expires,
    props: ruleFields.props,
    able: count.meta({
      description:
        'how many of the approvers could approve now: they can log in, have a second factor, and the rule vouches for them',
      examples: [3],
    }),
    createdAt: pastTime,
    createdBy: callerId.meta({ description: 'who made it', examples: [sample.userId] }),
    updatedAt: pastTime.meta({ description: 'when it was last changed' }),
  })
  .meta({ id: 'ApprovalRule', description: 'which actions need approval, and by whom' });
export type ApprovalRule = z.output<typeof rule>;

const verdict = z.enum(['approve', 'deny']).meta({ description: 'the decision', examples: ['approve'] });
const factorKind = z.enum(['totp', 'passkey']).meta({ description: 'the second factor', examples: ['passkey'] });

const word = z.object({
  by: person.meta({ description: 'who decided' }),
  verdict,
  at: pastTime.meta({ description: 'when: milliseconds since 1970, UTC' }),
  factor: factorKind,
  signed: z.boolean().meta({ description: 'a passkey signed the digest of the request', examples: [true] }),
  reason: z
    .string()
    .exactOptional()
    .meta({ description: 'why, as they put it', examples: ['as agreed'] }),
  counts: z.boolean().meta({ description: 'it counts now', examples: [true] }),
  problem: z
    .string()
    .exactOptional()
    .meta({ description: 'why it does not count', examples: ['the User no longer exists'] }),
});

const object = z
  .object({
    type: z.string().meta({ description: 'as in activity records', examples: ['managed-key'] }),
    id: z.string().meta({ description: 'its id', examples: [sample.managedKeyId] }),
    name: z
      .string()
      .exactOptional()
      .meta({ description: 'its name when the request was made', examples: ['payroll'] }),
  })
  .meta({ description: 'what it is done to' });

/** Any fields, whose names and values callers chose. */
const freeValues = z
  .custom<Record<string, unknown>>(isJsonObject, 'expected an object')
  .meta({ type: 'object', additionalProperties: true });

const shown = z
  .object({
    parameters: freeValues.meta({
      description: 'parameters of the path and the query',
      examples: [{ key: sample.managedKeyId }],
    }),
    body: freeValues.nullable().meta({
      description:
        'the body; confidential and long values are replaced by `{"hidden": …}`, with a code that is the same for equal values; null if any body may be sent',
      examples: [{ days: 7 }],
    }),
    further: z
      .array(
        z.object({
          action: z.string().meta({ description: 'the flag that it takes', examples: ['key.backups.encrypt'] }),
          object: object.nullable().meta({ description: 'the object; null if it does not exist' }),
        }),
      )
      .meta({ description: 'what is done to further objects, such as the key under which something is re-encrypted' }),
  })
  .meta({ description: 'what exactly is asked for; the statement contains it, or its digest' });

const effects = z
  .object({
    changed: z.array(z.string()).meta({ description: 'names of the fields that change', examples: [['state']] }),
    granted: z.array(z.string()).meta({
      description: 'flags that somebody gains, 100 at most: wildcards first, then others that grant something',
      examples: [[]],
    }),
    revoked: z.array(z.string()).meta({ description: 'flags that somebody loses, in the same order', examples: [[]] }),
    grantedCount: count
      .exactOptional()
      .meta({ description: 'how many in all, if there are more than 100', examples: [240] }),
    revokedCount: count
      .exactOptional()
      .meta({ description: 'how many in all, if there are more than 100', examples: [240] }),
    objects: z.array(object).meta({ description: 'other objects that it affects, 100 at most' }),
    objectCount: count
      .exactOptional()
      .meta({ description: 'how many in all, if there are more than 100', examples: [130] }),
    before: freeValues.exactOptional().meta({ description: 'the object before, without secrets' }),
    after: freeValues.exactOptional().meta({ description: 'the object afterwards, without secrets' }),
    vouched: z
      .array(
        person.extend({
          reached: z
            .boolean()
            .meta({ description: 'the requester could have had access to the account', examples: [false] }),
        }),
      )
      .exactOptional()
      .meta({ description: 'for a rule: the Users for whom it would newly vouch, 100 at most' }),
    vouchedCount: count
      .exactOptional()
      .meta({ description: 'how many in all, if there are more than 100', examples: [130] }),
    dependents: z
      .array(
        z.object({
          by: person.meta({ description: 'who used it' }),
          operation: z.string().meta({ description: 'what for', examples: ['decrypt'] }),
          uses: count.meta({ description: 'how often', examples: [12] }),
          lastUsedAt: pastTime,
        }),
      )
      .exactOptional()
      .meta({ description: 'for a managed key: who used it within 30 days, 20 at most, latest first' }),
  })
  .meta({ description: 'what it would have done at the time of the request' });

const may = z
  .object({
    approve: z.boolean().meta({ description: 'approve it', examples: [true] }),
    deny: z.boolean().meta({ description: 'deny it', examples: [true] }),
    withdraw: z.boolean().meta({ description: 'withdraw it', examples: [false] }),
    breakGlass: z.boolean().meta({ description: 'break the glass for it', examples: [false] }),
    problem: z
      .string()
      .exactOptional()
      .meta({ description: 'why the caller, an approver, cannot approve', examples: ['you have decided already'] }),
  })
  .meta({ description: 'what the caller can do with it' });

const request = z
  .object({
    id: requestId,
    state: z.enum(requestStates).meta({
      description:
        '`pending`: waits for approvals; `granted`: may be done now; `done`: was done, or its window is over; `denied`, `withdrawn`, `expired`: will not be done',
      examples: ['pending'],
    }),
    requester: person.meta({ description: 'who asks' }),
    action: z.string().meta({ description: 'the flag that it takes', examples: ['key.payroll.delete'] }),
    actions: z.array(z.string()).meta({
      description:
        'all actions by which a rule may cover it, that flag among them; `admin.make` if it makes an administrator',
      examples: [['key.payroll.delete']],
    }),
    operation: z.string().meta({
      description: 'the operation: an `operationId` of the description, or `kmip:` and an operation of KMIP',
      examples: ['deleteManagedKey'],
    }),
    dialect: z
      .string()
      .exactOptional()
      .meta({ description: 'the other protocol that it came by, if any', examples: ['vault'] }),
    address: z
      .string()
      .exactOptional()
      .meta({ description: 'where it came from', examples: ['192.0.2.7'] }),
    object: object.nullable().meta({ description: 'what it is done to; null for something new' }),
    reason: z
      .string()
      .exactOptional()
      .meta({ description: 'why, as the requester put it', examples: ['as planned'] }),
    createdAt: pastTime,
    expiresAt: pastTime.meta({ description: 'when it expires; for a granted one: when the approval ends' }),
    needed: count.meta({ description: 'how many approvals it needs', examples: [2] }),
    given: count.meta({ description: 'how many it has', examples: [1] }),
    rules: z
      .array(
        z.object({
          id: ruleId,
          name: ruleName,
          count: ruleFields.count,
          given: count.meta({ description: 'how many approvals it has for this rule', examples: [1] }),
          window: ruleFields.window,
        }),
      )
      .meta({ description: 'the rules as they are now; each must be satisfied' }),
    words: z.array(word).meta({ description: 'approvals and denials, oldest first' }),
    uses: count.meta({ description: 'how often it was done', examples: [0] }),
    broken: z.boolean().meta({ description: 'the glass was broken for it', examples: [false] }),
    statement: z.string().meta({
      description: 'what is approved, as canonical JSON (RFC 8785)',
      examples: ['{"v":"kms/approval/1"}'],
    }),
    digest: z.string().meta({
      pattern: base64urlPattern,
      description: 'SHA-256 of the statement in UTF-8, base64url: the challenge that a passkey signs',
      examples: [sample.tangThumbprint],
    }),
    shown,
    effects,
    may,
  })
  .meta({ id: 'ApprovalRequest', description: 'an operation that needs, or needed, the approval of others' });
export type ApprovalRequest = z.output<typeof request>;

const broken = z
  .object({
    id: idOf('glass').meta({ description: 'id of the broken glass', examples: [sample.glassId] }),
    at: pastTime,
    by: person.meta({ description: 'who broke it' }),
    reason: z.string().meta({ description: 'why', examples: ['nobody reachable, keys leaking'] }),
    action: z.string().meta({ description: 'the flag that it takes', examples: ['key.payroll.delete'] }),
    object: object.nullable().meta({ description: 'what it is done to; null for something new' }),
    request: requestId
      .exactOptional()
      .meta({ description: 'the request, if there was one', examples: [sample.approvalId] }),
    acknowledged: z
      .object({ at: pastTime, by: person.meta({ description: 'who acknowledged it' }) })
      .nullable()
      .meta({ description: 'null while nobody did' }),
  })
  .meta({ id: 'BrokenGlass', description: 'an operation that was done without the approval that it needed' });
export type BrokenGlass = z.output<typeof broken>;

/** Proof of a second factor; needed unless the session's is fresh. */
const secondFactor = {
  code: secretText
    .exactOptional()
    .meta({ description: 'six digits of an app; not a recovery code', examples: [sample.totpCode] }),
  passkey: usedPasskey
    .exactOptional()
    .meta({ description: "a passkey's answer to the challenge in the options for this decision" }),
};

const withId = { params: z.object({ id: pathText }) };
const noRule = missing('no such rule, or none that concerns the caller');
const noRequest = missing('no such request, or none that concerns the caller');

export const approvalEndpoints = [
  endpoint('createApprovalRule', {
    tag,
    summary: 'Make a rule; it applies from now on',
    access: { kind: 'flag', action: 'approval.rule' },
    body: newRule,
    answer: rule,
  }),
  endpoint('listApprovalRules', {
    tag,
    summary: 'List the rules that concern the caller, oldest first; with `approval.rule` or `approval.read`, all',
    access: { kind: 'credential', action: 'approval.list-rules' },
    answer: z.object({ rules: z.array(rule).meta({ description: 'at most 200' }) }),
  }),
  endpoint('getApprovalRule', {
    tag,
    summary: 'Read a rule',
    access: { kind: 'credential', action: 'approval.list-rules' },
    ...withId,
    answer: rule,
    errors: noRule,
  }),
  endpoint('updateApprovalRule', {
    tag,
    summary: 'Change a rule; this needs the approvals that the rule itself asks for',
    access: { kind: 'flag', action: 'approval.rule' },
    ...withId,
    body: changedRule,
    answer: rule,
    errors: noRule,
  }),
  endpoint('deleteApprovalRule', {
    tag,
    summary: 'Delete a rule; this needs the approvals that the rule itself asks for',
    access: { kind: 'flag', action: 'approval.rule' },
    ...withId,
    answer: emptyBody,
    errors: noRule,
  }),
  endpoint('listApprovalPresets', {
    tag,
    summary: 'List presets: sets of actions for which rules are usually made',
    access: { kind: 'credential', action: 'approval.list-rules' },
    answer: z.object({
      presets: z
        .array(
          z.object({
            name: z.enum(presetNames).meta({ description: 'names the preset', examples: ['delete-keys'] }),
            title: z
              .string()
              .meta({ description: 'for people', examples: ['Deleting a keyring, a managed key or a tenant'] }),
            actions: z.array(z.string()).meta({ description: 'for `actions` of a rule', examples: [['key.*.delete']] }),
          }),
        )
        .meta({ description: 'one for each kind of action' }),
    }),
  }),
  endpoint('listApprovalRequests', {
    tag,
    summary: 'List the requests that concern the caller, newest first; with `approval.read`, all',
    access: { kind: 'credential', action: 'approval.list' },
    query: z.object({
      state: z.enum(requestStates).exactOptional().meta({ description: 'only those in this state' }),
      mine: trueParam.exactOptional().meta({ description: '`true`: only those that the caller made' }),
      inbox: trueParam
        .exactOptional()
        .meta({ description: '`true`: only pending ones that the caller can decide, oldest first' }),
      requester: callerId
        .exactOptional()
        .meta({ description: 'only those that this API key or User made', examples: [sample.userId] }),
      cursor: pageQuery.cursor,
    }),
    answer: z.object({
      requests: z.array(request).meta({ description: 'at most 100, or 2 MiB of them' }),
      nextCursor: pageInfo.shape.nextCursor,
    }),
    watchable: { apart: ['nextCursor'] },
  }),
  endpoint('getApprovalRequest', {
    tag,
    summary: 'Read a request',
    access: { kind: 'credential', action: 'approval.list' },
    ...withId,
    answer: request,
    errors: noRequest,
  }),
  endpoint('getApprovalOptions', {
    tag,
    summary: 'Get what a decision takes: which second factors, and what the browser needs for a passkey',
    access: { kind: 'credential', action: 'approval.list' },
    ...withId,
    query: z.object({
      verdict: z.enum(verdicts).exactOptional().meta({ description: 'which decision; default: `approve`' }),
    }),
    answer: z.object({
      fresh: z
        .boolean()
        .meta({ description: "the session's second factor is fresh: neither is needed", examples: [false] }),
      secondFactor: z.array(factorKind).meta({ description: 'what the caller has' }),
      passkeyOptions: requestOptions.exactOptional().meta({
        description:
          'for the browser; the challenge is the digest of the request to approve it, and a different one for other decisions',
      }),
    }),
    errors: noRequest,
  }),
  endpoint('approveRequest', {
    tag,
    summary: 'Approve a request; needs a session, and a second factor that is at most 5 minutes old or given here',
    access: { kind: 'credential', action: 'approval.approve', backoff: true },
    ...withId,
    body: z.object({ ...secondFactor, reason: reason.exactOptional() }),
    answer: request,
    errors: { ...noRequest, ...tooManyTries },
  }),
  endpoint('denyRequest', {
    tag,
    summary: 'Deny a request, which ends it; needs what approving needs',
    access: { kind: 'credential', action: 'approval.deny', backoff: true },
    ...withId,
    body: z.object({ ...secondFactor, reason: reason.exactOptional() }),
    answer: request,
    errors: { ...noRequest, ...tooManyTries },
  }),
  endpoint('withdrawRequest', {
    tag,
    summary: "Withdraw one's own request, or with `approval.rule` any; approvals that it has end",
    access: { kind: 'credential', action: 'approval.withdraw' },
    ...withId,
    answer: request,
    errors: noRequest,
  }),
  endpoint('breakGlass', {
    tag,
    summary: 'Break the glass for a request, as a User whom its rules name; the requester may then do it at once',
    access: { kind: 'credential', action: 'approval.break-glass', backoff: true },
    ...withId,
    body: z.object({ ...secondFactor, reason }),
    answer: request,
    errors: { ...noRequest, ...tooManyTries },
  }),
  endpoint('listBrokenGlass', {
    tag,
    summary: 'List when and why the glass was broken, newest first',
    access: { kind: 'credential', action: 'approval.list' },
    answer: z.object({
      broken: z.array(broken).meta({ description: 'at most 100; those not acknowledged come first' }),
    }),
    watchable: { apart: [] },
  }),
  endpoint('acknowledgeBrokenGlass', {
    tag,
    summary: 'Acknowledge broken glass, which ends the alerts; not for whoever broke it',
    access: { kind: 'flag', action: 'approval.rule', recorded: 'approval.acknowledge' },
    ...withId,
    answer: broken,
    errors: missing('no glass was broken under this id'),
  }),
] as const;
