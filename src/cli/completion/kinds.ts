// What may stand where the grammar has a placeholder: one of a few words, a file, a name that the appliance knows, or anything.
import type { Argument, Option } from 'commander';
import { askedKinds } from '../custodian-options.ts';
import type { GrammarCommand } from '../grammar-command.ts';
import { shells } from './scripts.ts';

export const nameKinds = [
  'account',
  'action',
  'api-key',
  'custodian',
  'flag',
  'profile',
  'ring',
  'tenant',
  'user',
] as const;

/** Words to choose from, a path, something that has a name, or undefined where anything goes. */
export type Kind = readonly string[] | 'file' | 'directory' | (typeof nameKinds)[number] | undefined;

const byPlaceholder: Readonly<Record<string, Kind>> = {
  BOOLEAN: ['true', 'false'],
  DIR: 'directory',
  FILE: 'file',
  FROM: 'file',
  'HEAD-FILE': 'file',
  OUT: 'file',
};

const byOption: Readonly<Record<string, Kind>> = {
  '--account': 'account',
  '--action': 'action',
  '--apikey': 'api-key',
  '--custodian': askedKinds,
  '--flag': 'flag',
  '--keyid': 'api-key',
  '--log-level': ['debug', 'info', 'warn', 'error', 'silent'],
  '--op': ['merge', 'replace', 'delete'],
  '--profile': 'profile',
  '--ring': 'ring',
  '--tenant': 'tenant',
};

/** By group and placeholder. */
const byArgument: Readonly<Record<string, Kind>> = {
  'account UID': 'account',
  'apikey KEYID': 'api-key',
  'completion SHELL': shells,
  'keyring NAME': 'ring',
  'master ID': 'custodian',
  'master KIND': askedKinds,
  'profile NAME': 'profile',
  'tenant NAME': 'tenant',
  'user USERNAME': 'user',
};

/** These make something whose name is new. */
const makers: ReadonlySet<string> = new Set(['add', 'create', 'invite']);

export function optionKind(option: Option): Kind {
  const [, placeholder = ''] = /<(.+)>/.exec(option.flags) ?? [];
  return byOption[option.long ?? ''] ?? byPlaceholder[placeholder];
}

export function argumentKind(command: GrammarCommand, argument: Argument): Kind {
  const placeholder = argument.name();
  if (makers.has(command.name())) return byPlaceholder[placeholder];
  const group = command.fullName().split(' ')[1] ?? '';
  return byArgument[`${group} ${placeholder}`] ?? byPlaceholder[placeholder];
}
