// Wording of proofs of API keys: their kinds, what each trusts, and the checks of a signed token. A kind that is not
// known here is shown by its own name.
import type { Proof } from '../../api/proofs.ts';

const kinds: ReadonlyMap<string, string> = new Map([
  ['secret', 'Secret'],
  ['aws', 'AWS access key'],
  ['jwt', 'Signed tokens'],
  ['certificate', 'Client certificate'],
]);

export function kindText(kind: string): string {
  return kinds.get(kind) ?? kind;
}

/** The name that people gave it, else its kind. */
export function proofTitle({ name, kind }: Pick<Proof, 'name' | 'kind'>): string {
  return name === '' ? kindText(kind) : name;
}

/** The programs that it lets in, in one line; empty if that is not known. */
export function trustText(proof: Proof): string {
  const { kind, accessKeyId, fingerprint, issuer, subject, claims = {}, audience = [] } = proof;
  if (kind === 'secret') return 'whoever has the secret';
  if (accessKeyId !== undefined) return accessKeyId;
  if (fingerprint !== undefined) return certificateText(fingerprint, proof);
  const claimed = Object.entries(claims).map(([name, value]) => `${name}=${[value].flat().join('|')}`);
  const who = [...(subject === undefined ? [] : [subject]), ...claimed].join(', ');
  // A SPIFFE ID begins with its trust domain.
  const isTold = issuer === undefined || subject?.startsWith(`${issuer}/`) === true;
  const from = isTold ? '' : `from ${issuer.replace(/^https:\/\//, '')}`;
  const to = audience.length === 0 ? '' : `for ${audience.join(' or ')}`;
  return [who, from, to].filter((part) => part !== '').join(' ');
}

function certificateText(fingerprint: string, { san, authority, issued, notAfter }: Proof): string {
  const key = `SHA-256 ${fingerprint.slice(0, 16)}…`;
  const who = san === undefined ? `public key ${key}` : `${san}, of ${authority ?? `the authority ${key}`}`;
  // The key is what is pinned: a later certificate of it counts, too.
  const end = san === undefined && !issued ? 'certificate until' : 'until';
  return notAfter === undefined ? who : `${who}, ${end} ${notAfter.slice(0, 10)}`;
}

const checks: ReadonlyMap<string, string> = new Map([
  ['role', 'API key that it names'],
  ['form', 'form'],
  ['keys', 'issuer’s keys'],
  ['signature', 'signature'],
  ['issuer', 'issuer'],
  ['audience', 'audience'],
  ['time', 'time of validity'],
  ['subject', 'subject'],
  ['claims', 'claims'],
  ['api-key', 'API key'],
  ['once', 'single use'],
  ['certificate', 'client certificate'],
  ['authority', 'authority'],
  ['name', 'name'],
]);

/** The part of a token that a check is about, as in “the check of its audience”. */
export function checkText(check: string): string {
  return checks.get(check) ?? check;
}
