// Notes on the endpoints of approvals.
import type { approvalEndpoints } from '../../api/approvals.ts';
import { sample } from '../../api/example-values.ts';
import type { Note } from '../prose.ts';

const rule = { id: { description: 'id of the rule, or its name', example: sample.ruleId } };
const request = { id: { description: 'id of the request', example: sample.approvalId } };
const glass = { id: { description: 'id of the broken glass', example: sample.glassId } };
const noRule = { message: 'there is no such rule' };
const noRequest = { message: 'there is no such request' };
const over = { message: 'the request is denied already' };
const noSession = { message: 'expected an access token, not an API key' };
const noCode = { message: 'the code or the passkey is wrong, or was used before' };
const factor =
  'A second factor is needed, proved in the session within five minutes or here: `code` of an app, or `passkey`, the answer of the browser to the options that `/options` gives. A recovery code does not count. A passkey signs the digest of the request, and what it signed is kept in the activity record, so that anybody can verify the decision later.';

export const approvalNotes: Readonly<Record<(typeof approvalEndpoints)[number]['id'], Note>> = {
  createApprovalRule: {
    description: [
      'Makes a rule, which applies from now on: what its `actions` and `objects` cover is done only if `count` of its approvers approve. If several rules cover an operation, each must be satisfied, so that a second rule never loosens the first.',
      'It may be made before its approvers exist, and before they have second factors; `able` tells how many could approve now. Names of fewer approvers than `count` are refused, and so is a flag that no User has if it looks like a typing error.',
      'The rule vouches for its approvers who can log in when it is made. If these are fewer than `count`, it also vouches for the next ones who have a second factor, until they are enough. Otherwise an approver who came later counts once the rule vouches for them. The same is true of an approver to whose account somebody else was given access since: by an invite, a link to reset the password, another e-mail address, a reset second factor. Nobody approves what an identity asks for to which they were given access.',
    ],
    body: {
      name: 'deleting keys',
      actions: ['key.*.delete', 'keyring.*.delete'],
      approvers: { flag: 'approval.give' },
      count: 2,
    },
    problems: {
      400: [
        { field: 'name', message: 'is the name of another rule' },
        { field: 'approvers', message: 'there is no User grace' },
        { field: 'approvers', message: 'no User has the permission flag aproval.give; did you mean approval.give?' },
        { field: 'count', message: 'is more than the 1 approvers' },
        { field: 'expires', message: 'is past' },
      ],
    },
  },
  listApprovalRules: {
    description: [
      'Lists the rules by which the caller can approve, or that cover what the caller has flags for; with `approval.rule` or `approval.read`, all.',
    ],
  },
  getApprovalRule: { description: ['Reads one rule.'], params: rule, problems: { 404: [noRule] } },
  updateApprovalRule: {
    description: [
      'Changes the given fields, each as a whole. The rule covers its own change, which needs the approvals that the rule asked for before. Open requests are then decided by the changed rule.',
      'If `approvers` change, the rule vouches for those who are added. With `vouch` it vouches for all of them as they are now. No other change vouches for anybody.',
    ],
    params: rule,
    body: { count: 2 },
    problems: { 400: [{ field: 'name', message: 'is the name of another rule' }], 404: [noRule] },
  },
  deleteApprovalRule: {
    description: ['Deletes a rule. This needs the approvals that the rule itself asks for.'],
    params: rule,
    problems: { 404: [noRule] },
  },
  listApprovalPresets: {
    description: ['Lists sets of actions for which rules are usually made.'],
  },
  listApprovalRequests: {
    description: [
      'Lists requests that the caller or one of their API keys made, that they can approve, or that they decided on; with `approval.read`, all. Ended ones are kept for 30 days; the activity log keeps everything.',
    ],
  },
  getApprovalRequest: { description: ['Reads one request.'], params: request, problems: { 404: [noRequest] } },
  getApprovalOptions: {
    description: [
      'Tells which second factors the caller can use for a decision. A passkey signs a challenge, and its authenticator must verify the user. To approve, the challenge is the digest of the request. To deny, or to break the glass, it is SHA-256 of `{"digest":DIGEST,"v":"kms/approval-word/1","verdict":VERDICT}`, so that a signature for one decision cannot pass for another.',
    ],
    params: request,
    problems: { 400: [noSession], 404: [noRequest] },
  },
  approveRequest: {
    description: [
      factor,
      'An approval counts while its User exists, is an approver, and has the second factor that it was given with.',
    ],
    params: request,
    body: { code: sample.totpCode, reason: 'as agreed' },
    problems: { 400: [noSession, over, noCode], 404: [noRequest] },
  },
  denyRequest: {
    description: ['Ends the request. The same operation can be requested again.', factor],
    params: request,
    body: { code: sample.totpCode, reason: 'not on a Friday' },
    problems: { 400: [noSession, over, noCode], 404: [noRequest] },
  },
  withdrawRequest: {
    description: ['Takes a request back. If it was approved, that ends too.'],
    params: request,
    problems: { 400: [over], 404: [noRequest] },
  },
  breakGlass: {
    description: [
      'For a User whom all rules of the request name in `breakers`: the requester may do it at once, one time, and everybody is told until somebody else acknowledges it.',
      factor,
    ],
    params: request,
    body: { code: sample.totpCode, reason: 'the key leaks and nobody answers' },
    problems: { 400: [noSession, over, noCode], 404: [noRequest] },
  },
  listBrokenGlass: {
    description: [
      'Lists operations that were done without the approval that they needed: by whom, why, and who acknowledged it.',
    ],
  },
  acknowledgeBrokenGlass: {
    description: [
      'Ends the alerts about it. Whoever broke the glass cannot acknowledge it, nor can an API key or a User to which they were ever given access, unless a rule has vouched for that User since.',
    ],
    params: glass,
    problems: { 404: [{ message: 'no glass was broken under this id' }] },
  },
};
