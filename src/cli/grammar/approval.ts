// The commands about approvals, `kms approval …` and `kms approval rule …`.

import { KmsError } from '../../errors.ts';
import { parseAge } from '../../model/ages.ts';
import {
  approvalModes,
  longestWindow,
  presetNames,
  requestStates,
  shortestWindow,
} from '../../model/approval-rules.ts';
import {
  argument,
  atLeast,
  command,
  integer,
  type Kind,
  list,
  moment,
  oneOf,
  path,
  rest,
  someOf,
  text,
  toggle,
} from './declaration.ts';
import { destroying } from './option-sets.ts';

/** Seconds, or `once`. */
function window(placeholder: string, about: string): Kind<'once' | number | undefined> {
  return {
    placeholder,
    about,
    read(given, { name, seeHelp }) {
      if (typeof given !== 'string') return undefined;
      if (given === 'once') return given;
      const seconds = (parseAge(given) ?? 0) / 1000;
      if (Number.isInteger(seconds) && seconds >= shortestWindow && seconds <= longestWindow) return seconds;
      throw new KmsError('usage', `${name}: expected once, or 5m to 24h, got "${given}"`, { hint: seeHelp });
    },
  };
}

export const terms = {
  '--preset': someOf('NAME', 'the actions of this preset; see `kms approval rule presets`', presetNames),
  '--action': list('FLAG', 'an action, named by its permission flag, wildcards allowed', 'flag'),
  '--object': list('NAME', 'only on this object: a name or id, * for any characters (default: any object)'),
  '--approver': list('USER', 'a user who may approve', 'user'),
  '--approver-flag': text('FLAG', 'or: every user with this permission may approve', 'flag'),
  '--count': atLeast(1, integer('N', 'how many of them must approve (default: 1)')),
  '--mode': oneOf('MODE', 'ask: refuse at once (default); hold: wait for up to a minute first', approvalModes),
  '--window': window('once|AGE', 'good for one use (once, the default), or for repeated use within 5m to 24h'),
  '--breaker': list('USER', 'a user who may break the glass', 'user'),
  '--expires': moment('TIME|AGE', 'when the rule ends: a time, an age such as 90d from now, or never'),
};

const rule = { '<RULE>': argument() };

export const approvalRule = {
  create: command(
    'create',
    'make a rule: which actions need approval, by whom and by how many',
    [
      'kms approval rule create deletions --preset delete-keys --approver ada --approver grace --count 2',
      "kms approval rule create payroll --action 'key.payroll.*' --approver-flag approval.give --mode hold --window 1h",
    ],
    { '<NAME>': argument(), ...terms },
  ),
  list: command('list', 'list the rules that concern you, oldest first', ['kms approval rule list']),
  presets: command('presets', 'list presets: sets of actions for which rules are usually made', [
    'kms approval rule presets',
  ]),
  show: command('show', 'show a rule', ['kms approval rule show deletions'], rule),
  update: command(
    'update',
    'change a rule, which needs the approvals that it asks for itself; each given field is replaced as a whole',
    ['kms approval rule update deletions --count 3'],
    {
      ...rule,
      '--rename': text('NAME', 'call it this'),
      ...terms,
      '--clear-breakers': toggle('let no user break the glass'),
      '--vouch': toggle('vouch for all approvers as they are now'),
    },
  ),
  remove: command(
    'delete',
    'delete a rule, which needs the approvals that it asks for itself; asks first',
    ['kms approval rule delete deletions'],
    { ...rule, ...destroying },
  ),
};

const request = { '<ID>': argument() };
const requestId = 'appr_01kdyak3se5g95x5q7yjatpbfh';

/** A user's login in the terminal. */
export const userLogin = {
  '--user': text('USERNAME', 'log in as this user (default: asked for)', 'user'),
  '--password-file': path('FILE', "a file with the user's password (default: asked for, or a line of stdin)"),
};

export const approval = {
  list: command(
    'list',
    'list the requests that concern you, newest first; --inbox: oldest first',
    ['kms approval list --inbox', 'kms approval list --state granted --mine'],
    {
      '--state': oneOf('STATE', 'only those in this state', requestStates),
      '--mine': toggle('only those that you made'),
      '--inbox': toggle('only those that wait for your decision'),
      '--requester': text('ID', 'only those of this API key or user'),
      '--cursor': text('CURSOR', 'the page after the one that returned this cursor'),
    },
  ),
  show: command(
    'show',
    'show a request: what was asked for, by whom, and who approved it',
    [`kms approval show ${requestId}`],
    request,
  ),
  approve: command(
    'approve',
    'approve a request, as a user with a second factor from an app; add --reason to say why',
    [`kms approval approve ${requestId} --user ada --reason 'as agreed on Monday'`],
    { ...request, ...userLogin },
  ),
  deny: command('deny', 'deny a request, as a user, which ends it', [`kms approval deny ${requestId} --user ada`], {
    ...request,
    ...userLogin,
  }),
  withdraw: command('withdraw', 'withdraw a request of your own', [`kms approval withdraw ${requestId}`], request),
  breakGlass: command(
    'break-glass',
    "run a command without the approval that it needs, on the appliance's machine; everybody is told",
    ["kms approval break-glass --reason 'nobody is reachable, the key leaks' -- key delete payroll --yes"],
    {
      '[COMMAND...]': rest(),
      '--request': text(
        'ID',
        'instead of running a command: break the glass for this request, as a user whom its rules name',
      ),
      ...userLogin,
    },
  ),
  brokenGlass: command(
    'broken-glass',
    'list what was done by breaking the glass, starting with what is not acknowledged',
    ['kms approval broken-glass'],
  ),
  acknowledge: command(
    'acknowledge',
    'acknowledge that the glass was broken, which ends the alerts',
    [
      'kms approval acknowledge glass_01kdyak3se5g95x5q7yjatpbfj',
      'kms approval acknowledge glass_01kdyak3se5g95x5q7yjatpbfj --user ada',
    ],
    { '<ID>': argument(), ...userLogin, '--user': text('USERNAME', 'log in as this user', 'user') },
  ),
};
