// How a profile is shown: never its API key.
import { stat } from 'node:fs/promises';
import { KmsError } from '../../../errors.ts';
import type { Cli } from '../../cli.ts';
import { printThing } from '../../output.ts';
import { defaultProfile, type Profile, profilePath } from '../../profiles.ts';

export interface ShownProfile {
  readonly name: string;
  readonly server: string;
  /** Whether it has one. */
  readonly apiKey: boolean;
  /** Whether it names authorities of its own. */
  readonly ca: boolean;
  readonly default: boolean;
}

export async function shownProfile(cli: Cli, name: string, profile: Profile): Promise<ShownProfile> {
  return {
    name,
    server: profile.server,
    apiKey: profile.apiKey !== undefined,
    ca: profile.ca !== undefined,
    default: (await defaultProfile(cli.io)) === name,
  };
}

export async function printProfile(cli: Cli, name: string, profile: Profile): Promise<void> {
  const shown = await shownProfile(cli, name, profile);
  const file = profilePath(cli.io, name);
  await printThing(cli, { ...shown, file }, [
    ['name', name],
    ['server', shown.server],
    ['API key', shown.apiKey ? 'kept' : 'none'],
    ['authorities', shown.ca ? 'its own' : 'the well-known ones'],
    ['default', shown.default ? 'yes' : 'no'],
    ['file', file],
  ]);
}

/** Before a secret is asked for. */
export async function refuseTaken(cli: Cli, name: string): Promise<void> {
  const isTaken = await stat(profilePath(cli.io, name)).then(
    () => true,
    () => false,
  );
  if (!isTaken) return;
  throw new KmsError('conflict', `there is a profile ${name} already`, {
    hint: `remove it first: kms profile remove ${name}`,
  });
}
