// Wording of records about proofs of API keys: what was done to one, which program acted by one, and which check
// refused a token.
import { proofChangeText, provedIn } from '../../model/activity-details.ts';
import { checkText } from '../apikeys/proof-words.ts';
import { shortId } from '../text.ts';
import { type ActivityRecord, deedOfRecord } from './records.ts';

interface ProofWords {
  readonly past: string;
  readonly base: string;
  readonly things: string;
}

const prepositions: ReadonlyMap<string, string> = new Map([
  ['add', 'to'],
  ['remove', 'from'],
]);

/** The wording of a change of a proof; undefined for other records. */
export function proofWordsOf(record: ActivityRecord): ProofWords | undefined {
  const { proofChange, objects = [] } = deedOfRecord(record);
  if (proofChange === undefined) return undefined;
  const preposition = prepositions.get(proofChange) ?? 'of';
  const kind = objects.find(({ type }) => type === 'proof')?.name;
  const proof = kind === 'secret' ? 'a secret' : `a proof${kind === undefined ? '' : ` (${kind})`}`;
  return {
    past: `${proofChangeText(proofChange)} ${proof} ${preposition}`,
    base: `${proofChange} ${proof} ${preposition}`,
    things: 'an API key',
  };
}

/** Whether a program logged in as an API key with a proof of it, or tried to. */
export function isProgramLogin({ action, keyid, props, reporter }: ActivityRecord): boolean {
  if (reporter !== undefined || action !== 'session.create' || !keyid.startsWith('apik_')) return false;
  const { proof, refusedBy } = provedIn(props);
  return proof !== undefined || refusedBy !== undefined;
}

/** By which proof the caller acted, and which check refused it: details that the sentence leaves out. */
export function proofDetailsOf(record: ActivityRecord): string[] {
  if (record.reporter !== undefined) return [];
  const { proof, subject, refusedBy, olderProof, olderProofOf } = provedIn(record.props);
  const by = subject ?? (proof === undefined ? undefined : `the proof ${shortId(proof)}`);
  return [
    ...(by === undefined || isProgramLogin(record) ? [] : [`proved by ${by}`]),
    ...(refusedBy === undefined ? [] : [refusalOf(refusedBy)]),
    ...(olderProof === undefined ? [] : [`it is the older proof ${olderProof} of the API key ${olderProofOf}`]),
  ];
}

export function refusalOf(check: string): string {
  return `the login was refused by the check of its ${checkText(check)}`;
}
