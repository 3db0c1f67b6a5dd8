// Result reasons of KMIP, and how our refusals are told by them. Versions from 2.0 on have finer ones.
import { KmsError } from '../../errors.ts';

export const reasons = {
  itemNotFound: 0x01,
  responseTooLarge: 0x02,
  authenticationNotSuccessful: 0x03,
  invalidMessage: 0x04,
  operationNotSupported: 0x05,
  missingData: 0x06,
  invalidField: 0x07,
  featureNotSupported: 0x08,
  cryptographicFailure: 0x0a,
  illegalOperation: 0x0b,
  permissionDenied: 0x0c,
  objectArchived: 0x0d,
  indexOutOfBounds: 0x0e,
  keyFormatTypeNotSupported: 0x10,
  keyCompressionTypeNotSupported: 0x11,
  encodingOptionError: 0x12,
  sensitive: 0x16,
  notExtractable: 0x17,
  generalFailure: 0x100,
} as const;

/** From 2.0 on. */
export const laterReasons = {
  readOnlyAttribute: 0x22,
  singleValued: 0x23,
  multiValued: 0x1e,
  incompatibleUsageMask: 0x29,
  nonUniqueName: 0x35,
  objectDestroyed: 0x36,
  objectNotFound: 0x37,
  notAuthorised: 0x39,
  serverLimitExceeded: 0x3a,
  wrongState: 0x43,
} as const;

/** A refusal of one operation. */
export class Refusal extends KmsError {
  readonly reason: number;
  /** From 2.0 on. */
  readonly later: number;

  constructor(reason: number, message: string, later: number = reason) {
    super('invalid', message);
    this.reason = reason;
    this.later = later;
  }
}

export function denied(message: string, later: number = laterReasons.wrongState): Refusal {
  return new Refusal(reasons.permissionDenied, message, later);
}

interface Told {
  readonly reason: number;
  readonly later: number;
  readonly message: string;
}

/** The reason and text of an error; undefined for one of ours that clients are told nothing of. */
export function reasonOf(error: unknown): Told | undefined {
  if (error instanceof Refusal) return error;
  if (isNameTaken(error)) {
    return { reason: reasons.invalidField, later: laterReasons.nonUniqueName, message: error.message };
  }
  if (!(error instanceof KmsError)) return undefined;
  const { message } = error;
  switch (error.code) {
    case 'not-found':
      return { reason: reasons.itemNotFound, later: laterReasons.objectNotFound, message };
    case 'forbidden':
      return { reason: reasons.permissionDenied, later: laterReasons.notAuthorised, message };
    case 'quota':
      return { reason: reasons.permissionDenied, later: laterReasons.serverLimitExceeded, message };
    case 'conflict':
      return { reason: reasons.permissionDenied, later: laterReasons.wrongState, message };
    case 'unauthenticated':
      return {
        reason: reasons.authenticationNotSuccessful,
        later: reasons.authenticationNotSuccessful,
        message: 'the certificate proves no client that may work here now',
      };
    case 'invalid':
      return { reason: reasons.invalidField, later: reasons.invalidField, message };
    case 'unavailable':
    case 'rate-limited':
    case 'sealed':
      return { reason: reasons.generalFailure, later: reasons.generalFailure, message };
    default:
      return undefined;
  }
}

/** Whether another object has the name. */
export function isNameTaken(error: unknown): error is KmsError {
  return error instanceof KmsError && error.code === 'conflict' && error.fields?.name !== undefined;
}
