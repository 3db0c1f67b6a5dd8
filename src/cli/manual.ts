// The manual page kms(1), in man(7) macros: all of the help, on one page.
import type { Option } from 'commander';
import { version } from '../version.ts';
import type { GrammarCommand } from './command.ts';
import { describeOption, environmentName } from './grammar-option.ts';

export function manualPage(kms: GrammarCommand): string {
  const help = kms.createHelp();
  const purposes = Map.groupBy(kms.subcommands, (command) => command.helpGroup());
  const commands = [...purposes].flatMap(([purpose, group]) => [
    `.SS ${text(purpose.replace(/:$/, ''))}`,
    ...group.flatMap(commandEntry),
  ]);
  return `${[
    '.\\" Made by: kms man',
    `.TH KMS 1 "" "kms ${text(version)}" "kms"`,
    '.SH NAME',
    'kms \\- self\\-hosted key management in one executable',
    '.SH SYNOPSIS',
    '.B kms',
    '[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]',
    '.br',
    '.B kms',
    '\\fIcommand\\fR \\fB\\-\\-help\\fR',
    '.SH DESCRIPTION',
    filled(kms.description()),
    ...paragraphs.flatMap((paragraph) => ['.PP', filled(paragraph)]),
    '.SH OPTIONS',
    'For every command:',
    ...help.visibleOptions(kms).flatMap(optionEntry),
    '.SH COMMANDS',
    ...commands,
    '.SH EXIT STATUS',
    ...exits.flatMap(([code, meaning]) => ['.TP', `.B ${code}`, filled(meaning)]),
    '.SH ENVIRONMENT',
    filled('Every option can come from a variable: its name in capitals, with KMS_ in front. What is typed wins.'),
    ...variables.flatMap(([name, meaning]) => ['.TP', `.B ${text(name)}`, filled(meaning)]),
    '.SH FILES',
    ...files.flatMap(([path, what]) => ['.TP', `.I ${text(path)}`, filled(what)]),
    '.SH EXAMPLES',
    ...exampleLines(kms.examples).slice(1),
  ].join('\n')}\n`;
}

const paragraphs: readonly string[] = [
  'A command goes to the appliance that --server or --profile names, otherwise to that of KMS_SERVER or ' +
    'KMS_PROFILE, otherwise to that of KMS_DATA, otherwise to the default profile; without one, to ./kms-data where ' +
    'that is your own. On its own machine it uses the socket of the running server; if none runs, the command opens the data directory itself.',
  'People get tables and sentences on stdout; --json gives one JSON document. Progress, warnings and errors go to ' +
    'stderr, an error in one line.',
];

const exits: readonly (readonly [code: number, meaning: string])[] = [
  [0, 'Done.'],
  [1, 'Refused or failed; one line on stderr says what, why, and what to do.'],
  [2, 'Wrong usage.'],
  [3, 'Nothing reachable: no server, no data directory.'],
  [4, 'The appliance is sealed.'],
];

const variables: readonly (readonly [name: string, meaning: string])[] = [
  ['KMS_API_KEY', 'The API key for --server, if no --api-key-file is given.'],
  ['KMS_PASSPHRASE', 'The passphrase of the master key, if no --passphrase-file is given.'],
  ['KMS_DEBUG', 'When set, internal errors show where they occurred.'],
  ['NO_COLOR', 'When set, nothing is coloured. Without it, colour is used only on terminals.'],
  ['XDG_CONFIG_HOME', 'Where the private keys of rings and the profiles are (default: ~/.config).'],
  ['XDG_STATE_HOME', 'Where the last seen state of each appliance is kept (default: ~/.local/state).'],
];

const files: readonly (readonly [path: string, what: string])[] = [
  ['./kms-data', 'The data directory, unless --data names another.'],
  ['./kms-data/kms.sock', 'The socket of the running server. Anybody who can open it is the administrator.'],
  ['./kms-data.master.key', 'The master key, if a key file holds it. Without it nobody can open the data again.'],
  ['~/.config/kms/rings/', 'Private keys of keyrings, each in its own file, under the id of its appliance.'],
  ['~/.config/kms/asym/', 'Private keys of asym keyrings, likewise.'],
  ['~/.config/kms/profiles/', 'Profiles with their API keys.'],
  ['~/.local/state/kms/seen/', 'The state of each appliance when last used from here.'],
];

/** Entry of a command, or of each command of a group. */
function commandEntry(command: GrammarCommand): string[] {
  if (command.subcommands.length > 0) return command.subcommands.flatMap(commandEntry);
  const options = command.createHelp().visibleOptions(command);
  const own = options.filter(({ long }) => long !== '--help');
  const args = command.registeredArguments.map((argument) =>
    argument.required ? ` \\fI${text(argument.name())}\\fR` : ` [\\fI${text(argument.name())}\\fR]`,
  );
  return [
    '.TP',
    `\\fB${text(command.fullName())}\\fR${own.length > 0 ? ' [\\fIoptions\\fR]' : ''}${args.join('')}`,
    sentence(command.description()),
    ...(own.length > 0 ? ['.RS', ...own.flatMap(optionEntry), '.RE'] : []),
    '.RS',
    ...exampleLines(command.examples),
    '.RE',
  ];
}

function optionEntry(option: Option): string[] {
  const flags = option.flags.replace(/[<>]/g, '');
  const [, names = flags, placeholder = ''] = /^(.*--[\w-]+) ?(.*)$/.exec(flags) ?? [];
  const value = placeholder === '' ? '' : ` \\fI${text(placeholder)}\\fR`;
  const hasVariable = option.long !== '--help' && option.long !== '--version';
  const variable = hasVariable ? [`(\\fB${text(environmentName(option))}\\fR)`] : [];
  return ['.TP', `\\fB${text(names)}\\fR${value}`, filled(describeOption(option)), ...variable];
}

function exampleLines(examples: readonly string[]): string[] {
  return examples.length === 0 ? [] : ['.PP', '.nf', ...examples.map((example) => text(`$ ${example}`)), '.fi'];
}

function sentence(description: string): string {
  return filled(`${description.charAt(0).toUpperCase()}${description.slice(1)}.`);
}

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
  '"': '\\(dq',
};

/** A paragraph in lines of moderate length. */
function filled(plain: string): string {
  return text(plain)
    .replace(/(.{50,70}?) (?=\S)/g, '$1\n')
    .replace(/\n\./g, '\n\\&.');
}

/** Escapes text for roff, so that no line is taken for a request. */
function text(plain: string): string {
  const escaped = plain.replace(/[\\\-'`^~"]/g, (character) => escapes[character] ?? character);
  return escaped.startsWith('.') ? `\\&${escaped}` : escaped;
}
