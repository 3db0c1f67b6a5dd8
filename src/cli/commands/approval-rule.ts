// Commands for approval rules: which actions need approval, and by whom.
import type { ApprovalRule } from '../../api/approvals.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { unmetWarning } from '../as-code/kinds/rule.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import type { approvalRule, terms } from '../grammar/approval.ts';
import { say } from '../io.ts';
import { type Pair, printJson, printLine, printTable, printThing } from '../output.ts';
import { timeText } from './apikey.ts';

type Terms = CliOf<typeof terms>;

export async function create(cli: CliOf<typeof approvalRule.create>): Promise<void> {
  const approvers = approversOf(cli);
  if (!approvers) throw cli.wrong('expected approvers: --approver USER, once or more, or --approver-flag FLAG');
  needActs(cli);
  await withClient(cli, async (client) => {
    const actions = await actionsOf(cli, client);
    const rule = await client.createApprovalRule({
      name: cli.get('<NAME>'),
      actions: actions ?? [],
      approvers,
      ...given(termsOf(cli)),
    });
    await printThing(cli, rule, rulePairs(rule));
    await warnOfAble(cli, rule);
  });
}

export async function list(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.listApprovalRules();
    if (cli.json) return printJson(cli, answer);
    if (answer.rules.length === 0) return say(cli.io, 'no rules concern you');
    await printTable(cli, answer.rules, [
      { title: 'name', value: ({ name }) => name, name: true },
      { title: 'approvals', value: ({ count }) => count },
      { title: 'by', value: approversText, name: true },
      { title: 'mode', value: ({ mode }) => mode, whole: true, spare: true },
      { title: 'window', value: ({ window }) => windowText(window), whole: true },
      { title: 'actions', value: ({ actions }) => actions.join(' '), spare: true },
      { title: 'expires', value: ({ expires }) => timeText(expires), short: true, spare: true },
      { title: 'id', value: ({ id }) => id, short: true, spare: true },
    ]);
  });
}

export async function presets(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.listApprovalPresets();
    if (cli.json) return printJson(cli, answer);
    await printTable(cli, answer.presets, [
      { title: 'name', value: ({ name }) => name, whole: true },
      { title: 'for', value: ({ title }) => title, name: true },
      { title: 'actions', value: ({ actions }) => actions.join(' '), spare: true },
    ]);
  });
}

export async function show(cli: CliOf<typeof approvalRule.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const rule = await client.getApprovalRule({ id: cli.get('<RULE>') });
    await printThing(cli, rule, rulePairs(rule));
  });
}

export async function update(cli: CliOf<typeof approvalRule.update>): Promise<void> {
  const none = cli.get('--clear-breakers');
  if (none && cli.get('--breaker').length > 0) throw cli.wrong('--breaker and --clear-breakers exclude each other');
  const isOfActs = cli.get('--preset').length > 0 || cli.get('--action').length > 0;
  const changes = given({
    name: cli.get('--rename'),
    approvers: approversOf(cli),
    ...termsOf(cli),
    ...(none && { breakers: [] }),
    ...(cli.get('--vouch') && { vouch: true as const }),
  });
  if (Object.keys(changes).length === 0 && !isOfActs) {
    throw new KmsError('usage', 'nothing to change', { hint: cli.seeHelp });
  }
  await withClient(cli, async (client) => {
    const actions = await actionsOf(cli, client);
    const rule = await client.updateApprovalRule({ id: cli.get('<RULE>'), ...changes, ...(actions && { actions }) });
    await printThing(cli, rule, rulePairs(rule));
    await warnOfAble(cli, rule);
  });
}

export async function remove(cli: CliOf<typeof approvalRule.remove>): Promise<void> {
  const id = cli.get('<RULE>');
  const details = (): Promise<readonly string[]> =>
    detailsFrom(cli, async (client) => {
      const { actions, count } = await client.getApprovalRule({ id });
      return [`Until now ${approvalsText(count)} needed for: ${actions.join(' ')}`];
    });
  await confirm(cli, `deletes the rule ${id}: what it covers then needs no approval`, { details });
  await withClient(cli, async (client) => {
    const answer = await client.deleteApprovalRule({ id });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `the rule ${id} is deleted`);
  });
}

function approvalsText(count: number): string {
  return count === 1 ? 'one approval is' : `${count} approvals are`;
}

function needActs(cli: Terms): void {
  if (cli.get('--preset').length > 0 || cli.get('--action').length > 0) return;
  throw cli.wrong('expected actions: --preset NAME or --action FLAG, once or more');
}

/** The actions of presets and the further ones; undefined if none are given. */
async function actionsOf(cli: Terms, client: Client): Promise<string[] | undefined> {
  const names = cli.get('--preset');
  const further = cli.get('--action');
  if (names.length === 0) return further.length > 0 ? [...further] : undefined;
  const { presets } = await client.listApprovalPresets();
  const actions = names.flatMap((name) => {
    const preset = presets.find((each) => each.name === name);
    if (!preset) throw new KmsError('not-found', `the appliance knows no preset ${name}`);
    return preset.actions;
  });
  return [...new Set([...actions, ...further])];
}

function approversOf(cli: Terms): { users: string[] } | { flag: string } | undefined {
  const users = cli.get('--approver');
  const flag = cli.get('--approver-flag');
  if (flag !== undefined && users.length > 0) throw cli.wrong('--approver and --approver-flag exclude each other');
  if (flag !== undefined) return { flag };
  return users.length > 0 ? { users: [...users] } : undefined;
}

function termsOf(cli: Terms) {
  const some = (texts: readonly string[]): string[] | undefined => (texts.length > 0 ? [...texts] : undefined);
  return {
    objects: some(cli.get('--object')),
    count: cli.get('--count'),
    mode: cli.get('--mode'),
    window: cli.get('--window'),
    breakers: some(cli.get('--breaker')),
    expires: cli.get('--expires'),
  };
}

async function warnOfAble(cli: Cli, rule: ApprovalRule): Promise<void> {
  const warning = unmetWarning(rule);
  if (warning !== undefined) await say(cli.io, `warning: ${warning}`);
}

function approversText({ approvers: { users, flag } }: ApprovalRule): string {
  return users ? users.map(({ name, id }) => name || id).join(' ') : `all with ${flag}`;
}

/** Seconds in words. */
export function windowText(window: 'once' | number): string {
  if (window === 'once') return window;
  return window % 3600 === 0 ? `${window / 3600}h` : window % 60 === 0 ? `${window / 60}m` : `${window}s`;
}

function rulePairs(rule: ApprovalRule): readonly Pair[] {
  return [
    ['name', rule.name],
    ['id', rule.id],
    ['actions', rule.actions.join(' ')],
    ['on', rule.objects.join(' ') === '*' ? 'anything' : rule.objects.join(' ')],
    ['approvals needed', rule.count],
    ['approvers', approversText(rule)],
    ['able now', rule.able],
    ['mode', rule.mode],
    ['window', windowText(rule.window)],
    [
      'may break the glass',
      rule.breakers.map(({ name, id }) => name || id).join(' ') || 'only the administrator at the machine',
    ],
    ['expires', timeText(rule.expires)],
    ['created', timeText(rule.createdAt)],
    ['changed', timeText(rule.updatedAt)],
  ];
}
