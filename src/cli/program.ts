// The whole grammar of `kms`: each declaration in `grammar/` with the file of `commands/` that implements it, which is
// loaded on use.
import { version } from '../version.ts';
import { GrammarCommand, type Session } from './command.ts';
import { account } from './grammar/account.ts';
import { activity } from './grammar/activity.ts';
import { apikey } from './grammar/apikey.ts';
import { appliance, standing, upgrading } from './grammar/appliance.ts';
import { approval, approvalRule } from './grammar/approval.ts';
import { asCode } from './grammar/as-code.ts';
import { asset } from './grammar/asset.ts';
import { asym } from './grammar/asym.ts';
import { backup, copies } from './grammar/backup.ts';
import { files } from './grammar/files.ts';
import { health } from './grammar/health.ts';
import { helping } from './grammar/help.ts';
import { importing } from './grammar/import.ts';
import { key, keyAlias } from './grammar/key.ts';
import { keyTransfer, keyUse } from './grammar/key-use.ts';
import { keyring, keyringUpgrade } from './grammar/keyring.ts';
import { kmipClient } from './grammar/kmip.ts';
import { kit, master } from './grammar/master.ts';
import { oidc } from './grammar/oidc.ts';
import { globals } from './grammar/option-sets.ts';
import { age, agePlugin, kubernetes, plugged, provided, tofu, tofuProvider } from './grammar/other-software.ts';
import { profile } from './grammar/profile.ts';
import { proof, workload } from './grammar/proof.ts';
import { sealing } from './grammar/seal.ts';
import { secret } from './grammar/secret.ts';
import { tang } from './grammar/tang.ts';
import { tenant } from './grammar/tenant.ts';
import { tls } from './grammar/tls.ts';
import { user } from './grammar/user.ts';

export function program(session: Session): GrammarCommand {
  const kms = new GrammarCommand(session, 'kms')
    .description(
      'A key-management appliance: it issues encryption keys from keyrings, and encrypts and decrypts files with them.',
    )
    .version(version, '--version', 'show the version')
    .declare(globals)
    .addHelpText(
      'after',
      `
Every option can also come from the environment, under the name in brackets;
what is typed wins.
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 nothing reachable,
4 sealed.`,
    );
  kms.examples.push(
    'kms serve',
    'kms keyring create payroll',
    'kms encrypt --ring payroll -o report.pdf.kms report.pdf',
    'kms decrypt -o report.pdf report.pdf.kms',
  );
  addCommands(kms);
  kms.overview = () => overview(kms);
  return kms;
}

/** Adds commands in the order of `kms --help`. */
function addCommands(kms: GrammarCommand): void {
  kms.commandsGroup('Run an appliance:');
  kms.add(appliance, () => import('./commands/appliance.ts'));
  kms.add(health, () => import('./commands/health.ts'));
  kms.add(upgrading, () => import('./commands/upgrade.ts'));
  kms.group('tls', 'certificates for HTTPS').add(tls, () => import('./commands/tls.ts'));

  kms.commandsGroup('Encrypt and decrypt:');
  kms.add(files, () => import('./commands/files.ts'));
  kms
    .group('keyring', 'keyrings, which issue encryption keys')
    .add(keyring, () => import('./commands/keyring.ts'))
    .add(keyringUpgrade, () => import('./commands/keyring-upgrade.ts'));
  kms.group('asym', 'keyrings of the asym service').add(asym, () => import('./commands/asym.ts'));
  kms.group('asset', 'assets: signed records that headers carry').add(asset, () => import('./commands/asset.ts'));

  kms.commandsGroup('For other software:');
  const keys = kms.group('key', 'managed keys, which the appliance holds and works with for other software');
  keys.add(key, () => import('./commands/key.ts'));
  keys.group('alias', 'further names of managed keys').add(keyAlias, () => import('./commands/key-alias.ts'));
  keys.add(keyTransfer, () => import('./commands/key-transfer.ts')).add(keyUse, () => import('./commands/key-use.ts'));
  kms
    .group('secret', 'secrets: JSON objects in versions, for software that asks for its keys by a path')
    .add(secret, () => import('./commands/secret.ts'));
  kms.group('import', 'keys of other systems, taken over').add(importing, () => import('./commands/import-vault.ts'));
  kms
    .group('tang', 'key pairs by which machines unlock their disks on the network, with clevis')
    .add(tang, () => import('./commands/tang.ts'));
  kms
    .group('kmip', 'clients of KMIP: databases, storage, backup and hypervisors')
    .group('client', 'API keys of such clients')
    .add(kmipClient, () => import('./commands/kmip.ts'));
  kms.group('age', 'keyrings for age and what uses it').add(age, () => import('./commands/age.ts'));
  kms.group('age-plugin', 'the plugin by which age uses keyrings').add(agePlugin, () => import('./commands/age.ts'));
  kms.add(tofu, () => import('./commands/tofu.ts'));
  kms
    .group('tofu-provider', 'the provider by which OpenTofu and Terraform make what is in the appliance')
    .add(tofuProvider, () => import('./commands/provider.ts'));
  kms.add(kubernetes, () => import('./commands/kubernetes.ts'));
  kms.add(plugged, () => import('./commands/age.ts'));
  kms.add(provided, () => import('./commands/provider.ts'));

  kms.commandsGroup('Access and activity:');
  kms.group('account', 'accounts, which own API keys').add(account, () => import('./commands/account.ts'));
  const apiKeys = kms.group('apikey', 'API keys, with which programs authenticate');
  apiKeys.add(apikey, () => import('./commands/apikey.ts')).add(workload, () => import('./commands/proof.ts'));
  apiKeys.group('proof', 'ways to prove an API key besides its secret').add(proof, () => import('./commands/proof.ts'));
  kms.group('user', 'users: people who log in').add(user, () => import('./commands/user.ts'));
  const tenants = kms.group('tenant', 'tenants: each has its own address, data and keys');
  tenants.add(tenant, () => import('./commands/tenant.ts'));
  tenants
    .group('oidc', 'logins with an identity provider (OpenID Connect)')
    .add(oidc, () => import('./commands/oidc.ts'));
  const approvals = kms.group('approval', 'approvals: requests that need the approval of others');
  approvals
    .group('rule', 'which actions need approval, and by whom')
    .add(approvalRule, () => import('./commands/approval-rule.ts'));
  approvals.add(approval, () => import('./commands/approval.ts'));
  kms
    .group('activity', 'activity: who did what, granted or denied')
    .add(activity, () => import('./commands/activity.ts'));

  kms.commandsGroup('Configuration as code:');
  kms.add(asCode, () => import('./commands/as-code.ts'));

  kms.commandsGroup('Master key:');
  kms.add(sealing, () => import('./commands/seal.ts'));
  kms.group('master', 'the master key, and who holds it').add(master, () => import('./commands/master.ts'));
  kms.add(kit, () => import('./commands/master.ts'));

  kms.commandsGroup('Copies of the appliance:');
  kms
    .group('backup', 'sealed copies of the whole appliance, which can be stored anywhere')
    .add(backup, () => import('./commands/backup.ts'));
  kms.add(copies, () => import('./commands/backup.ts'));
  kms.add(standing, () => import('./commands/standby.ts'));

  kms.commandsGroup('This command line:');
  kms
    .group('profile', 'profiles: remote appliances by name, with their credentials')
    .add(profile, () => import('./commands/profile.ts'));
  kms.add(helping, () => import('./commands/help.ts'));
}

/** `kms` alone: every command by its name, on one screen. */
function overview(kms: GrammarCommand): string {
  const purposes = Map.groupBy(kms.subcommands, (command) => command.helpGroup());
  const room = Math.max(...[...purposes.keys()].map((purpose) => purpose.length)) + 3;
  const lines = [...purposes].map(([purpose, commands]) => {
    const names = commands.map((command) => command.name()).join('  ');
    return `  ${purpose.replace(/:$/, '').padEnd(room - 2)}${wrapped(names, screenWidth - room, room)}`;
  });
  return `Usage: kms COMMAND [OPTIONS]

To begin:
${kms.examples.map((example) => `  $ ${example}`).join('\n')}

Commands:
${lines.join('\n')}

\`kms COMMAND --help\` shows one, \`kms --help\` all of them with their options.
`;
}

const screenWidth = 80;

/** Words in lines of at most `width`, the later ones behind `indent` spaces. */
function wrapped(words: string, width: number, indent: number): string {
  return words.replace(new RegExp(`(?=.{${width + 1}})(.{1,${width}}\\S) +`, 'g'), `$1\n${' '.repeat(indent)}`);
}
