// A plan as text, for a person who has never seen one: each change with the fields that it sets, with signs that are
// explained at the end. Nothing in it can control a terminal.
import type { JsonObject } from '../../model/json.ts';
import { timestamp } from '../../model/timestamp.ts';
import { visible } from '../text.ts';
import { grantedIn } from './differing.ts';
import type { Difference, Restorable } from './kind.ts';
import { kinds } from './kind-table.ts';
import type { PlannedChanges, Step } from './plan.ts';
import { proofsIn, proofText } from './proof-matching.ts';

const signs = { create: '+', update: '~', remove: '-' } as const;
/** Characters of a value that are shown, and of them those before a difference. */
const longestValue = 160;
const longestCommon = 20;

/** Lines of a plan; empty if there is nothing to say. */
export function planLines(plan: PlannedChanges): readonly string[] {
  const { steps, kept, notes: facts = [], unlisted } = plan;
  const lines = [
    ...steps.flatMap(stepLines),
    ...kept.map(({ kind, name, why }) => `! ${titled(kind, name)} stays: ${why}`),
    ...facts.map(({ kind, name, text }) => `! ${titled(kind, name)}: ${text}`),
    ...unlisted.map(
      (kind) => `! nothing of ${kinds[kind].noun[1]} is removed: the flag ${kinds[kind].listFlag} is missing`,
    ),
  ];
  if (steps.length > 0) lines.push('', '+ is made, ~ is changed, - is removed, ! is to be noted');
  return lines.map(visible);
}

export function titled(kind: Step['kind'], name: string): string {
  return `${kinds[kind].noun[0]} ${name}`;
}

function stepLines(step: Step): string[] {
  const head = `${signs[step.action]} ${titled(step.kind, step.name)}`;
  const body = step.action === 'create' ? fieldLines(step.fields ?? {}) : step.differences.flatMap(differenceLines);
  return [head, ...[...body, ...notes(step)].map((line) => `    ${line}`)];
}

function notes({
  action,
  isUnseen,
  isUnfinished,
  isContinued,
  after,
  restorable,
  blocked,
  missingFlags,
  secrets,
  adopts,
  owner,
}: Step): string[] {
  return [
    ...(isUnseen ? ['! may exist already: you cannot see it'] : []),
    ...(isUnfinished ? [action === 'create' ? '! an earlier run was cut off: it is made again' : lostNote] : []),
    ...(isContinued ? ['an earlier run has kept its secret, and waited for approval: this goes on with it'] : []),
    ...(after ?? []).map(({ kind, name }) => `! after the removal of ${titled(kind, name)}, which makes room for it`),
    ...(restorable ? [restoreNote(restorable)] : []),
    ...(owner === undefined ? [] : [`! belongs to the configuration ${owner}${adopts ? ', whose mark goes' : ''}`]),
    ...(adopts && owner === undefined ? ['! was not made from a configuration: it gets the mark'] : []),
    ...(blocked === undefined ? [] : [`! ${blocked}`]),
    ...(missingFlags.length > 0 ? [`! you may not do this: ${flagsText(missingFlags)}`] : []),
    ...secrets.map((label) => `its secret (${label}) goes to --secrets-out or --secrets-to`),
  ];
}

/** A proof that is off and was never used may have been made so by the files, or by a run that was cut off. */
const lostNote =
  '! its secret may be lost, and is made again: it was never live, or an earlier run was cut off before it was kept';

function restoreNote({ command, until }: Restorable): string {
  return `! one of this name was deleted: \`${command}\` brings it back until ${until}; this makes another`;
}

function flagsText(missing: readonly string[]): string {
  const named = missing.slice(0, 5).join(', ');
  const rest = missing.length > 5 ? ` and ${missing.length - 5} more` : '';
  return missing.length === 1
    ? `the permission flag ${named} is missing`
    : `the permission flags ${named}${rest} are missing`;
}

function fieldLines(fields: JsonObject): string[] {
  return Object.entries(fields).flatMap(([field, value]) => {
    if (field === 'flags') return [`flags: ${grantedIn(value).join(', ') || 'none'}`];
    if (field === 'proofs') return proofsIn(fields).map((proof) => `proof: ${proofText(proof)}`);
    return [`${field}: ${valueText(field, value)}`];
  });
}

function differenceLines({ field, before, after, words }: Difference): string[] {
  if (words) return words.map((line) => `${field}: ${line}`);
  if (field !== 'flags') return [`${field}: ${changeText(field, before, after)}`];
  const [had, has] = [grantedIn(before), grantedIn(after)];
  const gained = has.filter((flag) => !had.includes(flag)).map((flag) => `+ ${flag}`);
  const lost = had.filter((flag) => !has.includes(flag)).map((flag) => `- ${flag}`);
  return [...gained, ...lost].map((line) => `flags: ${line}`);
}

function valueText(field: string, value: unknown): string {
  return cut(lineOf(field, value), 0);
}

/** Both values; of long ones the part where they begin to differ. */
function changeText(field: string, before: unknown, after: unknown): string {
  const lines = [before, after].map((value) => lineOf(field, value));
  // They differ in spaces or ends of lines.
  const isSame = lines[0] === lines[1];
  const [had = '', has = ''] = isSame ? [before, after].map((value) => JSON.stringify(value)) : lines;
  const isShort = Math.max(had.length, has.length) <= longestValue;
  const from = isShort ? 0 : Math.max(0, commonLength(had, has) - longestCommon);
  return `${cut(had, from)} → ${cut(has, from)}`;
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

function cut(line: string, from: number): string {
  const part = line.slice(from, from + longestValue).toWellFormed();
  return `${from > 0 ? '…' : ''}${part}${line.length > from + longestValue ? '…' : ''}`;
}

/** A value in one line; a text that reads like no value in quotes. */
function lineOf(field: string, value: unknown): string {
  if (value === undefined) return 'none';
  if (value === null) return field === 'expiresAt' ? 'never' : 'none';
  if (typeof value === 'number' && /At$/.test(field)) return `${value} (${timestamp(value)})`;
  if (typeof value !== 'string') return JSON.stringify(value);
  const line = value.trim().replace(/\s*\n\s*/g, ' ');
  return ['', 'none', 'never'].includes(line) ? JSON.stringify(value) : line;
}

/** Counts of a plan in a sentence. */
export function summary({ steps, kept, unchanged }: PlannedChanges): string {
  const count = (action: Step['action']): number => steps.filter((step) => step.action === action).length;
  const parts = [
    ...counted(count('create'), 'to make'),
    ...counted(count('update'), 'to change'),
    ...counted(count('remove'), 'to remove'),
  ];
  const same = unchanged === 1 ? '1 object is as the files say' : `${unchanged} objects are as the files say`;
  const stays = kept.length === 1 ? '; 1 is in no file, and stays' : `; ${kept.length} are in no file, and stay`;
  const rest = `${same}${kept.length === 0 ? '' : stays}`;
  return parts.length === 0 ? `nothing to do: ${rest}` : `${parts.join(', ')}; ${rest}`;
}

function counted(number: number, what: string): string[] {
  return number === 0 ? [] : [`${number} ${what}`];
}
