// Lines for people about the approvals that an export proves, in the words of the programs in docs/verify-activity.

export interface VerifiedApprovals {
  /** Acts done with approval, and how many of them were asked for before the export begins. */
  readonly acts: number;
  readonly unchecked: number;
  /** The first act of each request. */
  readonly done: readonly (Act & { readonly request: string; readonly words: readonly Word[] })[];
  readonly broken: readonly (Act & { readonly glass: string })[];
}

interface Act {
  readonly record: number;
  readonly action: string;
  readonly by: string;
}

interface Word {
  readonly by: string;
  readonly record: number;
  /** SHA-256 of the key that signed; without it only the appliance says so. */
  readonly passkey?: string;
}

/** Lines that say which acts had approval, whose word counted, and by which proof. */
export function approvalLines({ acts, unchecked, done, broken }: VerifiedApprovals): readonly string[] {
  return [
    ...(acts > 0 ? [`done with approval: ${acts}`] : []),
    ...done.flatMap((act) => [`${actLine(act)}, approved as ${act.request}`, ...act.words.map(wordLine)]),
    ...(unchecked > 0 ? [`${unchecked} of them were asked for before this export begins, and were not checked`] : []),
    ...broken.map((act) => `${actLine(act)}, WITHOUT APPROVAL, by broken glass ${act.glass}`),
  ];
}

function actLine({ record, action, by }: Act): string {
  return `record ${record}: ${action} by ${by}`;
}

function wordLine({ by, record, passkey }: Word): string {
  const proof = passkey === undefined ? 'the word of the appliance only' : `signed by the passkey ${passkey}`;
  return `  by ${by} in record ${record}: ${proof}`;
}
