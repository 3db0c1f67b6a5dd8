// RuleDraft holds what the form of a rule has besides plain fields: actions, approvers and who may break the glass.
// Drafts are immutable, and yield the fields that the API takes. Pure.
import type { ApprovalRule } from '../../api/approvals.ts';
import type { InputOf } from '../../client/client.ts';
import { actProblem, defaultObjects, furtherActions, mostWords, shortestWindow } from '../../model/approval-rules.ts';
import { isKnownFlag } from '../../model/flags.ts';
import { FieldProblems } from '../error-text.ts';
import { actsText } from '../flags/abilities.ts';
import { draftOf, draftProblems, type FlagDraft, flagsOf } from '../flags/draft.ts';
import type { FormValues } from '../parts/form.tsx';
import { typedMoment } from '../parts/search-fields.ts';
import { windowText } from './act-words.ts';

export interface RuleDraft {
  /** Actions of the table of flags. */
  readonly acts: FlagDraft;
  /** Actions that several operations amount to: `admin.make`. */
  readonly further: readonly string[];
  /** All others, by name. */
  readonly named: readonly string[];
  readonly by: 'users' | 'flag';
  /** Names or ids. */
  readonly users: readonly string[];
  readonly breakers: readonly string[];
  readonly mode: ApprovalRule['mode'];
}

/** Wording of the actions that are no flags. */
export const furtherTexts: ReadonlyMap<string, string> = new Map([
  [furtherActions.makeAdministrator, 'make somebody an administrator, in any way'],
  [furtherActions.restore, 'restore the appliance from a backup'],
  ['key.*.erase-material', 'erase the bytes of any imported key'],
]);

export const usualFlag = 'approval.give';

export function ruleDraftOf(rule?: ApprovalRule): RuleDraft {
  const { approvers = { flag: usualFlag }, breakers = [], mode = 'ask' } = rule ?? {};
  return {
    ...actsDraft(rule?.actions ?? []),
    by: approvers.users ? 'users' : 'flag',
    users: (approvers.users ?? []).map(nameOrId),
    breakers: breakers.map(nameOrId),
    mode,
  };
}

function nameOrId({ id, name }: { readonly id: string; readonly name: string }): string {
  return name === '' ? id : name;
}

/** The actions of a draft, from the names of a rule or preset. */
export function actsDraft(actions: readonly string[]): Pick<RuleDraft, 'acts' | 'further' | 'named'> {
  const isFlag = (action: string): boolean => isKnownFlag(action);
  const isFurther = (action: string): boolean => furtherTexts.has(action);
  return {
    acts: draftOf(Object.fromEntries(actions.filter(isFlag).map((action) => [action, true]))),
    further: actions.filter(isFurther),
    named: actions.filter((action) => !isFlag(action) && !isFurther(action)),
  };
}

/** Names of the actions. */
export function actionsOf({ acts, further, named }: Pick<RuleDraft, 'acts' | 'further' | 'named'>): string[] {
  return [...Object.keys(flagsOf(acts)), ...further, ...named];
}

/** Wording of the actions: `delete every keyring, now and later; make somebody an administrator`. */
export function ruleActsText(actions: readonly string[]): string {
  const { acts, further, named } = actsDraft(actions);
  return [actsText(acts), ...further.map((each) => furtherTexts.get(each) ?? each), ...named]
    .filter((text) => text !== '')
    .join('; ');
}

type RuleFields = InputOf<'createApprovalRule'>;

/** The fields that the form sends. Throws `FieldProblems` if one is wrong. */
export function ruleIn(values: FormValues, draft: RuleDraft): RuleFields {
  const [problem] = draftProblems(draft.acts);
  if (problem !== undefined) throw new FieldProblems({ actions: problem }, `What needs approval: ${problem}`);
  const named = linesIn(values.text('actions'));
  const [unknown] = named.flatMap((action) => actProblem(action) ?? []);
  if (unknown !== undefined) throw new FieldProblems({ actions: unknown });
  const actions = actionsOf({ ...draft, named });
  if (actions.length === 0) throw new FieldProblems({ actions: '' }, 'Choose what needs approval.');
  if (draft.by === 'users' && draft.users.length === 0) {
    throw new FieldProblems({ approver: 'Add at least one user.' });
  }
  const objects = linesIn(values.text('objects'));
  const flag = values.text('flag');
  return {
    name: values.text('name'),
    actions,
    objects: objects.length === 0 ? defaultObjects : objects,
    approvers: draft.by === 'users' ? { users: [...draft.users] } : { flag },
    count: countIn(values.text('count')),
    mode: draft.mode,
    window: windowIn(values.text('window')),
    breakers: [...draft.breakers],
    expires: timeIn(values.text('expires')),
  };
}

function linesIn(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function countIn(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= mostWords) return count;
  throw new FieldProblems({ count: `A whole number from 1 to ${mostWords}.` });
}

function windowIn(text: string): 'once' | number {
  return text === 'once' ? 'once' : Number(text);
}

/** Null if the field is empty. */
function timeIn(text: string): number | null {
  if (text === '') return null;
  const time = typedMoment(text);
  if (time === undefined) throw new FieldProblems({ expires: 'A date and a time.' });
  return time;
}

const usualWindows = [shortestWindow, 900, 3600, 4 * 3600, 8 * 3600, 86_400];

/** Options for the window: the usual ones, and the one that the rule has. */
export function windowOptions(now: 'once' | number): readonly (readonly [value: string, text: string])[] {
  const spans = now === 'once' || usualWindows.includes(now) ? usualWindows : [...usualWindows, now];
  const sorted = [...spans].sort((a, b) => a - b);
  return [['once', 'once'], ...sorted.map((span) => [String(span), windowText(span)] as const)];
}
