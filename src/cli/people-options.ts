// The options of `serve` about people: how long what they log in with lives, and which server takes mail to them.

import { KmsError } from '../errors.ts';
import type { PeopleSettings } from '../server/people.ts';
import { type Cli, given } from './cli.ts';
import { duration } from './duration.ts';
import { readSmallText } from './files.ts';

export async function peopleSettings(cli: Cli): Promise<PeopleSettings> {
  const lifetimes = given({
    access: duration(cli, '--access-ttl'),
    session: duration(cli, '--session-max'),
    invite: duration(cli, '--invite-ttl'),
    reset: duration(cli, '--reset-ttl'),
  });
  const mail = await mailSettings(cli);
  return { lifetimes, ...(mail && { mail }) };
}

async function mailSettings(cli: Cli): Promise<PeopleSettings['mail']> {
  const url = await smtpUrl(cli);
  const from = cli.text('--smtp-from');
  const caFile = cli.path('--smtp-ca');
  if (url === undefined) {
    for (const option of ['--smtp-from', '--smtp-ca']) {
      if (cli.isTyped(option)) throw wrong(cli, `${option} goes with --smtp-url`);
    }
    return undefined;
  }
  if (from === undefined) throw wrong(cli, '--smtp-from is missing: the address that mail comes from');
  if (!/^[^\s@<>]+@[^\s@<>]+$/.test(from))
    throw wrong(cli, '--smtp-from: expected one address, such as kms@example.org');
  const { parseSmtpUrl } = await import('../server/mail.ts');
  try {
    const settings = parseSmtpUrl(url, from);
    return caFile === undefined ? settings : { ...settings, ca: await readSmallText(caFile, 'certificates') };
  } catch (error) {
    // Its message repeats nothing of the address, which may hold a password.
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    throw new KmsError('usage', `--smtp-url: ${error.message}`, { hint: error.hint ?? cli.seeHelp });
  }
}

/** From the file, else from the option or its variable. A password on the command line would be seen by other users. */
async function smtpUrl(cli: Cli): Promise<string | undefined> {
  const file = cli.path('--smtp-url-file');
  if (file !== undefined) return (await readSmallText(file, 'the SMTP address')).trim();
  const url = cli.text('--smtp-url');
  if (url !== undefined && cli.isTyped('--smtp-url') && URL.canParse(url) && new URL(url).password !== '') {
    throw wrong(cli, '--smtp-url: a password has no place on the command line; use KMS_SMTP_URL or --smtp-url-file');
  }
  return url;
}

function wrong(cli: Cli, message: string): KmsError {
  return new KmsError('usage', message, { hint: cli.seeHelp });
}
