// `kms profile add`: keeps an address and a credential for it. The appliance is not asked.
import { X509Certificate } from 'node:crypto';
import { KmsError } from '../../../errors.ts';
import { checkedApiKey, readApiKey } from '../../api-key-file.ts';
import { type Cli, given } from '../../cli.ts';
import { readSmallText } from '../../files.ts';
import { say } from '../../io.ts';
import { writeProfile } from '../../profiles.ts';
import { readSecret } from '../../secret-input.ts';
import { isOpenToOthers, serverUrl } from '../../target.ts';
import { printProfile, refuseTaken } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  const name = cli.arg(0);
  await refuseTaken(cli, name);
  const url = serverUrl(cli.needed('--server'));
  const server = url.href.replace(/\/+$/, '');
  const ca = await authorities(cli);
  const apiKey = (await readApiKey(cli)) ?? (await askedApiKey(cli));
  const profile = given({ server, apiKey, ca });
  await writeProfile(cli.io, name, profile);
  await printProfile(cli, name, profile);
  if (isOpenToOthers(url)) await say(cli.io, `warning: requests to ${url.host} go unencrypted; use an https address`);
  if (apiKey === undefined) await say(cli.io, 'no API key was given: KMS_API_KEY is looked at with each command');
  if (!cli.json) await say(cli.io, `next: \`kms --profile ${name} status\`, or \`kms profile use ${name}\``);
}

async function askedApiKey(cli: Cli): Promise<string | undefined> {
  const text = await readSecret(cli, 'API key (nothing = none)');
  return text === '' ? undefined : checkedApiKey(text, 'stdin');
}

async function authorities(cli: Cli): Promise<string | undefined> {
  const file = cli.path('--ca-file');
  if (file === undefined) return undefined;
  const pem = await readSmallText(file, 'certificates');
  try {
    new X509Certificate(pem);
  } catch (cause) {
    throw new KmsError('invalid', `${file} has no certificate in it`, {
      hint: 'give the certificate of the authority that signed the one of the server, PEM',
      cause,
    });
  }
  return pem;
}
