// Error texts tell somebody why their request failed: for a reason of the service, of a file, or of what they typed.
import { KmsError } from '../errors.ts';

/** Of what the service answered, or of what was typed. */
export function errorText(error: unknown): string {
  if (error instanceof FieldProblems) return error.message;
  if (!(error instanceof KmsError)) return 'The service did not answer in time.';
  if (error.code === 'sealed') return 'The service is sealed: an administrator has to unseal it first.';
  if (error.code === 'unavailable' && !error.body) {
    return 'The service cannot be reached. Are you connected to the network?';
  }
  return `The service answered: ${error.message}.`;
}

/** The `state` that an answer about an invite carries. */
export function stateOf(error: unknown): string | undefined {
  if (!(error instanceof KmsError) || !error.body || !('state' in error.body)) return undefined;
  return typeof error.body.state === 'string' ? error.body.state : undefined;
}

/**
 * Where a file could not be encrypted or decrypted: by the service, which was asked for the key, or by this page, which
 * did it.
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

/** Whether somebody chose to stop. */
export function isStopped(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

export type Problems = Readonly<Record<string, string>>;

/** What is wrong with values that need not be sent, by field. `message`: of all together, where no field shows it. */
export class FieldProblems extends Error {
  readonly fields: Problems;

  constructor(fields: Problems, message = Object.values(fields).join(' ')) {
    super(message);
    this.fields = fields;
  }
}
