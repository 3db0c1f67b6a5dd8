// Opens the seal in a backup or a shipped copy with whichever of its custodians can be had. Commands that it names are not run: it
// comes from elsewhere. Nothing is changed.
import { KmsError } from '../../errors.ts';
import type { KeySources } from '../custody/key-sources.ts';
import type { OpenedSeal } from '../custody/unlock.ts';
import { Unsealer } from '../custody/unsealer.ts';

export interface KeyOptions {
  /** The data directory beside which the key file may lie. */
  readonly data: string;
  readonly keys: KeySources;
  /** Asked for one share after the other where shares open it; undefined = there are no more. */
  readonly share?: ((given: number, needed: number) => Promise<string | undefined>) | undefined;
}

/** Throws `sealed` where no key is found, `refused` for a wrong one: "needs …, got …". */
export async function unseal(bytes: Uint8Array, name: string, { data, keys, share }: KeyOptions): Promise<OpenedSeal> {
  const sources = { ...keys, commands: false };
  const unsealer = new Unsealer({ data, sources, read: async () => ({ bytes, name }) });
  const found = await unsealer.take({}).catch((error: unknown) => {
    if (error instanceof KmsError && error.code === 'sealed') return error;
    throw error;
  });
  if (found && !(found instanceof KmsError)) return found;
  for (let { progress } = unsealer; progress && share; { progress } = unsealer) {
    const text = await share(progress.progress, progress.threshold);
    if (text === undefined) break;
    const opened = await unsealer.take({ share: text });
    if (opened) return opened;
  }
  const { progress: given = 0, threshold } = unsealer.progress ?? {};
  unsealer.forget();
  if (given > 0) throw sealed(`${name}: ${given} of ${threshold} shares were given`, 'give all of them at once');
  // A key that does not fit says more than that there are others.
  if (found?.cause instanceof KmsError) throw found.cause;
  throw sealed(`${name}: ${found?.message.replace(/^the appliance is sealed: /, '')}`, ways);
}

const ways =
  'give a key file or a recovery kit with --key-file, the key in KMS_MASTER_KEY, the passphrase with --passphrase-file, or shares on stdin, one a line';

function sealed(message: string, hint: string): KmsError {
  return new KmsError('sealed', message, { hint });
}
