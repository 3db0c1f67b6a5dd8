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

export function messageOf({ body }: Outcome): string | undefined {
  const message: unknown = Reflect.get(body, 'message');
  return typeof message === 'string' ? message : undefined;
}

/** A refusal that the dialect itself threw within an endpoint. */
export function ownFailure(outcome: Outcome): Failure | undefined {
  const own: unknown = Reflect.get(outcome.body, 'awsType');
  return typeof own === 'string' ? failed(own, messageOf(outcome)) : undefined;
}

export const unknownCaller = failed(
  'UnrecognizedClientException',
  'The security token included in the request is invalid.',
);

/** Our refusal in the terms of AWS KMS. `otherwise` is the type for one that its status does not explain. */
export function failureOf(outcome: Outcome, otherwise = 'ValidationException'): Failure {
  const { status } = outcome;
  const text = messageOf(outcome);
  const own = ownFailure(outcome);
  if (own) return own;
  if (status === 401) return unknownCaller;
  if (status === 400 && isFull(text)) return failed('LimitExceededException', text);
  if (status === 403 && isQuota(text)) return failed('LimitExceededException', text);
  if (status === 403) return failed('AccessDeniedException', denialOf(text));
  if (status === 404) return failed('NotFoundException', text);
  if (status === 413) return failed('ValidationException', 'the request is too long');
  if (status === 429) return failed('ThrottlingException', text);
  if (status === 500) return failed('KMSInternalException');
  if (status > 500) return failed('ServiceUnavailableException', text);
  return failed(otherwise, text);
}

/** The words of a key that has as many aliases or tags as it can. */
function isFull(text = ''): boolean {
  return /expected at most \d+ (?:tags|aliases of one key)$/.test(text);
}

/** The words of a tenant's limit that is reached. */
function isQuota(text = ''): boolean {
  return /^the limit of \d+ [a-z ]+ is reached$/.test(text);
}

/**
 * The flag that is missing, with no key's name: a name or an id that was not in the request would tell that there is
 * such a key.
 */
function denialOf(text = ''): string {
  const [, flag = ''] = /^the permission flag (key\..+) is missing$/.exec(text) ?? [];
  const [, action = ''] = /^key\..+\.([a-z-]+)$/.exec(flag) ?? [];
  if (action === '') return text;
  return `the permission flag key.NAME.${action} is missing, where NAME is the key's own name: its id, if it has no other`;
}
