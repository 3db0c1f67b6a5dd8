// The credential for a server: from the file that --api-key-file names, else from KMS_API_KEY. Never from the command line, where
// other users of the machine could see it.
import { stat } from 'node:fs/promises';
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';
import { readSmallText } from './files.ts';
import { say } from './io.ts';

/** The API key; undefined where none is given. */
export async function readApiKey(cli: Cli): Promise<string | undefined> {
  const path = cli.path('--api-key-file');
  if (path === undefined) {
    const key = cli.io.env.KMS_API_KEY?.trim();
    return key ? checkedApiKey(key, 'KMS_API_KEY') : undefined;
  }
  const key = checkedApiKey((await readSmallText(path, 'the API key')).trim(), path);
  const mode = await stat(path).then(
    (info) => info.mode,
    () => 0,
  );
  if ((mode & 0o077) !== 0) await say(cli.io, `warning: other users can read ${path}; run: chmod 600 ${path}`);
  return key;
}

export function checkedApiKey(key: string, source: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new KmsError('invalid', `${source} does not hold an API key: expected one word`, {
    hint: 'an API key looks like kms_ and 49 letters and digits',
  });
}
