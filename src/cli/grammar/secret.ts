// The commands about secrets: JSON objects in versions, kept for software that asks for its keys by a path.
import {
  argument,
  assignments,
  atLeast,
  boolean,
  command,
  integer,
  integers,
  optionalArgument,
  required,
} from './declaration.ts';
import { destroying, output } from './option-sets.ts';

const path = { '<PATH>': argument('secret') };
const named = { ...path, '--version': integers('N', 'this version') };
const versions = { ...path, '--version': required(named['--version']) };

export const secret = {
  put: command(
    'put',
    'write the value of a secret, a JSON object in a file or on stdin: a new secret, or the next version of one',
    ['kms secret put kv-mongo/one value.json', 'vault kv get -format=json -field=data db | kms secret put db --cas 0'],
    {
      ...path,
      '[FILE]': optionalArgument('file'),
      '--cas': integer('N', 'only if the latest version is this one; 0: only if there is none'),
    },
  ),
  get: command(
    'get',
    'read the value of a secret: a JSON object, on stdout or in a file that only you can read',
    ['kms secret get kv-mongo/one', 'kms secret get kv-mongo/one --version 2 -o value.json'],
    { ...path, '--version': atLeast(1, integer('N', 'this version (default: the latest)')), ...output },
  ),
  list: command(
    'list',
    'list the secrets and folders in a folder; those of folders end with /',
    ['kms secret list', 'kms secret list kv-mongo'],
    { '[FOLDER]': optionalArgument('secret') },
  ),
  show: command('show', 'show a secret and its versions, without their values', ['kms secret show kv-mongo/one'], path),
  config: command(
    'config',
    'change the settings of a secret',
    ['kms secret config kv-mongo/one --max-versions 10 --cas-required true'],
    {
      ...path,
      '--max-versions': integer('N', 'versions that are kept; 0: 1,000. Older ones are destroyed at the next write'),
      '--cas-required': boolean('true|false', 'whether each write must name the version that it follows'),
      '--tag': assignments('NAME=VALUE', 'a text to find or sort it by; all tags are replaced, by none with "none"'),
    },
  ),
  remove: command(
    'delete',
    'delete a secret with all its versions, for 30 days restorable with `kms key restore`, or some versions',
    ['kms secret delete kv-mongo/one', 'kms secret delete kv-mongo/one --version 1 --version 2 --yes'],
    { ...named, ...destroying },
  ),
  undelete: command(
    'undelete',
    'bring back deleted versions of a secret',
    ['kms secret undelete kv-mongo/one --version 2'],
    versions,
  ),
  destroy: command(
    'destroy',
    'destroy versions of a secret for good',
    ['kms secret destroy kv-mongo/one --version 1 --yes'],
    { ...versions, ...destroying },
  ),
};
