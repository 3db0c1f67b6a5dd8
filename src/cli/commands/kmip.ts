// Commands for clients of KMIP, which are API keys that a certificate proves.
import type { Client } from '../../client/client.ts';
import { items } from '../../client/pages.ts';
import { KmsError, reasonOf } from '../../errors.ts';
import { canonicalHost } from '../../model/hosts.ts';
import { type CliOf, given } from '../command.ts';
import { withClient } from '../connect.ts';
import type { kmipClient } from '../grammar/kmip.ts';
import { say } from '../io.ts';
import { clientPage, type KmipPlace } from '../kmip-settings.ts';
import { printThing } from '../output.ts';
import { remoteAddress } from '../target.ts';
import { uidQuery } from './account.ts';
import { checkKnown } from './apikey.ts';
import { filesFor, plainName } from './proof-certificate.ts';

type CreateCli = CliOf<typeof kmipClient.create>;
type Issued = Awaited<ReturnType<Client['addProof']>>;

const usualDays = 365;
const usualPort = 5696;

/** The file beside those of an issued certificate. */
const settings = ['settings.md', 0o644] as const;

export async function create(cli: CreateCli): Promise<void> {
  const accountId = cli.get('--account');
  const named = cli.get('--flag');
  checkKnown('--flag', named, false);
  const flags = Object.fromEntries((named.length > 0 ? named : ['kmip.*']).map((flag) => [flag, true]));
  const out = cli.get('--out');
  const name = cli.get('<NAME>');
  if (name.trim() === '') throw cli.wrong('<NAME>: expected a name for the client');
  // Names of API keys are free text, and this one comes into files of other software.
  const place = { ...(await placeFrom(cli)), name: plainName(name) };
  // Before anything is made: a key that cannot be saved is useless.
  const files = await filesFor(cli, out, [settings]);
  const making = withClient(cli, async (client) => {
    await needNewName(client, name);
    const input = given({ accountId, ...uidQuery(accountId), flags, name, secret: false });
    let keyid: string | undefined;
    let made: Issued;
    try {
      keyid = (await client.createApiKey(input)).keyid;
      made = await client.addProof({ keyid, kind: 'certificate', issue: true, days: cli.get('--days') ?? usualDays });
      await files.keep(made, place.name, clientPage(place));
    } catch (error) {
      if (keyid !== undefined) await takeBack(client, keyid, error);
      throw error;
    }
    const { id: proof, fingerprint = '', notAfter = '' } = made;
    await printThing(cli, { keyid, proof, fingerprint, notAfter }, [
      ['key id', keyid],
      ['proof', proof],
      ['fingerprint', fingerprint],
      ['valid until', notAfter],
    ]);
    await say(cli.io, `certificate, key, client.p12 and settings.md are in ${out}`);
  });
  // Also where there was nothing to talk to. Files that were kept already stay.
  await making.catch(async (error) => {
    await files.discard();
    throw error;
  });
}

/** Throws `refused` if another API key has the name: by it people name the client when they renew its certificate. */
async function needNewName(client: Client, name: string): Promise<void> {
  try {
    for await (const key of items(client.listApiKeys, { limit: 1000 })) {
      if (key.name !== name) continue;
      throw new KmsError('refused', `an API key has the name ${name} already: ${key.keyid}`, {
        hint: `name the client otherwise, or renew its certificate: kms apikey proof add ${key.keyid} certificate --issue --out DIR`,
      });
    }
  } catch (error) {
    // A caller who may not list keys may make one all the same.
    if (!(error instanceof KmsError && error.code === 'forbidden')) throw error;
  }
}

/** Deletes the API key, which is of no use without its certificate. Throws `refused`, naming it, if it stays. */
async function takeBack(client: Client, keyid: string, cause: unknown): Promise<void> {
  try {
    await client.deleteApiKeyById({ keyid });
  } catch (error) {
    throw new KmsError(
      'refused',
      `${reasonOf(cause)}; the API key ${keyid} was made, and could not be deleted again: ${reasonOf(error)}`,
      { hint: `kms apikey delete ${keyid}`, cause },
    );
  }
}

/** Where the settings say that KMIP is: the named address, or the host that this command talks to. */
async function placeFrom(cli: CreateCli): Promise<Omit<KmipPlace, 'name'>> {
  const address = cli.get('--address');
  if (address === undefined) {
    const [server] = (await remoteAddress(cli))?.split(' ') ?? [];
    return { host: server !== undefined && URL.canParse(server) ? new URL(server).hostname : 'HOST', port: usualPort };
  }
  const [, given = '', port = usualPort] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(address) ?? [];
  const host = canonicalHost(given);
  if (host !== undefined && Number(port) >= 1 && Number(port) <= 65_535) return { host, port: Number(port) };
  throw cli.wrong('--address: expected HOST or HOST:PORT');
}
