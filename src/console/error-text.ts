// Error texts that tell the user why a request failed: because of the service, a file, or the input, or because it
// waits for approval.
import { KmsError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';

/** Text for an error from the service or from checking the input. */
export function errorText(error: unknown): string {
  if (error instanceof FieldProblems) return error.message;
  if (!(error instanceof KmsError)) return 'The service did not answer in time.';
  if (error.code === 'sealed') return 'The service is sealed: an administrator has to unseal it first.';
  if (error.code === 'unavailable' && !error.body) {
    return 'The service cannot be reached. Are you connected to the network?';
  }
  const waiting = approvalIn(error);
  return waiting ? waitingText(waiting, error.message) : sentence(error.message);
}

/** The approval request that a refusal names. */
interface WaitingAct {
  /** Id of the request. */
  readonly id: string;
  readonly needed: number;
  readonly given: number;
}

/** The approval request that the error names; undefined if it names none. */
export function approvalIn(error: unknown): WaitingAct | undefined {
  if (!(error instanceof KmsError) || !error.body || !('approval' in error.body)) return undefined;
  const { approval } = error.body;
  if (!isJsonObject(approval)) return undefined;
  const { id, needed, given } = approval;
  if (typeof id !== 'string' || typeof needed !== 'number' || typeof given !== 'number') return undefined;
  return { id, needed, given };
}

function waitingText({ needed, given }: WaitingAct, message: string): string {
  // If too few approvers could approve it now, the appliance says why, and what helps.
  const [, lack] = / is pending; (?!try again)(.+)$/s.exec(message) ?? [];
  const then = lack === undefined ? 'Try again once it is approved.' : sentence(lack);
  const words = needed === 1 ? '1 approval' : `${needed} approvals`;
  const so = given === 0 ? '' : ` and has ${given} so far`;
  return `Nothing was done yet: this needs ${words} by others${so}. ${then}`;
}

/** A message of the appliance, which is lower case without a full stop, as a sentence. */
export function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

/** The `state` in a response about an invite. */
export function stateOf(error: unknown): string | undefined {
  if (!(error instanceof KmsError) || !error.body || !('state' in error.body)) return undefined;
  return typeof error.body.state === 'string' ? error.body.state : undefined;
}

/**
 * Text for a file that could not be encrypted or decrypted: an error from the service, which was asked for the key, or
 * from this page.
 */
export function fileErrorText(error: unknown): string {
  if (!(error instanceof KmsError)) {
    return error instanceof Error ? `It could not be finished: ${error.message}` : 'It could not be finished.';
  }
  if (error.code === 'asset-invalid') return `Nothing was decrypted: ${error.message}.`;
  if (error.body || error.code === 'unavailable' || error.code === 'sealed') return errorText(error);
  const hint = error.hint === undefined ? '' : ` What to do: ${error.hint}.`;
  return `It could not be finished: ${error.message}.${hint}`;
}

/** Whether the user stopped it. */
export function isStopped(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

export type Problems = Readonly<Record<string, string>>;

/**
 * Problems with input, by field, found before anything is sent. `message`: one text for all, for when no field shows
 * them.
 */
export class FieldProblems extends Error {
  readonly fields: Problems;

  constructor(fields: Problems, message = Object.values(fields).join(' ')) {
    super(message);
    this.fields = fields;
  }
}
