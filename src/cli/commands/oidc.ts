// Commands that set up logins with an identity provider, on the appliance's machine.
import type { OidcProviderAnswer } from '../../api/local/people.ts';
import { readAuthorities } from '../authorities.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, localDetails } from '../confirm.ts';
import { type Local, withLocal } from '../connect.ts';
import type { oidc } from '../grammar/oidc.ts';
import { type Pair, printLine, printThing } from '../output.ts';
import { readSecretFile } from '../secrets.ts';
import { checkKnown } from './apikey.ts';

export async function set(cli: CliOf<typeof oidc.set>): Promise<void> {
  if (cli.get('--flags-claim') === undefined) cli.refuseWithout('--flags-claim', ['--claim-flags']);
  const ca = cli.get('--provider-ca');
  const body = given({
    issuer: cli.get('--issuer'),
    clientId: cli.get('--client-id'),
    clientSecret: await readSecretFile(cli.get('--client-secret-file'), "the client's secret"),
    name: cli.get('--name'),
    scope: cli.get('--scope'),
    userClaim: cli.get('--user-claim'),
    createUsers: cli.get('--create-users'),
    trustEmail: cli.get('--trust-email'),
    flagsClaim: cli.get('--flags-claim'),
    claimFlags: claimFlags(cli),
    allowRoot: cli.get('--allow-root'),
    ca: ca === undefined ? undefined : await readAuthorities(cli.io, ca),
  });
  await ofTenant(cli, async ({ ask }) => printProvider(cli, await ask('setOidc', { body })));
}

export async function show(cli: CliOf<typeof oidc.show>): Promise<void> {
  await ofTenant(cli, async ({ ask }) => printProvider(cli, await ask('getOidc')));
}

export async function remove(cli: CliOf<typeof oidc.remove>): Promise<void> {
  const name = cli.get('[NAME]');
  const whose = name === undefined ? '' : ` of the tenant ${name}`;
  const details = () =>
    localDetails(ofNamed(cli), async ({ ask }) => {
      const { name: provider, issuer } = await ask('getOidc');
      return [`It is ${provider}, of ${issuer}.`];
    });
  await confirm(cli, `removes the login with an identity provider${whose}`, { of: 'this machine', details });
  await ofTenant(cli, async ({ ask }) => {
    const removed = await ask('removeOidc');
    if (cli.json) await printProvider(cli, removed);
    else await printLine(cli, `nobody can log in with ${removed.name} any more`);
  });
}

export async function unlink(cli: CliOf<typeof oidc.unlink>): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const user = await ask('unlinkOidc', { body: { username: cli.get('<USERNAME>') } });
    await printThing(cli, user, [['username', user.username]]);
  });
}

/** Accepts the tenant's name as an argument, like other tenant commands. */
function ofTenant(cli: NamedCli, use: (local: Local) => Promise<void>): Promise<void> {
  return withLocal(ofNamed(cli), use);
}

type NamedCli = Cli<{ '[NAME]': string | undefined }>;

function ofNamed(cli: NamedCli): NamedCli {
  const name = cli.get('[NAME]');
  return name === undefined ? cli : cli.withOptions(cli.io, new Map([['--tenant', name]]));
}

function claimFlags(cli: CliOf<typeof oidc.set>): Readonly<Record<string, readonly string[]>> | undefined {
  const table = new Map<string, readonly string[]>();
  for (const typed of cli.get('--claim-flags')) {
    // A value may contain `=`; a flag does not.
    const at = typed.lastIndexOf('=');
    const [value, flags] = [typed.slice(0, at), typed.slice(at + 1).split(',')];
    if (at < 1 || flags.includes('')) throw cli.wrong(`--claim-flags: expected VALUE=FLAG,FLAG, got "${typed}"`);
    if (!cli.get('--any-flag')) checkKnown('--claim-flags', flags);
    table.set(value, [...(table.get(value) ?? []), ...flags]);
  }
  return table.size > 0 ? Object.fromEntries(table) : undefined;
}

async function printProvider(cli: Cli, provider: OidcProviderAnswer): Promise<void> {
  const flags = Object.entries(provider.claimFlags).map(([value, names]): Pair => [`  ${value}`, names.join(' ')]);
  await printThing(cli, provider, [
    ['issuer', provider.issuer],
    ['name', provider.name],
    ['client id', provider.clientId],
    ['scope', provider.scope],
    ['user claim', provider.userClaim],
    ['makes users', provider.createUsers ? 'yes' : 'no'],
    ['trusts addresses', provider.trustEmail ? 'yes' : 'no'],
    ['own authorities', provider.hasCa ? 'yes' : 'no'],
    ['flags claim', provider.flagsClaim],
    ...flags,
    ['changed', provider.changedAt],
  ]);
}
