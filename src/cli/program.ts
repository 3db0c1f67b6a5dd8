// The whole grammar of `kms`, put together from `grammar/`. What a command does is in `commands/<noun>/<verb>.ts`, loaded when
// it is used.
import { version } from '../version.ts';
import { accounts, activity, apiKeys } from './grammar/access.ts';
import { backups } from './grammar/backup.ts';
import { commandLine } from './grammar/command-line.ts';
import { custody } from './grammar/custody.ts';
import { files } from './grammar/files.ts';
import { life } from './grammar/life.ts';
import { machine } from './grammar/machine.ts';
import { assets, asym, keyrings } from './grammar/rings.ts';
import { tenants, users } from './grammar/tenants-users.ts';
import { GrammarCommand, type Session } from './grammar-command.ts';

export function program(session: Session): GrammarCommand {
  const kms = new GrammarCommand(session, 'kms')
    .description(
      'A key-management appliance: it issues encryption keys from keyrings, and encrypts and decrypts files with them.',
    )
    .version(version, '--version', 'show the version')
    .option('--data <DIR>', 'the data directory (default: ./kms-data)')
    .option('--tenant <NAME>', 'the tenant (default: the only one)')
    .option('--server <URL>', 'use the appliance at this address instead of the one on this machine')
    .option('--api-key-file <FILE>', 'the API key for --server; or put the key itself into KMS_API_KEY')
    .option('--profile <NAME>', 'use the appliance that `kms profile add` gave this name')
    .option('--ca-file <FILE>', 'the authorities that --server is trusted by, PEM (default: the well-known ones)')
    .option('--key-file <FILE>', 'the file with the master key, or with a recovery kit')
    .option('--passphrase-file <FILE>', 'the passphrase of the master key; or put it into KMS_PASSPHRASE')
    .option('--json', 'print one JSON document instead of tables and sentences')
    .addHelpText(
      'after',
      `
Every option can also come from the environment, under the name in brackets; what is typed wins.
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 nothing reachable, 4 sealed.`,
    );
  kms.examples.push(
    'kms serve',
    'kms keyring create payroll',
    'kms encrypt --ring payroll -o report.pdf.kms report.pdf',
    'kms decrypt -o report.pdf report.pdf.kms',
  );
  for (const [purpose, parts] of purposes) {
    kms.commandsGroup(`${purpose}:`);
    for (const part of parts) part(kms);
  }
  return kms;
}

/** The commands as `kms --help` has them. */
const purposes: readonly (readonly [purpose: string, parts: readonly ((kms: GrammarCommand) => void)[]])[] = [
  ['Run an appliance', [life, machine]],
  ['Encrypt and decrypt', [files, keyrings, asym, assets]],
  ['Who may do what, and who did', [accounts, apiKeys, users, tenants, activity]],
  ['Master key', [custody]],
  ['Copies of the appliance', [backups]],
  ['This command line', [commandLine]],
];
