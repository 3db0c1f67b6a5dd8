// The codec of Vault's clients: translates their request bodies into ours, and our responses and refusals into theirs.
import { type ExactJson, inexactNumber, type Kept, parseExactly } from '../../api/exact-json.ts';
import { sealedError } from '../../http/admission.ts';
import { publicBodyLimit, tooLarge } from '../../http/body.ts';
import type { Codec } from '../../http/codec.ts';
import type { ApiRequest } from '../../http/request.ts';
import { type Outcome, refused } from '../../http/respond.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { bodyOf, invalid, isSealed, nothing, permissionDenied, problem, type VaultResponse } from './answers.ts';
import type { Operation } from './operation.ts';

/** @param nextId ids of the response envelopes. */
export function codecOf({ body, item, kept, answer }: Operation, nextId: () => string): Codec {
  return {
    ...(body && {
      decode(bytes) {
        const came = objectOf(bytes, kept);
        return { value: body(came), came };
      },
    }),
    ...(item && { item }),
    encode(ours, came) {
      const told = warned(answer(ours, came), ours);
      const sent = bodyOf(told, nextId);
      return { status: told.status, text: sent && JSON.stringify(sent) };
    },
  };
}

/** The response with what our answer says not to trust blindly. */
function warned(told: VaultResponse, { warning, items }: JsonObject): VaultResponse {
  const all = Array.isArray(items) ? items.map((item) => (isJsonObject(item) ? item.warning : undefined)) : [warning];
  const texts = [...new Set(all)].filter((each) => typeof each === 'string');
  return texts.length === 0 ? told : { ...told, warnings: [...(told.warnings ?? []), ...texts] };
}

export function outcomeOf(told: VaultResponse, nextId: () => string): Outcome {
  const { status, headers } = told;
  const body = bodyOf(told, nextId);
  return { status, body: body ?? {}, ...(!body && { content: null }), ...(headers && { headers }) };
}

/** Vault keeps no key that was deleted, even while it can be restored here. */
const isGone = /^the key is (?:pending deletion|destroyed)\b/;

/** Translates a refusal of our endpoints into Vault's terms. */
export function refusalOf({ status, headers, body }: Outcome, missing: Operation['missing']): VaultResponse {
  const message: unknown = Reflect.get(body, 'message');
  const text = typeof message === 'string' ? message : 'the request was refused';
  if (status === 401) return permissionDenied;
  if (status === 403 && text.startsWith('the permission flag')) return permissionDenied;
  if (status === 404 && text.startsWith('the key has no version')) {
    return problem(400, 'version does not exist or cannot be found');
  }
  if (status === 404 || isGone.test(text)) {
    return typeof missing === 'string' ? problem(400, missing) : (missing ?? nothing);
  }
  if (status === 503 && text === sealedError.message) return isSealed;
  return { ...problem(status, text), headers };
}

/** The response, or the refusal if making it throws. */
export function toldBy(make: () => VaultResponse): VaultResponse {
  try {
    return make();
  } catch (error) {
    return refusalOf(refused(error), undefined);
  }
}

/** The bytes of a body that none of our endpoints reads; undefined if it is too large. */
export function readBytes({ body }: ApiRequest): Promise<Uint8Array | undefined> {
  return body.read(publicBodyLimit, undefined);
}

const noneKept: Kept = new Map();
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The body as an object; empty if there was none. Throws `invalid` if it is not an object, or for a number in `kept`
 * that would change, and `too-large`.
 */
export function objectOf(bytes: Uint8Array | undefined, kept: Kept = noneKept): JsonObject {
  if (!bytes) throw tooLarge(publicBodyLimit);
  if (bytes.length === 0) return {};
  const { value, inexact } = parsedIn(bytes, kept);
  // `bao write -f` and `vault write -f` send null.
  if (value === null) return {};
  if (!isJsonObject(value)) throw invalid('failed to decode JSON input');
  const [field] = inexact;
  if (field !== undefined) throw invalid(`${field}: ${inexactNumber}`);
  return value;
}

function parsedIn(bytes: Uint8Array, kept: Kept): ExactJson {
  try {
    return parseExactly(utf8.decode(bytes), kept);
  } catch {
    throw invalid('failed to decode JSON input');
  }
}
