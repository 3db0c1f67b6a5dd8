// Receiver is the other end of a target: it is given records in their order and says when they have arrived. What goes
// wrong there is one of a few kinds, so that it can be counted and alerted on.
import { KmsError, reasonOf, systemCode } from '../../errors.ts';
import type { ChainedActivity } from '../../store/port.ts';
import type { StreamedTenant } from './record.ts';

/** Some records of one tenant, one after the other; at least one. */
export interface Batch {
  readonly tenant: StreamedTenant;
  readonly records: readonly ChainedActivity[];
}

export interface Arrived {
  readonly seq: number;
  /** Base64url. */
  readonly hash: string;
}

export interface Receiver {
  /** Gets as far as can be without a record; throws where there is nobody to give one to. */
  ready(): Promise<void>;
  /** Hands records over. They have arrived when this resolves, unless there is `confirm`. Throws DeliveryFault. */
  send(batch: Batch): Promise<void>;
  /** Resolves once all that was handed over has arrived; throws DeliveryFault where that is not known. */
  confirm?(): Promise<void>;
  /**
   * The last record of a tenant that is there, where that can be told; `place` was noted, and it may be later. Asked
   * before the first batch.
   */
  arrived?(tenant: StreamedTenant, place: number): Promise<Arrived | undefined>;
  /** Gives up what is under way, and connections; `send` may be called again. */
  drop(): void;
}

export type FaultKind =
  /** The name of the receiver is not known. */
  | 'name'
  /** No way there, or nobody listens. */
  | 'unreachable'
  | 'timeout'
  /** A connection broke, or ended before all had arrived. */
  | 'broken'
  /** The receiver is not who it should be, or speaks no TLS. */
  | 'certificate'
  /** A webhook answered something else than 2xx. */
  | 'answer'
  /** A file could not be written. */
  | 'file'
  /** The activity log could not be read. */
  | 'log';

/** Kinds that concern the tenant whose records these were: others may get theirs through. */
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

/** Codes of the platform, of which the system knows nothing. */
const reasons: Readonly<Record<string, string>> = {
  ERR_STREAM_DESTROYED: 'the connection is gone',
  EPROTO: 'it speaks no TLS that is accepted',
};

/** What went wrong on the way to a receiver on the network, in a few words: never what was sent. */
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

/** Codes of OpenSSL for certificates, and of the platform for TLS. */
function isTls(code: string): boolean {
  return /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_)/.test(code);
}

/** Resolves as `work` does, or throws once so many milliseconds have passed. */
export async function within<T>(work: Promise<T>, milliseconds: number, message: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new DeliveryFault('timeout', message)), milliseconds);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
