// The one error class of the product, its closed table of codes, and wording for errors of the operating system. It
// knows no HTTP status and no exit code: `http` and `cli` each map codes to theirs in one file.
import { networkWords, systemWords, unnamed, type Words } from './system-words.ts';

/** Every code that an error of the product can have. */
export type ErrorCode =
  /** Input that breaks a rule; nothing was done. */
  | 'invalid'
  /** Input that collides with something that exists (a taken name, a ring in use). */
  | 'conflict'
  /** No usable credential. */
  | 'unauthenticated'
  /** A permission flag is missing. */
  | 'forbidden'
  /** A limit of the tenant is reached. */
  | 'quota'
  /** No such thing, or none that the caller may know of. */
  | 'not-found'
  /** The path exists, the method does not. */
  | 'method-not-allowed'
  /** The body is over the limit. */
  | 'too-large'
  /** The body has a content type or encoding that is not supported. */
  | 'unsupported-media'
  /** An asset does not verify. */
  | 'asset-invalid'
  /** Too many failed tries; wait. */
  | 'rate-limited'
  /** The master key is not available. */
  | 'sealed'
  /** The peer is unreachable, or the service cannot serve right now. */
  | 'unavailable'
  /** Another process holds the data directory, the port or the file. */
  | 'in-use'
  /** Stored bytes do not verify. */
  | 'corrupt'
  /** An action that would lose or expose something. */
  | 'refused'
  /** A command line that makes no sense. */
  | 'usage'
  /** A defect of the product. */
  | 'internal';

export interface ErrorDetails {
  /** One sentence that tells a person how to fix it. */
  readonly hint?: string | undefined;
  /** Problems of the input by field name. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
  /**
   * Wire body to use instead of `{message}`: the body received, or the one to send where an interface has its own
   * shape.
   */
  readonly body?: object | undefined;
  /** Seconds to wait before the next try. */
  readonly retryAfter?: number | undefined;
  /** Whether a wrong credential or proof caused it; the request's record then says that it was denied. */
  readonly denies?: boolean;
  /** Underlying error; goes to the log, never to a client. */
  readonly cause?: unknown;
  /** Reason for the log, for refusals that would otherwise be logged with their status only. */
  readonly logReason?: string | undefined;
}

/**
 * An error meant to be read by people or programs: a stable code and one lower-case sentence without a secret in it.
 */
export class KmsError extends Error {
  static {
    // On the prototype, so that stack traces begin with it, in a minified bundle too.
    Object.defineProperty(KmsError.prototype, 'name', { value: 'KmsError', configurable: true, writable: true });
  }

  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly fields: Readonly<Record<string, string>> | undefined;
  readonly body: object | undefined;
  readonly retryAfter: number | undefined;
  readonly denies: boolean;
  readonly logReason: string | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.hint = details.hint;
    this.fields = details.fields;
    this.body = details.body;
    this.retryAfter = details.retryAfter;
    this.denies = details.denies ?? false;
    this.logReason = details.logReason;
  }
}

/** A problem with one field of the input. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

/** An error for one or more fields: the message names each, and `fields` holds the same messages by field name. */
export function fieldsError(code: 'invalid' | 'conflict', problems: readonly FieldProblem[]): KmsError {
  return new KmsError(code, problems.map(({ field, message }) => `${field}: ${message}`).join('; '), {
    fields: Object.fromEntries(problems.map(({ field, message }) => [field, message])),
  });
}

/** An `invalid` error about one field. */
export function invalidField(field: string, message: string): KmsError {
  return fieldsError('invalid', [{ field, message }]);
}

/** The operating system's error code, such as `ENOENT`; undefined for any other error. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  const [, number = ''] = /^Unknown system error (-\d+)$/.exec(error.code) ?? [];
  return unnamed[number] ?? error.code;
}

/** System calls that concern a connection, an address or a host name. */
const networkCalls: ReadonlySet<unknown> = new Set([
  ...['connect', 'bind', 'listen', 'accept', 'shutdown', 'send', 'recv'],
  ...['getaddrinfo', 'getnameinfo'],
]);

/**
 * Why the operating system refused a call, and how to fix it; undefined if the error did not come from it or has an
 * unknown code.
 */
export function systemRefusal(error: unknown): Words | undefined {
  // A connection to a name with several addresses fails with one error for each; the first stands for all.
  const first: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const code = systemCode(first);
  if (code === undefined || first instanceof KmsError) return undefined;
  const isNetwork = first instanceof Error && 'syscall' in first && networkCalls.has(first.syscall);
  return isNetwork ? (networkWords[code] ?? systemWords[code]) : (systemWords[code] ?? networkWords[code]);
}

/**
 * Reason of a failure in words: from the table if the operating system refused the call, else the error's own message.
 */
export function reasonOf(error: unknown): string {
  return systemRefusal(error)?.[0] ?? (error instanceof Error ? error.message : String(error));
}

/** A `refused` error about `name` if the operating system refused the call; any other error comes back unchanged. */
export function systemError(error: unknown, name: string): unknown {
  const refusal = systemRefusal(error);
  if (!refusal) return error;
  const [reason, hint] = refusal;
  return new KmsError('refused', `${name}: ${reason}`, { hint, cause: error });
}
