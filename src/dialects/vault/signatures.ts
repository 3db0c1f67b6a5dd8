// Signatures and MACs in the transit engine's terms: sign, verify and hmac, one message or a batch.
import type { KeyResult } from '../../api/key-operations.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { signingHashes } from '../../model/key-types.ts';
import { found, invalid } from './answers.ts';
import { batchOf, booleanOf, countOf, referenceOf, textOf } from './fields.ts';
import type { Operation } from './operation.ts';

export function noHash(name: string): string {
  return `invalid hash algorithm "${name.slice(0, 100)}"`;
}

/** The hash may be in the path or in either of two fields. */
function hashOf(given: JsonObject, inPath: string | undefined): (typeof signingHashes)[number] {
  const name = inPath ?? (textOf(given, 'hash_algorithm') || textOf(given, 'algorithm') || 'sha2-256');
  const known = signingHashes.find((each) => each === name);
  if (known) return known;
  throw invalid(noHash(name));
}

type Marshaling = 'asn1' | 'jws';

function marshalingOf(given: JsonObject): Marshaling {
  const name = textOf(given, 'marshaling_algorithm') || 'asn1';
  if (name === 'asn1' || name === 'jws') return name;
  throw invalid(`invalid marshaling type "${name.slice(0, 100)}"`);
}

/** How to sign. Clients send all of it for any type of key. */
function schemeOf(given: JsonObject, inPath: string | undefined, work: 'sign' | 'verify'): object {
  const padding = textOf(given, 'signature_algorithm') || 'pss';
  if (padding !== 'pss' && padding !== 'pkcs1v15') {
    throw invalid(`unsupported rsa signature algorithm ${padding.slice(0, 100)}`);
  }
  return {
    hash: hashOf(given, inPath),
    prehashed: booleanOf(given, 'prehashed') ?? false,
    padding,
    saltLength: saltLengthOf(given) ?? (work === 'sign' ? 'longest' : 'any'),
    encoding: marshalingOf(given) === 'jws' ? 'raw' : 'der',
  };
}

/** Undefined for `auto`: as long as possible to sign, any to verify. In Go `auto` is 0 as a number, and `hash` -1. */
function saltLengthOf(given: JsonObject): number | 'hash' | undefined {
  const { salt_length: value } = given;
  if (value === undefined || value === null || value === '') return undefined;
  const text = typeof value === 'number' ? String(value) : (textOf(given, 'salt_length') ?? '').toLowerCase();
  if (text === 'auto' || text === '0') return undefined;
  if (text === 'hash' || text === '-1') return 'hash';
  if (!/^-?[0-9]{1,9}$/.test(text)) {
    throw invalid(`salt length neither 'auto', 'hash', nor an int: ${text.slice(0, 100)}`);
  }
  if (Number(text) < 0) throw invalid(`salt length is invalid: ${text}`);
  return Number(text);
}

/** One of the messages of a request, which is bound to nothing else. */
function messageOf(given: unknown): { readonly given: JsonObject; readonly input: string | undefined } {
  if (!isJsonObject(given)) throw invalid('error parsing batch input: expected objects');
  for (const name of ['context', 'associated_data']) {
    if (textOf(given, name)) throw invalid(`${name} is not supported for signatures: it would not be bound to one`);
  }
  return { given, input: textOf(given, 'input') };
}

/** The input of a request that is not a batch. */
function inputOf(given: JsonObject, missing: string): { readonly input: string } {
  const { input } = messageOf(given);
  if (input === undefined) throw invalid(missing);
  return { input };
}

export function sign(key: string, hash: string | undefined): Operation {
  return {
    id: 'signWithKey',
    params: { key },
    missing: 'signing key not found',
    body(given) {
      const keyVersion = countOf(given, 'key_version', 'requested version for signing is negative') ?? 0;
      const scheme = schemeOf(given, hash, 'sign');
      const batch = batchOf(given);
      if (batch) return { items: batch.map((item) => ({ input: messageOf(item).input })), keyVersion, ...scheme };
      return { ...inputOf(given, 'missing input'), keyVersion, ...scheme };
    },
    answer({ items, signature, keyVersion }, given) {
      const marshaling = marshalingOf(given);
      const told = (made: KeyResult) => ({
        signature: toJws(made.signature, marshaling),
        key_version: made.keyVersion,
      });
      return (
        batchAnswer(given, items, (made) =>
          made.error === undefined ? told(made) : { error: made.error, key_version: 0 },
        ) ?? found({ signature: toJws(signature, marshaling), key_version: keyVersion })
      );
    },
  };
}

export function verify(key: string, hash: string | undefined): Operation {
  return {
    id: 'verifyWithKey',
    params: { key },
    missing: 'signature verification key not found',
    body(given) {
      const batch = batchOf(given);
      if (batch) needOneKind(batch);
      const scheme = schemeOf(given, hash, 'verify');
      const marshaling = marshalingOf(given);
      if (batch) return { items: batch.map((item) => toVerify(item, marshaling)), ...scheme };
      if (!isGiven(given, 'signature') && !isGiven(given, 'hmac')) {
        throw invalid("neither a 'signature' nor an 'hmac' were given to verify");
      }
      const { input } = inputOf(given, 'missing input');
      return { ...toVerify(given, marshaling), input, ...scheme };
    },
    answer: ({ items, valid }, given) =>
      batchAnswer(given, items, ({ valid: fits = false, error }) =>
        error === undefined ? { valid: fits } : { valid: false, error },
      ) ?? found({ valid }),
  };
}

function isGiven(given: unknown, name: string): boolean {
  const value: unknown = isJsonObject(given) ? given[name] : undefined;
  return value !== undefined && value !== null;
}

/** Signatures and MACs cannot be mixed in a batch. */
function needOneKind(batch: readonly unknown[]): void {
  if (batch.length === 0) return;
  const signed = batch.filter((item) => isGiven(item, 'signature')).length;
  const macs = batch.filter((item) => !isGiven(item, 'signature') && isGiven(item, 'hmac')).length;
  if (signed > 0 && macs > 0) {
    throw invalid("elements of batch_input must all provide 'signature' or all provide 'hmac'");
  }
  if (signed + macs === batch.length) return;
  if (signed + macs === 0) throw invalid("no batch_input elements have 'signature' or 'hmac'");
  throw invalid(`some elements of batch_input are missing '${signed > 0 ? 'signature' : 'hmac'}'`);
}

/** An item as our endpoint takes it; a signature counts if both are given. An empty text is one without a prefix. */
function toVerify(item: unknown, marshaling: Marshaling): object {
  const { given, input } = messageOf(item);
  if (isGiven(given, 'signature')) {
    return { input, signature: fromJws(textOf(given, 'signature') || ' ', marshaling) };
  }
  return { input, mac: textOf(given, 'hmac') || ' ' };
}

export function hmac(key: string, hash: string | undefined): Operation {
  const missing = 'missing input for HMAC';
  return {
    id: 'macWithKey',
    params: { key },
    missing: 'encryption key not found',
    body(given) {
      const keyVersion = countOf(given, 'key_version', 'requested version for HMAC is negative') ?? 0;
      const rest = { keyVersion, hash: hashOf(given, hash) };
      const batch = batchOf(given);
      if (batch) return { items: batch.map((item) => ({ input: messageOf(item).input })), ...rest };
      return { ...inputOf(given, missing), ...rest };
    },
    answer: ({ items, mac }, given) =>
      batchAnswer(given, items, ({ mac: made, error }) => (error === undefined ? { hmac: made } : { error })) ??
      found({ hmac: mac }),
  };
}

/** The results of a batch, whose status is 200 whatever they are; undefined if the request is not one. */
function batchAnswer(given: JsonObject, items: unknown, told: (result: KeyResult) => object) {
  const batch = batchOf(given);
  if (!batch) return undefined;
  // Cast: the endpoint's answer to `items`.
  const results = items as readonly KeyResult[];
  return found({
    batch_results: results.map((result, n) => ({ ...told(result), reference: referenceOf(batch[n]) })),
  });
}

/** JWS has base64 for URLs without padding (RFC 7515 §2). */
function toJws(signature: unknown, marshaling: Marshaling): unknown {
  if (marshaling === 'asn1' || typeof signature !== 'string') return signature;
  return signature.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** The text as our endpoint takes it; what is not base64 for URLs becomes what is not base64. */
function fromJws(signature: string, marshaling: Marshaling): string {
  if (marshaling === 'asn1') return signature;
  const start = signature.lastIndexOf(':') + 1;
  const text = signature.slice(start).replace(/[+/=]/g, '#').replaceAll('-', '+').replaceAll('_', '/');
  return signature.slice(0, start) + text.padEnd(Math.ceil(text.length / 4) * 4, '=');
}
