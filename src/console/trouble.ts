// What to tell somebody whose request failed for a reason that is not theirs.
import { KmsError } from '../errors.ts';

export function troubleText(error: unknown): string {
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

/** Whether the appliance refused the request with status 400. */
export function isRefused(error: unknown): boolean {
  return error instanceof KmsError && error.code === 'invalid';
}
