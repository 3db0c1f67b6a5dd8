// Wording of records about approvals: requests and the decisions on them, what was done with approval or without it,
// and changes of rules. Pure.
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { shortId } from '../text.ts';
import { type ActivityRecord, deedOfRecord, type Names } from './records.ts';

interface ApprovalWords {
  readonly past: string;
  readonly base: string;
  readonly things: string;
}

const requests = 'approval requests';

const requestWords: ReadonlyMap<string, ApprovalWords> = new Map([
  ['approval.request', { past: 'asked for approval by the', base: 'ask for approval by the', things: requests }],
  ['approval.approve', { past: 'approved', base: 'approve', things: requests }],
  ['approval.deny', { past: 'denied', base: 'deny', things: requests }],
  ['approval.withdraw', { past: 'took back', base: 'take back', things: requests }],
  ['approval.expire', { past: 'got no approval in time for', base: 'get no approval in time for', things: requests }],
  ['approval.vouch', { past: 'became an approver of', base: 'become an approver of', things: 'approval rules' }],
  ['approval.break-glass', { past: 'broke the glass', base: 'break the glass', things: '' }],
  ['approval.acknowledge', { past: 'acknowledged', base: 'acknowledge', things: 'broken glass' }],
]);

const ruleWords: ApprovalWords = { past: 'changed', base: 'change', things: 'approval rules' };

/** The wording of an action on approvals; undefined for others. */
export function approvalWordsFor(action: string): ApprovalWords | undefined {
  return action === 'approval.rule' ? ruleWords : requestWords.get(action);
}

/** The wording of a record about approvals; undefined for other records. */
export function approvalWordsOf(record: ActivityRecord): ApprovalWords | undefined {
  const { action, reporter, props, status } = record;
  if (reporter !== undefined) return undefined;
  if (action !== 'approval.rule' || status >= 400) return approvalWordsFor(action);
  // Only a rule that is still there has its fields in the record; only a change names some.
  if (!isJsonObject(props.rule)) return { ...ruleWords, past: 'deleted' };
  return (deedOfRecord(record).changed ?? []).length > 0 ? ruleWords : { ...ruleWords, past: 'set' };
}

/** The approval that a record is about, was done with, or waits for, as the record tells it. */
interface ApprovalNote {
  /** Id of the request. */
  readonly id: string | undefined;
  /** Id of the broken glass by which it was done. */
  readonly glass: string | undefined;
  readonly reason: string | undefined;
  readonly factor: string | undefined;
  /** Whether a passkey signed the request. */
  readonly isSigned: boolean;
  /** How often it was done with the approval, this time included. */
  readonly use: number | undefined;
  /** Users whose approvals counted, by id. */
  readonly approvers: readonly string[];
  /** Flag of the operation that is asked for. */
  readonly asked: string | undefined;
}

/** Undefined if the record is not about approvals. */
export function approvalNoteOf({ props, reporter }: ActivityRecord): ApprovalNote | undefined {
  const { approval } = props;
  if (reporter !== undefined || !isJsonObject(approval)) return undefined;
  const { id, glass, reason, factor, assertion, use, rules, statement, action } = approval;
  return {
    id: textOf(id),
    glass: textOf(glass),
    reason: textOf(reason),
    factor: isJsonObject(factor) ? textOf(factor.kind) : undefined,
    isSigned: isJsonObject(assertion),
    use: typeof use === 'number' ? use : undefined,
    approvers: approversIn(rules),
    asked: textOf(action) ?? actionIn(statement),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function approversIn(rules: unknown): string[] {
  const all = Array.isArray(rules) ? rules.filter(isJsonObject) : [];
  const ids = all.flatMap((rule: JsonObject) => (Array.isArray(rule.words) ? rule.words : []));
  return [...new Set(ids.filter((id): id is string => typeof id === 'string'))];
}

function actionIn(statement: unknown): string | undefined {
  if (typeof statement !== 'string') return undefined;
  try {
    const parsed: unknown = JSON.parse(statement);
    return isJsonObject(parsed) ? textOf(parsed.action) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the request was refused because it waits for approval. */
export function waitsForApproval(record: ActivityRecord): boolean {
  const { validAction, status, props, action } = record;
  const isWord = requestWords.has(action);
  return (
    !isWord && !validAction && status === 403 && isJsonObject(props.approval) && approvalNoteOf(record) !== undefined
  );
}

/** Details of a record about approvals that its sentence does not have. */
export function approvalDetailsOf(record: ActivityRecord, names: Names): string[] {
  const note = approvalNoteOf(record);
  if (!note) return [];
  const { glass, reason, factor, isSigned, approvers, asked } = note;
  const isGlass = glass !== undefined && record.action !== 'approval.break-glass';
  return [
    ...(asked === undefined || deedOfRecord(record).object?.name === asked ? [] : [`for ${asked}`]),
    ...(factor === undefined ? [] : [isSigned ? 'signed with a passkey' : `proved by ${factorText(factor)}`]),
    ...(approvers.length === 0 ? [] : [`approved by ${listText(approvers.map((id) => names.get(id) ?? shortId(id)))}`]),
    ...(isGlass ? ['without approval: the glass was broken'] : []),
    ...(reason === undefined ? [] : [`“${reason}”`]),
  ];
}

export function factorText(kind: string): string {
  return kind === 'totp' ? 'a code' : kind === 'passkey' ? 'a passkey' : kind;
}

function listText(texts: readonly string[]): string {
  const last = texts.at(-1) ?? '';
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(', ')} and ${last}`;
}
