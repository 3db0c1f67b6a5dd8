// How a command ends: which error ends in which exit code and what is said of it, and the codes of signals, where it
// was asked to end before it was done.
import { type ErrorCode, KmsError } from '../errors.ts';
import type { Io } from './io.ts';
import { visible } from './text.ts';

/** This file and nothing else knows which error ends in which. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  sealed: 4,
} as const;

export function exitCodeOf(error: KmsError): number {
  switch (error.code) {
    case 'usage':
      return exitCodes.usage;
    case 'unavailable':
      return wasAnswered(error) ? exitCodes.failed : exitCodes.unreachable;
    case 'sealed':
      return exitCodes.sealed;
    default:
      return exitCodes.failed;
  }
}

/** Whether an appliance said so, with status 503: it was reached. The error, or what caused it, has its answer. */
function wasAnswered(error: unknown): boolean {
  return error instanceof KmsError && (error.body !== undefined || wasAnswered(error.cause));
}

/** 128 and the signal's number, as shells have it. */
const codes: Readonly<Record<string, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** The exit code for the signal that ended it; Ctrl-C where that is not known. */
export function interruptedBy(reason: unknown): number {
  return codes[String(reason)] ?? 130;
}

/** Thrown where more can be said than that it was interrupted. */
export class Interrupted extends KmsError {
  constructor(left: string) {
    super('refused', `interrupted; ${left}`);
  }
}

/** Whether `error` is only the end that somebody asked for. */
export function isInterruption(io: Io, error: unknown): boolean {
  return io.signal.aborted || (error instanceof Error && error.name === 'AbortError');
}

/** What to do, where the error does not say: an answer over the network carries no hint. */
const usualAdvice: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthenticated: 'check the API key in --api-key-file, KMS_API_KEY or the profile',
  forbidden: 'use an API key that has it',
  quota: 'ask the operator for more room',
  'not-found': 'check the name or id',
  'rate-limited': 'wait and try again',
  sealed: 'unseal it first',
  internal: 'look into the log of the appliance',
};

/** What is said of an error, on one line, without a secret: what went wrong, and what to do. */
export function sentenceOf(error: unknown): string {
  if (error instanceof KmsError) {
    const advice = error.hint ?? usualAdvice[error.code];
    return withoutSecrets(visible(error.message + (advice === undefined ? '' : `; ${advice}`)));
  }
  const hint = isSystemError(error) ? '' : '; this is a defect of kms: KMS_DEBUG=1 shows where';
  return withoutSecrets(visible(error instanceof Error ? error.message : String(error)) + hint);
}

function isSystemError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && 'syscall' in error;
}

/** Errors repeat what was typed, which may be a secret in the place of the name of its file; stderr ends up in logs. */
const secrets = [
  // API keys and tokens, see crypto/secrets.ts.
  /(kms(?:at|in|rs)?_)[0-9A-Za-z]{43,}/g,
  // Private keys: PEM, and PKCS#8 in base64 with what each X25519 key begins with.
  /(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:(?!-----END).)*/gs,
  /(MC4CAQAwBQYDK2VuBCIEI)[0-9A-Za-z+/=]+/g,
  // Identities of age, its own and ours, which may hold a private key.
  /(AGE-(?:PLUGIN-KMS|SECRET-KEY)-1)[0-9A-Z]+/gi,
];

/** The text with every secret of a known form cut to its beginning. */
export function withoutSecrets(text: string): string {
  return secrets.reduce((rest, secret) => rest.replace(secret, '$1…'), text);
}
