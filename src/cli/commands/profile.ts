// Profile commands: remote appliances by name. API keys are never shown.

import { stat } from 'node:fs/promises';
import { KmsError } from '../../errors.ts';
import { readAuthorities } from '../authorities.ts';
import { namedCertificate, readClientCertificate } from '../client-certificate.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm } from '../confirm.ts';
import type { profile } from '../grammar/profile.ts';
import { say } from '../io.ts';
import { printJson, printLine, printTable, printThing, wholeList } from '../output.ts';
import {
  checkedProfileName,
  defaultProfile,
  type Profile,
  profileNames,
  profilePath,
  readProfile,
  removeProfile,
  setDefaultProfile,
  writeProfile,
} from '../profiles.ts';
import { checkedApiKey, readApiKey, readSecret } from '../secrets.ts';
import { isOpenToOthers, needsTls, serverUrl } from '../target.ts';
import { visible } from '../text.ts';

/** Does not contact the appliance. */
export async function add(cli: CliOf<typeof profile.add>): Promise<void> {
  const name = cli.get('<NAME>');
  await refuseTaken(cli, name);
  const named = cli.globals.get('--server');
  if (named === undefined) throw cli.wrong('--server is missing');
  const url = serverUrl(named);
  const server = url.href.replace(/\/+$/, '');
  const ca = await authorities(cli);
  const certificate = namedCertificate(cli);
  needsTls(url, certificate);
  if (certificate) await readClientCertificate(certificate);
  const apiKey = (await readApiKey(cli)) ?? (certificate ? undefined : await askedApiKey(cli));
  const profile = given({ server, apiKey, ca, certificate });
  await writeProfile(cli.io, name, profile);
  await printProfile(cli, name, profile);
  if (isOpenToOthers(url)) await say(cli.io, `warning: requests to ${url.host} go unencrypted; use an https address`);
  if (apiKey === undefined && !certificate)
    await say(cli.io, 'no API key was given: KMS_API_KEY is looked at with each command');
  if (!cli.json) await say(cli.io, `next: \`kms --profile ${name} status\`, or \`kms profile use ${name}\``);
}

async function askedApiKey(cli: Cli): Promise<string | undefined> {
  const text = await readSecret(cli, 'API key (nothing = none)');
  return text === '' ? undefined : checkedApiKey(text, 'stdin');
}

async function authorities(cli: Cli): Promise<string | undefined> {
  const file = cli.globals.get('--ca-file');
  return file === undefined ? undefined : readAuthorities(cli.io, file);
}

/** An unreadable profile is reported on stderr and does not hide the others. */
export async function list(cli: CliOf<typeof profile.list>): Promise<void> {
  const profiles: ShownProfile[] = [];
  for (const name of await profileNames(cli.io)) {
    try {
      profiles.push(await shownProfile(cli, name, await readProfile(cli.io, name)));
    } catch (error) {
      if (!(error instanceof KmsError)) throw error;
      await say(cli.io, visible(`warning: ${error.message}${error.hint === undefined ? '' : `; ${error.hint}`}`));
    }
  }
  if (cli.json) return printJson(cli, wholeList(profiles));
  if (profiles.length === 0) return say(cli.io, 'no profiles yet: make one with `kms profile add NAME --server URL`');
  await printTable(cli, profiles, [
    { title: 'name', value: ({ name }) => name, name: true },
    { title: 'server', value: ({ server }) => server ?? '' },
    { title: 'API key', value: ({ apiKey }) => (apiKey ? 'kept' : 'none') },
    { title: 'default', value: (profile) => (profile.default ? 'yes' : '') },
  ]);
}

export async function show(cli: CliOf<typeof profile.show>): Promise<void> {
  const name = cli.get('<NAME>');
  await printProfile(cli, name, await readProfile(cli.io, name));
}

export async function use(cli: CliOf<typeof profile.use>): Promise<void> {
  const name = cli.get('[NAME]');
  const none = cli.isTyped('--none');
  if ((name === undefined) !== none) {
    throw cli.wrong('expected the name of a profile or --none');
  }
  if (name === undefined) {
    await setDefaultProfile(cli.io, undefined);
    return cli.json ? printJson(cli, null) : printLine(cli, 'no profile is used by default');
  }
  const profile = await readProfile(cli.io, name);
  await setDefaultProfile(cli.io, name);
  if (cli.json) return printJson(cli, await shownProfile(cli, name, profile));
  await printLine(cli, `${name} (${profile.server}) is used when no appliance is named`);
}

export async function remove(cli: CliOf<typeof profile.remove>): Promise<void> {
  const name = checkedProfileName(cli.get('<NAME>'));
  const details = async (): Promise<readonly string[]> => {
    // One that cannot be read can be removed.
    await readProfile(cli.io, name).catch((error) => {
      if (error instanceof KmsError && error.code === 'not-found') throw error;
    });
    return [];
  };
  await confirm(cli, `removes the profile ${name} and the copy of the API key in it`, { of: 'this user', details });
  const removed = await shownProfile(cli, name, await readProfile(cli.io, name).catch(() => undefined));
  const wasDefault = await removeProfile(cli.io, name);
  if (cli.json) return printJson(cli, removed);
  await printLine(cli, `${name} is removed${wasDefault ? '; no profile is used by default any more' : ''}`);
}

interface ShownProfile {
  readonly name: string;
  /** Null, like the three below, if the profile could not be read. */
  readonly server: string | null;
  /** Whether it has an API key. */
  readonly apiKey: boolean | null;
  /** Whether it has its own authorities. */
  readonly ca: boolean | null;
  /** Whether it names a client certificate. */
  readonly certificate: boolean | null;
  readonly default: boolean;
  readonly file: string;
}

async function shownProfile(cli: Cli, name: string, profile: Profile | undefined): Promise<ShownProfile> {
  return {
    name,
    server: profile?.server ?? null,
    apiKey: profile ? profile.apiKey !== undefined : null,
    ca: profile ? profile.ca !== undefined : null,
    certificate: profile ? profile.certificate !== undefined : null,
    default: (await defaultProfile(cli.io)) === name,
    file: profilePath(cli.io, name),
  };
}

async function printProfile(cli: Cli, name: string, profile: Profile): Promise<void> {
  const shown = await shownProfile(cli, name, profile);
  await printThing(cli, shown, [
    ['name', name],
    ['server', profile.server],
    ['API key', shown.apiKey ? 'kept' : 'none'],
    ['authorities', shown.ca ? 'its own' : 'the well-known ones'],
    ['certificate', profile.certificate?.cert],
    ['default', shown.default ? 'yes' : 'no'],
    ['file', shown.file],
  ]);
}

/** Checked before a secret is asked for. */
async function refuseTaken(cli: Cli, name: string): Promise<void> {
  const isTaken = await stat(profilePath(cli.io, name)).then(
    () => true,
    () => false,
  );
  if (!isTaken) return;
  throw new KmsError('conflict', `there is a profile ${name} already`, {
    hint: `remove it first: kms profile remove ${name}`,
  });
}
