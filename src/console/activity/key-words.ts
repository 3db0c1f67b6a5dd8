// Wording of what was done to a managed key, where its record says more than the action: which state it got, how it
// came in or went out, through which interface, and with which version.
import { dialectText } from '../keyrings/managed-key-words.ts';
import { isAboutKey } from './key-actions.ts';
import type { ActivityRecord } from './records.ts';

interface KeyWords {
  readonly past: string;
  readonly base: string;
  /** Object for records that name none. */
  readonly things: string;
  /** Ends the sentence. */
  readonly after?: string;
}

const things = 'managed keys';

const states: ReadonlyMap<unknown, KeyWords> = new Map([
  ['active', { past: 'activated', base: 'activate', things }],
  ['suspended', { past: 'suspended', base: 'suspend', things }],
  ['deactivated', { past: 'deactivated', base: 'deactivate', things }],
  ['compromised', { past: 'marked', base: 'mark', things, after: 'as compromised' }],
]);

const transfers: ReadonlyMap<unknown, string> = new Map([
  ['wrapped', 'wrapped'],
  ['plaintext', 'in clear'],
  ['public', 'as a public key'],
]);

/** Wording where the key was in the state already. */
const unchanged: KeyWords = {
  past: 'left the state of',
  base: 'leave the state of',
  things,
  after: 'as it was',
};

/** Whether a change of state was allowed and done, but there was nothing to change. */
function changedNothing({ props, validAction, status }: ActivityRecord): boolean {
  return validAction && status < 400 && props.state === undefined && props.changed === undefined;
}

/** The wording of a record about a managed key; undefined if its action says everything. */
export function keyWordsOf(record: ActivityRecord): KeyWords | undefined {
  const { action, props, reporter } = record;
  if (reporter !== undefined) return undefined;
  const version = typeof props.keyVersion === 'number' ? `version ${props.keyVersion} of` : undefined;
  if (action === 'key.state') {
    const words = changedNothing(record) ? unchanged : states.get(props.state);
    if (!words || version === undefined) return words;
    return { ...words, past: `${words.past} ${version}`, base: `${words.base} ${version}` };
  }
  const after = transfers.get(props.transfer);
  if (after === undefined) return undefined;
  if (action === 'key.import') return { past: 'imported', base: 'import', things, after };
  if (action !== 'key.export') return undefined;
  return { past: ['exported', version].join(' ').trim(), base: ['export', version].join(' ').trim(), things, after };
}

/** Details of a record about a managed key that its sentence leaves out. */
export function keyDetailsOf({ action, props, reporter }: ActivityRecord): string[] {
  if (reporter !== undefined || !isAboutKey(action)) return [];
  const { dialect, keyVersion, fromKeyVersion } = props;
  const isSaid = action === 'key.state' || action === 'key.export';
  const version = typeof keyVersion === 'number' && !isSaid ? `version ${keyVersion}` : undefined;
  const from = typeof fromKeyVersion === 'number' && version !== undefined ? ` from version ${fromKeyVersion}` : '';
  return [
    ...(version === undefined ? [] : [`${version}${from}`]),
    ...(typeof dialect === 'string' ? [`through ${dialectText(dialect)}`] : []),
  ];
}
