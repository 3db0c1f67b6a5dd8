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
  try {
    const opened = await unsealer.take({});
    if (opened) return opened;
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'sealed' || !share || !unsealer.progress) throw error;
  }
  for (let { progress } = unsealer; progress && share; { progress } = unsealer) {
    const text = await share(progress.progress, progress.threshold);
    if (text === undefined) break;
    const opened = await unsealer.take({ share: text });
    if (opened) return opened;
  }
  unsealer.forget();
  throw new KmsError('sealed', `${name}: not enough shares were given`, { hint: 'give the others, or another key' });
}
