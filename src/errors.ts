// The one error class of the product and its closed table of codes, and errors of the operating system in words. It
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
  /** The body is written in a way that is not read here. */
  | 'unsupported-media'
  /** An asset does not verify. */
  | 'asset-invalid'
  /** Too many failed tries; wait. */
  | 'rate-limited'
  /** The master key is not available. */
  | 'sealed'
  /** Nothing reachable, or not able to serve right now. */
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
  /** What to do about it, one sentence for a person. */
  readonly hint?: string | undefined;
  /** What is wrong with each field of the input, by the field's name. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
  /** The whole wire body: what was answered, or is to be where an interface wants another shape than `{message}`. */
  readonly body?: object | undefined;
  /** Seconds to wait before the next try. */
  readonly retryAfter?: number | undefined;
  /** Whether it denies: what was to prove who asks was wrong, and the request's record says so. */
  readonly denies?: boolean;
  /** What caused it; goes to the log, never to a client. */
  readonly cause?: unknown;
  /** Why, for the log: a refusal that is asked about, of which the log otherwise says no more than the status. */
  readonly logReason?: string | undefined;
}

/**
 * An error that people or programs are meant to read: a stable code and one lower-case sentence without a secret in it.
 */
export class KmsError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly fields: Readonly<Record<string, string>> | undefined;
  readonly body: object | undefined;
  readonly retryAfter: number | undefined;
  readonly denies: boolean;
  readonly logReason: string | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'KmsError';
    this.code = code;
    this.hint = details.hint;
    this.fields = details.fields;
    this.body = details.body;
    this.retryAfter = details.retryAfter;
    this.denies = details.denies ?? false;
    this.logReason = details.logReason;
  }
}

/** What is wrong with one field of the input. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

/** The message names every field, `fields` has the same by name. */
export function fieldsError(code: 'invalid' | 'conflict', problems: readonly FieldProblem[]): KmsError {
  return new KmsError(code, problems.map(({ field, message }) => `${field}: ${message}`).join('; '), {
    fields: Object.fromEntries(problems.map(({ field, message }) => [field, message])),
  });
}

/** Input that breaks a rule of one field. */
export function invalidField(field: string, message: string): KmsError {
  return fieldsError('invalid', [{ field, message }]);
}

/** The error code of the system, such as `ENOENT`; undefined for anything else. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  const [, number = ''] = /^Unknown system error (-\d+)$/.exec(error.code) ?? [];
  return unnamed[number] ?? error.code;
}

/** Calls that are about a connection, an address or a name. */
const networkCalls: ReadonlySet<unknown> = new Set([
  ...['connect', 'bind', 'listen', 'accept', 'shutdown', 'send', 'recv'],
  ...['getaddrinfo', 'getnameinfo'],
]);

/** Why the system refused something, and what to do about it; undefined where it did not, or was asked for nonsense. */
export function systemRefusal(error: unknown): Words | undefined {
  // A name with several addresses fails as all of them do.
  const first: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const code = systemCode(first);
  if (code === undefined || first instanceof KmsError) return undefined;
  const isNetwork = first instanceof Error && 'syscall' in first && networkCalls.has(first.syscall);
  return isNetwork ? (networkWords[code] ?? systemWords[code]) : (systemWords[code] ?? networkWords[code]);
}

/** Why something failed, in words: those of the system's code where there is one, else what the error says. */
export function reasonOf(error: unknown): string {
  return systemRefusal(error)?.[0] ?? (error instanceof Error ? error.message : String(error));
}

/**
 * `error` as a `refused` about `name`; what is a KmsError already, or no refusal of the system, comes back as it is.
 */
export function systemError(error: unknown, name: string): unknown {
  const refusal = systemRefusal(error);
  if (!refusal) return error;
  const [reason, hint] = refusal;
  return new KmsError('refused', `${name}: ${reason}`, { hint, cause: error });
}
