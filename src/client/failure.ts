// Errors of calls, as the product's one error class: the server's own message if it answered, else why it could not be
// reached.
import { type ErrorCode, type ErrorDetails, KmsError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';

/** Any other status: `internal`. */
export const codeOfStatus: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not-found',
  405: 'method-not-allowed',
  413: 'too-large',
  414: 'too-large',
  415: 'unsupported-media',
  422: 'asset-invalid',
  429: 'rate-limited',
  431: 'too-large',
  503: 'unavailable',
};

/** The error for an answer other than 200. `body` is the whole answer, `fields` its `errors`. */
export function errorOfAnswer(response: Response, answer: unknown, base: string): KmsError {
  const { status } = response;
  if (status === 0 || (status >= 300 && status < 400)) {
    return new KmsError(
      'unavailable',
      `${base} redirects to ${response.headers.get('location') ?? 'another address'}`,
      {
        hint: 'use the address that the appliance itself has',
      },
    );
  }
  if (!isJsonObject(answer)) {
    if (status >= 500) {
      return new KmsError('unavailable', `${base} answered with status ${status} and no message`, {
        hint: 'try again later; if that does not help, look at the log of what answers there',
      });
    }
    return notOurs(base);
  }
  const said = typeof answer.message === 'string' ? answer.message : otherMessage(answer, status);
  const message = said.length > longestMessage ? `${said.slice(0, longestMessage).toWellFormed()}…` : said;
  const sealed = status === 503 && /\bsealed\b/i.test(message);
  const lost = status === 503 && /\bactivity segment \S+\.kms\b/.test(message);
  const full = status === 403 && message.startsWith('the limit of ');
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const details: ErrorDetails = {
    body: answer,
    fields: isTexts(answer.errors) ? answer.errors : undefined,
    // A hint in the answer stays in `body`: something other than the appliance may have given it.
    hint: lost ? lostHint : undefined,
    retryAfter: Number.isFinite(seconds) ? seconds : undefined,
  };
  const code = sealed ? 'sealed' : lost ? 'corrupt' : full ? 'quota' : (codeOfStatus[status] ?? 'internal');
  return new KmsError(code, message, details);
}

/** Maximum characters of a message: no appliance sends longer ones. */
const longestMessage = 4000;
const lostHint = 'put the file back from a backup; `kms doctor` on its machine says more';
const isItOurs = 'is it the address of a kms appliance?';

/** The error for an answer that no appliance would give. */
export function notOurs(base: string, expected = 'JSON'): KmsError {
  return new KmsError('unavailable', `expected ${expected} from ${base}, got something else`, {
    hint: isItOurs,
  });
}

/** The error for a JSON answer that no appliance would give; `what` describes it. */
export function unexpected(what: string, cause?: unknown): KmsError {
  return new KmsError('unavailable', `the answer was not what was expected: ${what}`, {
    hint: isItOurs,
    cause,
  });
}

/** The error for a request whose answer took longer than `ms` milliseconds. */
export function timedOut(base: string, ms: number): KmsError {
  return new KmsError('unavailable', `${base} gave no answer within ${ms} ms`, {
    hint: 'try again later; see that it is the address of a kms appliance, and that the way there is fast enough',
  });
}

/** The error for a request without an answer. An `AbortError` from its caller's signal is passed on. */
export function errorOfFailure(cause: unknown, base: string, signal?: AbortSignal): unknown {
  if (cause instanceof KmsError || signal?.aborted) return cause;
  return new KmsError('unavailable', `cannot reach ${base}: ${reason(cause)}`, {
    hint: 'see that the address is right, and that an appliance is served there',
    cause,
  });
}

/** The innermost message or code: `fetch` hides it under "fetch failed". */
function reason(cause: unknown): string {
  let inner = cause;
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause instanceof Error; depth++) inner = inner.cause;
  if (!(inner instanceof Error)) return 'no answer';
  return inner.message || Object(inner).code || inner.name;
}

/** Message for answers that carry a state or an asset's verdict instead of one. */
function otherMessage(answer: Readonly<Record<string, unknown>>, status: number): string {
  if (answer.state === 'malformed-password') return 'the password does not meet the rules';
  if (typeof answer.state === 'string') return `the token is ${answer.state}`;
  if (isJsonObject(answer.asset) && typeof answer.asset.message === 'string') return answer.asset.message;
  return `refused with status ${status}`;
}

function isTexts(value: unknown): value is Record<string, string> {
  return isJsonObject(value) && Object.values(value).every((text) => typeof text === 'string');
}
