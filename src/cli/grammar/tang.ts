// The commands about Tang key pairs, `kms tang …`.
import { argument, command } from './declaration.ts';
import { destroying } from './option-sets.ts';

export const tang = {
  list: command('list', 'list Tang key pairs, newest first, and when something was last recovered with each', [
    'kms tang list',
  ]),
  show: command('show', 'print the thumbprint of the pair that is advertised, for `thp` of clevis', ['kms tang show']),
  rotate: command('rotate', 'make a new pair and advertise it; what was bound to earlier ones can still be recovered', [
    'kms tang rotate',
  ]),
  remove: command(
    'delete',
    'delete a pair that is no longer advertised, for good',
    ['kms tang delete XzLd2sWQ0mYc6cVqkTn5fJb1uHgA9e8RrPoKxMZtSvE'],
    { '<THUMBPRINT>': argument('tang-pair'), ...destroying },
  ),
};
