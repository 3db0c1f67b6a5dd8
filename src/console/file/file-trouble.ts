// What to tell when a file could not be encrypted or decrypted: by the service, which was asked for the key, or by this page, which did it.
import { KmsError } from '../../errors.ts';
import { troubleText } from '../trouble.ts';

export function fileTroubleText(error: unknown): string {
  if (!(error instanceof KmsError)) {
    return error instanceof Error ? `It could not be finished: ${error.message}` : 'It could not be finished.';
  }
  if (error.code === 'asset-invalid') return `Nothing was decrypted: ${error.message}.`;
  if (error.body || error.code === 'unavailable' || error.code === 'sealed') return troubleText(error);
  const hint = error.hint === undefined ? '' : ` What to do: ${error.hint}.`;
  return `It could not be finished: ${error.message}.${hint}`;
}

/** Whether somebody chose to stop. */
export function isStopped(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
