// Receiver is the far end of a target: it gets records in order and says when they have arrived. Faults are of a few
// kinds, so that they can be counted and alerted on.
import { KmsError, reasonOf, systemCode } from '../../errors.ts';
import type { ChainedActivity } from '../../store/port.ts';
import type { StreamedTenant } from './record.ts';

/** Consecutive records of one tenant; at least one. */
export interface Batch {
  readonly tenant: StreamedTenant;
  readonly records: readonly ChainedActivity[];
}

export interface Arrived {
  readonly seq: number;
  /** In base64url. */
  readonly hash: string;
}

export interface Receiver {
  /** Connects as far as possible without sending a record; throws if the receiver cannot be reached. */
  ready(): Promise<void>;
  /** Hands records over. They have arrived when this resolves, unless there is `confirm`. Throws DeliveryFault. */
  send(batch: Batch): Promise<void>;
  /** Resolves once all records handed over have arrived; throws DeliveryFault if that is unknown. */
  confirm?(): Promise<void>;
  /**
   * The last record of a tenant at the receiver, if it can tell; `place` is the noted one, which may be earlier. Called
   * before the first batch.
   */
  arrived?(tenant: StreamedTenant, place: number): Promise<Arrived | undefined>;
  /** Abandons work under way and connections; `send` may be called again. */
  drop(): void;
}

export type FaultKind =
  /** The receiver's name does not resolve. */
  | 'name'
  /** No route, or the port is closed. */
  | 'unreachable'
  | 'timeout'
  /** A connection broke, or ended before everything had arrived. */
  | 'broken'
  /** The receiver's identity is wrong, or it does not speak TLS. */
  | 'certificate'
  /** A webhook answered with a status other than 2xx. */
  | 'answer'
  /** A file could not be written. */
  | 'file'
  /** The activity log could not be read. */
  | 'log';

/** Kinds that concern only the tenant of the records: others may get theirs through. */
const ofOneTenant: readonly FaultKind[] = ['answer', 'log'];

export class DeliveryFault extends KmsError {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string, cause?: unknown) {
    super('unavailable', message, cause === undefined ? {} : { cause });
    this.kind = kind;
  }

  get concernsTenant(): boolean {
    return ofOneTenant.includes(this.kind);
  }
}

const kinds: Readonly<Record<string, FaultKind>> = {
  ENOTFOUND: 'name',
  EAI_AGAIN: 'name',
  EAI_FAIL: 'name',
  ECONNREFUSED: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EACCES: 'unreachable',
  EPERM: 'unreachable',
  ETIMEDOUT: 'timeout',
  EPROTO: 'certificate',
};

/** Codes of Node, unknown to the system. */
const reasons: Readonly<Record<string, string>> = {
  ERR_STREAM_DESTROYED: 'the connection is gone',
  EPROTO: 'it speaks no TLS that is accepted',
};

/** A network fault in a few words, which never repeat the data sent. */
export function networkFault(error: unknown): DeliveryFault {
  if (error instanceof DeliveryFault) return error;
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new DeliveryFault('timeout', 'it does not answer', error);
  }
  const code = systemCode(error) ?? '';
  const kind = kinds[code] ?? (isTls(code) ? 'certificate' : 'broken');
  const reason = reasons[code] ?? reasonOf(error);
  return new DeliveryFault(kind, code === '' ? reason : `${reason} (${code})`, error);
}

/** Codes of OpenSSL for certificates, and of Node for TLS. */
function isTls(code: string): boolean {
  return /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_)/.test(code);
}

/** Resolves like `work`, or throws after this many milliseconds. */
export async function within<T>(work: Promise<T>, milliseconds: number, message: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new DeliveryFault('timeout', message)), milliseconds);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
