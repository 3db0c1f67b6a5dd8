// How a command ends: exit codes and messages of errors, and the codes of signals.
import { type ErrorCode, KmsError } from '../errors.ts';
import type { Io } from './io.ts';
import { visible } from './text.ts';

/** The only file that maps errors to exit codes. */
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

/**
 * Whether an appliance answered with status 503, so that it was reached. The error or its cause then has the answer.
 */
function wasAnswered(error: unknown): boolean {
  return error instanceof KmsError && (error.body !== undefined || wasAnswered(error.cause));
}

/** 128 plus the signal's number, as in shells. */
const codes: Readonly<Record<string, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** The exit code for the signal that ended the command; that of Ctrl-C if unknown. */
export function interruptedBy(reason: unknown): number {
  return codes[String(reason)] ?? 130;
}

/** An interruption with more to say than that. */
export class Interrupted extends KmsError {
  constructor(left: string) {
    super('refused', `interrupted; ${left}`);
  }
}

/** Whether `error` is only the requested interruption. */
export function isInterruption(io: Io, error: unknown): boolean {
  return io.signal.aborted || (error instanceof Error && error.name === 'AbortError');
}

/** The error of a request without a credential: nothing is wrong with a key that was not given. */
export function withoutKey(error: unknown, hasCertificate = false): unknown {
  if (!(error instanceof KmsError) || error.code !== 'unauthenticated') return error;
  if (hasCertificate) {
    return new KmsError('unauthenticated', 'the client certificate proves no API key here', {
      hint: '`kms apikey login KEY --certificate` says why; it counts with TLS to the appliance itself alone, not through a proxy',
      cause: error,
    });
  }
  const hint = 'use --api-key-file FILE, KMS_API_KEY or a profile that has one, or --client-cert FILE';
  return new KmsError('unauthenticated', 'no API key was given', { hint, cause: error });
}

/** Advice if the error has none: an answer over the network carries no hint. */
const usualAdvice: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthenticated: 'check the API key in --api-key-file, KMS_API_KEY or the profile',
  forbidden: 'use an API key that has it',
  quota: 'ask the operator for more room',
  'not-found': 'check the name or id',
  'rate-limited': 'wait and try again',
  sealed: 'run `kms unseal`',
  internal: 'look at the log of the appliance',
};

function adviceFor({ code, message, body }: KmsError): string | undefined {
  const { approval } = Object(body);
  if (typeof approval?.id === 'string') return `see \`kms approval show ${approval.id}\``;
  // A name that was probably meant is advice enough.
  if (message.endsWith('?')) return undefined;
  // Other refusals than for want of a flag do not depend on the key.
  return code === 'forbidden' && !message.includes('permission flag') ? undefined : usualAdvice[code];
}

/** An error in one line, without secrets: what went wrong, and what to do. */
export function sentenceOf(error: unknown): string {
  if (error instanceof KmsError) {
    const advice = error.hint ?? adviceFor(error);
    return withoutSecrets(visible(advice === undefined ? error.message : withAdvice(error.message, advice)));
  }
  const hint = isSystemError(error) ? '' : '; this is a defect of kms: KMS_DEBUG=1 shows where';
  return withoutSecrets(visible(error instanceof Error ? error.message : String(error)) + hint);
}

/** A message that ends in a question ends a sentence, too. */
function withAdvice(message: string, advice: string): string {
  return message.endsWith('?')
    ? `${message} ${advice.charAt(0).toUpperCase()}${advice.slice(1)}`
    : `${message}; ${advice}`;
}

function isSystemError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && 'syscall' in error;
}

/**
 * Secrets in error texts: errors repeat what was typed, which may be a secret instead of its file's name, and stderr
 * ends up in logs.
 */
const secrets = [
  // API keys and tokens; see crypto/secrets.ts.
  /(kms(?:at|in|rs)?_)[0-9A-Za-z]{43,}/g,
  // Private keys: PEM, and PKCS#8 in base64 by the prefix of every X25519 key.
  /(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:(?!-----END).)*/gs,
  /(MC4CAQAwBQYDK2VuBCIEI)[0-9A-Za-z+/=]+/g,
  // age identities, native and ours, which may hold a private key.
  /(AGE-(?:PLUGIN-KMS|SECRET-KEY)-1)[0-9A-Z]+/gi,
];

/** The text with every recognizable secret cut to its prefix. */
export function withoutSecrets(text: string): string {
  return secrets.reduce((rest, secret) => rest.replace(secret, '$1…'), text);
}
