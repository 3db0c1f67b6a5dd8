// A passkey's assertion as an activity record keeps it, and its check with nothing else at hand: that the key in it
// signed this challenge (W3C Web Authentication, level 3, §7.2). It is stricter than a login, so that programs of
// others come to the same verdict; docs/activity-export.md has the rules. Public keys are in COSE form (RFC 9053).
import { concatBytes, equalBytes, fromBase64Url, fromUtf8, utf8 } from './bytes.ts';
import { der, derUnsigned, tags } from './der.ts';
import { ed25519Verify } from './ed25519.ts';
import { sha256 } from './hash.ts';
import { ecdsaVerify, readPoint } from './managed/ecdsa.ts';
import { rsaVerify } from './managed/rsa.ts';
import { readRsaPublicKey } from './managed/rsa-keys.ts';

/** Everything but `rpId` and `origin` in base64url. */
export interface KeptAssertion {
  readonly credentialId: string;
  /** COSE_Key (RFC 9052 §7). */
  readonly publicKey: string;
  readonly rpId: string;
  readonly origin: string;
  readonly clientDataJSON: string;
  readonly authenticatorData: string;
  readonly signature: string;
}

/** User present and user verified (§6.1). */
const neededFlags = 0x05;
/** Bytes of the hash of the RP's id, the flags and the counter (§6.1). */
const leastAuthenticatorData = 37;

/** Whether the key of the assertion signed this challenge, base64url, for its RP, its user present and verified. */
export function isSignedChallenge(assertion: KeptAssertion, challenge: string): boolean {
  const { rpId, origin } = assertion;
  const clientData = fromBase64Url(assertion.clientDataJSON);
  const authenticatorData = fromBase64Url(assertion.authenticatorData);
  const signature = fromBase64Url(assertion.signature);
  const key = fromBase64Url(assertion.publicKey);
  if (!clientData || !authenticatorData || !signature || !key || !isOriginOf(rpId, origin)) return false;
  const said = fieldsIn(clientData);
  if (said.type !== 'webauthn.get' || said.challenge !== challenge || said.origin !== origin) return false;
  if (authenticatorData.length < leastAuthenticatorData) return false;
  if (!equalBytes(authenticatorData.subarray(0, 32), sha256(utf8(rpId)))) return false;
  if (((authenticatorData[32] ?? 0) & neededFlags) !== neededFlags) return false;
  return isSignedBy(key, concatBytes(authenticatorData, sha256(clientData)), signature);
}

/** An RP is a host; the page is at it or at one below it (§5.1.3). */
function isOriginOf(rpId: string, origin: string): boolean {
  const [, host] = /^https?:\/\/([a-z0-9.-]{1,253})(?::[0-9]{1,5})?$/.exec(origin) ?? [];
  return host !== undefined && rpId !== '' && (host === rpId || host.endsWith(`.${rpId}`));
}

/** Maximum of brackets in client data: deeper texts are read differently by other parsers. */
const mostBrackets = 500;

/** The fields of an object in JSON; none of anything else. */
function fieldsIn(clientData: Uint8Array): { readonly type?: unknown; challenge?: unknown; origin?: unknown } {
  const text = fromUtf8(clientData) ?? '';
  if ((text.match(/[[{]/g) ?? []).length > mostBrackets) return {};
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Labels of a COSE_Key: kty and alg (RFC 9052 §7.1); crv, x, y or n, e (RFC 9053 §7.1 and §7.2, RFC 8230 §4). */
const labels = { kty: 1, alg: 3, first: -1, second: -2, third: -3 } as const;

function isSignedBy(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const fields = readCoseKey(publicKey);
  if (!fields) return false;
  const at = (label: number): number | Uint8Array | undefined => fields.get(label);
  const kind = `${at(labels.kty)} ${at(labels.alg)}`;
  const [first, second, third] = [at(labels.first), at(labels.second), at(labels.third)];
  try {
    if (kind === '2 -7' && first === 1) return isByEs256(second, third, message, signature);
    if (kind === '1 -8' && first === 6) {
      return second instanceof Uint8Array && ed25519Verify(second, message, signature);
    }
    return kind === '3 -257' && isByRs256(first, second, message, signature);
  } catch {
    // A key that nothing accepts signs nothing.
    return false;
  }
}

type CoseField = number | Uint8Array | undefined;

function isByEs256(x: CoseField, y: CoseField, message: Uint8Array, signature: Uint8Array): boolean {
  if (!(x instanceof Uint8Array && y instanceof Uint8Array) || x.length !== 32 || y.length !== 32) return false;
  const key = readPoint('ecdsa-p256', concatBytes(Uint8Array.of(4), x, y));
  return ecdsaVerify('ecdsa-p256', key, { bytes: message, isDigest: false }, 'sha2-256', signature);
}

const rsaTypes = { 256: 'rsa-2048', 384: 'rsa-3072', 512: 'rsa-4096' } as const;

function isByRs256(n: CoseField, e: CoseField, message: Uint8Array, signature: Uint8Array): boolean {
  if (!(n instanceof Uint8Array && e instanceof Uint8Array)) return false;
  const type = new Map(Object.entries(rsaTypes)).get(String(n.length));
  if (type === undefined) return false;
  const key = readRsaPublicKey(type, der(tags.sequence, derUnsigned(n), derUnsigned(e)));
  const scheme = { padding: 'pkcs1v15', hash: 'sha2-256' } as const;
  return rsaVerify(type, key, { bytes: message, isDigest: false }, scheme, signature);
}

/**
 * A COSE_Key of integers and byte strings, each label once, in CBOR of definite lengths (RFC 8949); undefined for
 * anything else.
 */
function readCoseKey(bytes: Uint8Array): ReadonlyMap<number, number | Uint8Array> | undefined {
  let at = 0;
  /** Major type and argument of the next item. */
  function head(): readonly [major: number, argument: number] | undefined {
    const first = bytes[at++];
    if (first === undefined) return undefined;
    const short = first & 31;
    if (short < 24) return [first >> 5, short];
    const length = short === 24 ? 1 : short === 25 ? 2 : 0;
    if (length === 0 || at + length > bytes.length) return undefined;
    let argument = 0;
    for (let n = 0; n < length; n++) argument = argument * 256 + (bytes[at++] ?? 0);
    return [first >> 5, argument];
  }
  function item(): number | Uint8Array | undefined {
    const [major, argument = 0] = head() ?? [];
    if (major === 0) return argument;
    if (major === 1) return -1 - argument;
    if (major !== 2 || at + argument > bytes.length) return undefined;
    at += argument;
    return bytes.subarray(at - argument, at);
  }
  const [major, count = 0] = head() ?? [];
  const fields = new Map<number, number | Uint8Array>();
  for (let n = 0; n < count; n++) {
    const [label, value] = [item(), item()];
    if (typeof label !== 'number' || value === undefined || fields.has(label)) return undefined;
    fields.set(label, value);
  }
  return major === 5 && at === bytes.length ? fields : undefined;
}
