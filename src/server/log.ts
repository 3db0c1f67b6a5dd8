// The server's own log: JSON lines on stderr. What may hold a secret never gets here; `redact` is the second net.
import pino, { type Logger } from 'pino';
import { environment } from '../appliance/environment.ts';
import { KmsError } from '../errors.ts';

export type { Logger };

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** Names of fields whose values are never written, at the top and one level down. */
const secretFields = ['authorization', 'key', 'privateKey', 'password', 'token', 'accessToken', 'secret'];

interface ServerLog {
  readonly logger: Logger;
  /** Writes out what is still held back. */
  flush(): void;
}

/** `level` wins over KMS_LOG_LEVEL; without both it is `info`. `write` takes the lines in tests. */
export function createLog(level?: string, write?: (line: string) => void): ServerLog {
  const chosen = level ?? environment('KMS_LOG_LEVEL') ?? 'info';
  if (!levels.includes(chosen)) {
    throw new KmsError('usage', `log level: expected one of ${levels.join(', ')}, got "${chosen}"`);
  }
  const options = {
    level: chosen,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretFields.flatMap((field) => [field, `*.${field}`]), censor: '[secret]' },
    serializers: { err: describeError, error: describeError },
  };
  if (write) return { logger: pino(options, { write }), flush: () => {} };
  // Lines are written some at a time: one write a request would cost as much as the request.
  const stderr = pino.destination({ fd: 2, sync: false, minLength: 8 * 1024, periodicFlush: 100 });
  // A reader of stderr that went away is no reason to stop serving.
  stderr.on('error', () => {});
  return { logger: pino(options, stderr), flush: () => stderr.flushSync() };
}

function describeError(error: unknown): unknown {
  return error instanceof Error ? pino.stdSerializers.err(error) : error;
}
