// Tenant commands for the operator, on the appliance's machine.

import type { OpenStatus } from '../../api/local/status.ts';
import type { TenantAnswer } from '../../api/local/tenants.ts';
import { KmsError } from '../../errors.ts';
import { operatorTenant, operatorTenantStays } from '../../model/flags.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, localDetails } from '../confirm.ts';
import { type Local, withLocal } from '../connect.ts';
import { chooseTenant, localTenant } from '../default-tenants.ts';
import { deletedIdOf } from '../deleted-things.ts';
import { enumeration } from '../grammar/declaration.ts';
import type { tenant } from '../grammar/tenant.ts';
import { say } from '../io.ts';
import { nameTaken } from '../near-names.ts';
import { type Pair, printJson, printLine, printTable, printThing, showOnce, timeOn } from '../output.ts';
import type { Column } from '../table.ts';
import { dataDirectory } from '../target.ts';

export async function create(cli: CliOf<typeof tenant.create>): Promise<void> {
  const name = cli.get('<NAME>');
  const typed = cli.get('--host');
  await withLocal(cli, async ({ ask }) => {
    const { tenant, hosts, accountId, apiKey } = await ask('createTenant', { body: { name, hosts: typed } }).catch(
      (error) => {
        throw nameTaken(error, name);
      },
    );
    const shown = printThing(cli, { tenant, accountId, apiKey }, [
      ['tenant', tenant],
      ['hosts', hosts.join(' ')],
      ['account', accountId],
      ['API key id', apiKey.keyid],
      ['root API key', apiKey.key],
    ]);
    await showOnce(
      shown,
      `the tenant ${tenant} was made, but its root API key is lost`,
      `revoke it and make another: kms --tenant ${tenant} apikey revoke ${apiKey.keyid}`,
    );
    await say(cli.io, 'the root API key is shown this once and may do everything in this tenant: keep it safe');
  });
}

export async function list(cli: CliOf<typeof tenant.list>): Promise<void> {
  const deleted = cli.get('--deleted');
  await withLocal(cli, async ({ ask }) => {
    const page = await ask('listTenants', { query: deleted ? { deleted: 'true' } : {} });
    if (cli.json) await printJson(cli, page);
    else {
      const newest = page.data.toReversed();
      const isGone = ({ deletedAt }: TenantAnswer): boolean => deletedAt !== undefined;
      const rows = [...newest.filter((each) => !isGone(each)), ...newest.filter(isGone)];
      await printTable(cli, rows, deleted ? deletedColumns : tenantColumns);
    }
  });
}

export async function show(cli: CliOf<typeof tenant.show>): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const name = cli.get('[NAME]') ?? (await localTenant(cli)) ?? (await onlyTenant(ask));
    const tenant = await ask('getTenant', { params: { name } });
    await printThing(cli, tenant, tenantPairs(tenant));
  });
}

/** The name of the only tenant. Throws `usage` if there are several. */
async function onlyTenant(ask: Local['ask']): Promise<string> {
  const { data } = await ask('listTenants', {});
  const [first, ...others] = data.map(({ name }) => name);
  if (first !== undefined && others.length === 0) return first;
  throw new KmsError('usage', `name a tenant, one of: ${data.map(({ name }) => name).join(', ')}`);
}

export async function use(cli: CliOf<typeof tenant.use>): Promise<void> {
  const typed = cli.get('[NAME]');
  if ((typed === undefined) !== cli.isTyped('--none')) throw cli.wrong('expected the name of a tenant or --none');
  if (cli.globals.isTyped('--tenant')) throw cli.wrong('--tenant: name the tenant without it');
  if (typed === undefined) {
    await chooseTenant(cli, undefined);
    return cli.json ? printJson(cli, null) : printLine(cli, 'no tenant is used by default');
  }
  await withLocal(cli, async ({ ask }) => {
    const tenant = await ask('getTenant', { params: { name: typed } });
    await chooseTenant(cli, tenant.name);
    if (cli.json) return printJson(cli, tenant);
    await printLine(cli, `${tenant.name} is used when no tenant is named, for ${await dataDirectory(cli)}`);
  });
}

export async function update(cli: CliOf<typeof tenant.update>): Promise<void> {
  const custody = cli.isTyped('--custody') ? cli.get('--custody') : undefined;
  const changes = { ...typedChanges(cli), ...given({ secondFactorFor: typedPolicy(cli), custody }) };
  if (Object.keys(changes).length === 0) {
    throw new KmsError('usage', 'nothing to change', { hint: 'give --name, --host, --second-factor-for or --custody' });
  }
  await withLocal(cli, async ({ ask }) => {
    const tenant = await ask('updateTenant', { params: { name: cli.get('<NAME>') }, body: changes });
    await printThing(cli, tenant, tenantPairs(tenant));
  });
}

export async function limits(cli: CliOf<typeof tenant.limits>): Promise<void> {
  const changes: Partial<Record<(typeof limitOptions)[number][1], number | null>> = {};
  for (const [option, name] of limitOptions) {
    if (cli.isTyped(option)) changes[name] = cli.get(option) ?? null;
  }
  const params = { name: cli.get('<NAME>') };
  await withLocal(cli, async ({ ask }) => {
    const tenant = await (Object.keys(changes).length === 0
      ? ask('getTenant', { params })
      : ask('limitTenant', { params, body: changes }));
    const pairs = limitOptions.map(
      ([option, name]) => [option.slice(2), String(tenant.limits[name] ?? 'none')] as const,
    );
    await printThing(cli, tenant, pairs);
  });
}

export async function remove(cli: CliOf<typeof tenant.remove>): Promise<void> {
  const name = cli.get('<NAME>');
  const details = () =>
    localDetails(cli, async ({ ask }) => {
      const { id, name: own } = await ask('getTenant', { params: { name } });
      const status = await ask('applianceStatus');
      const tenants = status.sealed ? [] : status.tenants;
      refuseIfNeeded(own, tenants.length);
      const tenant = tenants.find((each) => each.id === id);
      const contents = tenant ? contentsOf(tenant.counts) : [];
      return contents.length > 0 ? [`With it go ${enumeration(contents)}.`] : [];
    });
  await confirm(
    cli,
    `deletes the tenant ${name}: nobody can use it or its keys until it is restored, and after 30 days it is erased`,
    { name, of: 'this machine', details },
  );
  await withLocal(cli, async ({ ask }) => {
    const tenant = await ask('deleteTenant', { params: { name } });
    if (cli.json) await printJson(cli, tenant);
    else
      await printLine(
        cli,
        `${tenant.name} is deleted; until ${timeOn(cli, 'stdout', tenant.restorableUntil ?? '')} ` +
          `\`kms tenant restore ${tenant.id}\` restores it`,
      );
  });
}

/** Throws `conflict` if the appliance would not let go of the tenant, in its own words. */
function refuseIfNeeded(name: string, tenants: number): void {
  if (name === operatorTenant) throw new KmsError('conflict', operatorTenantStays(name, 'cannot be deleted'));
  if (tenants === 1) throw new KmsError('conflict', `${name} is the only tenant`, { hint: 'make another one first' });
}

type Counts = OpenStatus['tenants'][number]['counts'];

const countNouns: readonly (readonly [keyof Counts, one: string, several: string])[] = [
  ['keyrings', 'keyring', 'keyrings'],
  ['managedKeys', 'managed key', 'managed keys'],
  ['users', 'user', 'users'],
  ['accounts', 'account', 'accounts'],
  ['apikeys', 'API key', 'API keys'],
  ['assets', 'asset', 'assets'],
];

function contentsOf(counts: Counts): string[] {
  return countNouns.flatMap(([kind, one, several]) => {
    const count = counts[kind];
    return count === 0 ? [] : [`${count} ${count === 1 ? one : several}`];
  });
}

export async function restore(cli: CliOf<typeof tenant.restore>): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const id = await deletedIdOf('tenant', cli.get('<ID>'), deletedTenants(ask));
    const restored = ask('restoreTenant', { params: { id }, body: typedChanges(cli) });
    const tenant = await restored.catch((error) => {
      throw withAdvice(error);
    });
    await printThing(cli, tenant, tenantPairs(tenant));
  });
}

async function* deletedTenants(ask: Local['ask']): AsyncGenerator<TenantAnswer> {
  const { data } = await ask('listTenants', { query: { deleted: 'true' } });
  yield* data.filter(({ deletedAt }) => deletedAt !== undefined);
}

/** Adds advice if another tenant has taken its name or hosts. */
function withAdvice(error: unknown): unknown {
  if (!(error instanceof KmsError)) return error;
  const { name, hosts } = error.fields ?? {};
  if (name === undefined && hosts === undefined) return error;
  const hint =
    name === undefined ? 'restore it with other hosts: --host NAME' : 'restore it under another: --name NAME';
  return new KmsError(error.code, error.message, { hint, cause: error });
}

export async function rekey(cli: CliOf<typeof tenant.rekey>): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    const result = await ask('rekeyTenant', { params: { name: cli.get('<NAME>') } });
    await printThing(cli, result, [
      ['tenant', result.tenant],
      ['key epoch', result.epoch],
      ['files', result.complete ? 'all under the new key' : 'some still under an old key'],
    ]);
    if (!result.complete) await say(cli.io, 'run it again to go on; the next start of the server does so, too');
  });
}

/** Changes to an existing tenant. The environment is ignored here: its values are meant for other commands. */
function typedChanges(cli: Cli<{ '--name': string | undefined; '--host': readonly string[] }>): {
  name?: string;
  hosts?: readonly string[];
} {
  const name = cli.isTyped('--name') ? cli.get('--name') : undefined;
  return {
    ...(name === undefined ? {} : { name }),
    ...(cli.isTyped('--host') ? { hosts: cli.get('--host') } : {}),
  };
}

/** Undefined if the option was not typed; `none` stands for an empty list. */
function typedPolicy(cli: CliOf<typeof tenant.update>): readonly string[] | undefined {
  if (!cli.isTyped('--second-factor-for')) return undefined;
  const flags = cli.get('--second-factor-for');
  const [first, ...others] = flags;
  if (first !== 'none') return flags;
  if (others.length === 0) return [];
  throw new KmsError('usage', '--second-factor-for: none cannot be combined with flags');
}

/** Options and the limits they set. */
const limitOptions = [
  ['--keyrings', 'keyrings'],
  ['--keys-per-ring', 'keysPerRing'],
  ['--users', 'users'],
  ['--accounts', 'accounts'],
  ['--apikeys', 'apikeys'],
  ['--assets', 'assets'],
  ['--asset-versions', 'assetVersions'],
] as const;

function tenantPairs(tenant: TenantAnswer): readonly Pair[] {
  return [
    ['name', tenant.name],
    ['id', tenant.id],
    ['hosts', tenant.hosts.join(' ')],
    ['address', tenant.url],
    ['AWS account', tenant.awsAccount],
    ['limits', limitsOf(tenant) || 'none'],
    ['second factor', tenant.secondFactorFor.length > 0 ? `for ${tenant.secondFactorFor.join(' ')}` : undefined],
    ['custody', tenant.custody === 'client' ? 'client: no managed keys, no Tang pairs' : undefined],
    ['created', tenant.createdAt],
    ['updated', tenant.updatedAt],
    ['deleted', tenant.deletedAt],
    ['restorable until', tenant.restorableUntil],
  ];
}

const tenantColumns: readonly Column<TenantAnswer>[] = [
  { title: 'name', value: ({ name }) => name, name: true },
  { title: 'hosts', value: ({ hosts }) => hosts.join(' '), name: true },
  { title: 'limits', value: limitsOf, spare: true },
  { title: 'created', value: ({ createdAt }) => createdAt, short: true, spare: true },
  { title: 'id', value: ({ id }) => id, short: true, spare: true },
];

/** With the whole id, which `tenant restore` takes. */
const deletedColumns: readonly Column<TenantAnswer>[] = [
  { title: 'name', value: ({ name }) => name, name: true },
  { title: 'deleted', value: ({ deletedAt }) => deletedAt ?? '', short: true },
  { title: 'id', value: ({ id }) => id, whole: true },
  ...tenantColumns
    .filter(({ title }) => title !== 'name' && title !== 'id')
    .map((each) => ({ ...each, spare: true as const })),
];

function limitsOf({ limits }: TenantAnswer): string {
  return limitOptions
    .flatMap(([option, name]) => (limits[name] === undefined ? [] : [`${option.slice(2)}=${limits[name]}`]))
    .join(' ');
}
