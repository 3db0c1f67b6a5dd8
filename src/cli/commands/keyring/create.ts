// `kms keyring create`: makes a ring, and sees to it that the private key, told this once, is kept.
import { isPublicKey } from '../../../client/private-key.ts';
import { KmsError } from '../../../errors.ts';
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { readSmallText } from '../../files.ts';
import { printThing } from '../../output.ts';
import { checkedRingName, type KeyPlace, reserveKeyPlace } from '../../ring-key-file.ts';
import { ringPairs } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const name = checkedRingName(cli.arg(0));
  const publicKey = await readPublicKey(cli);
  const input = given({ name, publicKey, props: cli.object('--props'), keyProps: cli.object('--key-props') });
  await withClient(cli, async (client) => {
    const place = publicKey === undefined ? await reserveKeyPlace(cli, 'rings', name) : undefined;
    const answer = await client.createKeyring(input).catch(async (error) => {
      await place?.release();
      throw error;
    });
    // The answer first: with --json it holds the private key, whatever becomes of the file.
    await printThing(cli, answer, ringPairs(answer.ring));
    await keep(place, answer.privateKey);
  });
}

async function keep(place: KeyPlace | undefined, privateKey: string | undefined): Promise<void> {
  if (privateKey !== undefined) await place?.keep(privateKey);
  else await place?.release();
}

async function readPublicKey(cli: Cli): Promise<string | undefined> {
  const path = cli.path('--public-key');
  if (path === undefined) return undefined;
  if (cli.isTyped('--private-key-out')) {
    throw new KmsError(
      'usage',
      '--public-key and --private-key-out exclude each other: with a public key of yours no private key is made',
    );
  }
  const text = (await readSmallText(path, 'the public key')).trim();
  if (isPublicKey(text)) return text;
  throw new KmsError('invalid', `${path} holds no X25519 public key that can be used`, {
    hint: 'expected PEM, base64 of SPKI DER, or base64 of the 32 bytes',
  });
}
