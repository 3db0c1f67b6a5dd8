// The commands about accounts, `kms account …`.
import { argument, command, object, text } from './declaration.ts';
import { destroying, paged } from './option-sets.ts';

export const account = {
  create: command('create', 'make an account', ['kms account create billing --notes "the billing system"'], {
    '<UID>': argument(),
    '--notes': text('TEXT', 'notes'),
    '--props': object('JSON', 'free-form properties'),
  }),
  list: command('list', 'list accounts, newest first', ['kms account list'], {
    ...paged,
  }),
  show: command('show', 'show an account', ['kms account show billing'], {
    '<UID>': argument('account'),
  }),
  update: command(
    'update',
    'change an account; each given field is replaced as a whole',
    ['kms account update billing --notes "moved"'],
    {
      '<UID>': argument('account'),
      '--uid': text('UID', 'the new uid'),
      '--notes': text('TEXT', 'notes'),
      '--props': object('JSON', 'free-form properties'),
    },
  ),
  remove: command('delete', 'delete an account and its API keys', ['kms account delete billing'], {
    '<UID>': argument('account'),
    ...destroying,
  }),
};
