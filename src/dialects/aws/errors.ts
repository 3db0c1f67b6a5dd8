// Refusals as clients of AWS KMS know them: by the name of a type, from which an SDK makes an exception.
import { KmsError } from '../../errors.ts';
import type { Outcome } from '../../http/respond.ts';

export interface Failure {
  readonly type: string;
  readonly message?: string | undefined;
  readonly status: number;
}

const statuses: Readonly<Record<string, number>> = {
  DryRunOperationException: 412,
  ServiceUnavailableException: 503,
  KMSInternalException: 500,
};

export function failed(type: string, message?: string): Failure {
  return { type, message, status: statuses[type] ?? 400 };
}

/** A refusal thrown while a request is decoded or an answer encoded. */
export class AwsRefusal extends KmsError {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super('invalid', failure.message ?? failure.type, { body: { awsType: failure.type, message: failure.message } });
    this.failure = failure;
  }
}

export function failure(type: string, message?: string): AwsRefusal {
  return new AwsRefusal(failed(type, message));
}

/** Our refusal in the terms of AWS KMS. */
export function failureOf({ status, body }: Outcome, what: { readonly decrypts?: boolean } = {}): Failure {
  const own: unknown = Reflect.get(body, 'awsType');
  const message: unknown = Reflect.get(body, 'message');
  const text = typeof message === 'string' ? message : undefined;
  if (typeof own === 'string') return failed(own, text);
  if (status === 401) {
    return failed('UnrecognizedClientException', 'The security token included in the request is invalid.');
  }
  if (status === 403) return failed('AccessDeniedException', text);
  if (status === 404) return failed('NotFoundException', text);
  if (status === 413) return failed('ValidationException', 'the request is too long');
  if (status === 429) return failed('ThrottlingException', text);
  if (status >= 500) return failed('ServiceUnavailableException', text);
  return failed(typeOf(text ?? '', what.decrypts === true), text);
}

/** The type of a refusal with status 400. */
function typeOf(text: string, decrypts: boolean): string {
  if (/is suspended/.test(text)) return 'DisabledException';
  if (/pending deletion|not active yet|destroyed|deactivated|no active version|compromised/.test(text)) {
    return 'KMSInvalidStateException';
  }
  if (/cannot (?:encrypt|decrypt|sign|verify|make MACs|derive)|not (?:made )?for/.test(text)) {
    return 'InvalidKeyUsageException';
  }
  if (/already|taken/.test(text)) return 'AlreadyExistsException';
  return decrypts ? 'InvalidCiphertextException' : 'ValidationException';
}
