// Suggestions for commands and options that do not exist: words that other programs use, commands of a group typed
// without it, and names that are nearly right.
import { nearest } from '../model/nearest.ts';

/** A command of the grammar. */
interface Grammar {
  readonly options: readonly { readonly long?: string | undefined }[];
  readonly subcommands: readonly Grammar[];
  readonly root: Grammar;
  name(): string;
  aliases(): readonly string[];
  fullName(): string;
}

/** Options under the names that they have in other programs. */
const optionWords: Readonly<Record<string, string>> = {
  '--port': '--listen',
  '--bind': '--listen',
  '--addr': '--listen',
  '--address': '--listen',
  '--http': '--listen',
  '--cert': '--tls-cert',
  '--force': '--yes',
  '--key': '--api-key-file',
  '--api-key': '--api-key-file',
  '--token': '--api-key-file',
  '--keyring': '--ring',
  '--permission': '--flag',
  '--ttl': '--expires',
  '--data-dir': '--data',
};

/** The option of this command that an option of another program stands for, or the only one that begins so. */
export function optionMeant(command: Grammar, typed: string): string | undefined {
  const known = [command, command.root].flatMap(({ options }) => options.flatMap(({ long }) => long ?? []));
  const meant = optionWords[typed];
  if (meant !== undefined) return known.includes(meant) ? meant : undefined;
  const longer = /^--[a-z]{2}/.test(typed) ? known.filter((long) => long.startsWith(`${typed}-`)) : [];
  return new Set(longer).size === 1 ? longer[0] : undefined;
}

/** Commands under names that they had before, or have in other programs. */
const commandWords: Readonly<Record<string, string>> = {
  transit: 'key',
  kv: 'secret',
  secrets: 'secret',
  start: 'serve',
  server: 'serve',
  login: 'profile',
  token: 'apikey',
};

const mostSuggested = 4;

/** For a word that is no command of the root: the command in other words, or the groups' commands of that name. */
export function commandMeant(root: Grammar, typed: string): string | undefined {
  const word = commandWords[typed];
  if (word !== undefined) return word;
  const found = root.subcommands.flatMap((group) =>
    group.subcommands.filter((each) => each.name() === typed || each.aliases().includes(typed)),
  );
  const names = found.map((each) => each.fullName().replace(/^kms /, ''));
  if (names.length < 2) return names[0];
  return `one of ${names.slice(0, mostSuggested).join(', ')}${names.length > mostSuggested ? ', …' : ''}`;
}

/** The same, or the name that is nearly right. */
export function commandNear(command: Grammar, typed: string, others: readonly string[] = []): string | undefined {
  const meant = command === command.root ? commandMeant(command, typed) : undefined;
  return meant ?? nearest(typed, [...command.subcommands.map((each) => each.name()), ...others]);
}
