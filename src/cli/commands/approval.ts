// Commands for approval requests, approving and denying them, and broken glass.
import type { ApprovalRequest, BrokenGlass } from '../../api/approvals.ts';
import type { Client } from '../../client/client.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { withClient } from '../connect.ts';
import type { approval, userLogin } from '../grammar/approval.ts';
import { say } from '../io.ts';
import { type Pair, printJson, printLine, printTable, printThing } from '../output.ts';
import type { Column } from '../table.ts';
import { namedRemote } from '../target.ts';
import { visible } from '../text.ts';
import { asUser, consolePage, noCode } from '../user-session.ts';
import { timeText } from './apikey.ts';
import { windowText } from './approval-rule.ts';

export async function list(cli: CliOf<typeof approval.list>): Promise<void> {
  const filters = given({
    state: cli.get('--state'),
    mine: cli.get('--mine') ? ('true' as const) : undefined,
    inbox: cli.get('--inbox') ? ('true' as const) : undefined,
    requester: cli.get('--requester'),
    cursor: cli.get('--cursor'),
  });
  await withClient(cli, async (client) => {
    const answer = await client.listApprovalRequests(filters);
    if (cli.json) return printJson(cli, answer);
    if (answer.requests.length === 0) return say(cli.io, 'no requests');
    await printTable(cli, answer.requests, requestColumns);
    const { nextCursor } = answer;
    if (nextCursor !== undefined) await say(cli.io, `there is more: add --cursor ${visible(nextCursor)}`);
  });
}

const requestColumns: readonly Column<ApprovalRequest>[] = [
  { title: 'id', value: ({ id }) => id, whole: true },
  { title: 'state', value: ({ state }) => state, whole: true },
  { title: 'approvals', value: ({ given, needed }) => `${given} of ${needed}`, whole: true },
  { title: 'action', value: ({ action }) => action, name: true },
  { title: 'on', value: ({ object }) => (object ? thingText(object) : ''), name: true },
  { title: 'asked by', value: ({ requester }) => personText(requester), name: true },
  { title: 'asked', value: ({ createdAt }) => timeText(createdAt), short: true, spare: true },
  { title: 'ends', value: ({ expiresAt }) => timeText(expiresAt), short: true, spare: true },
];

export async function show(cli: CliOf<typeof approval.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const request = await client.getApprovalRequest({ id: cli.get('<ID>') });
    await printThing(cli, request, requestPairs(request));
  });
}

export async function approve(cli: CliOf<typeof approval.approve>): Promise<void> {
  const id = cli.get('<ID>');
  const reason = reasonOf(cli);
  await saying(cli, id, (client, code) => client.approveRequest({ id, ...given({ reason, code }) }));
}

export async function deny(cli: CliOf<typeof approval.deny>): Promise<void> {
  const id = cli.get('<ID>');
  const reason = reasonOf(cli);
  await saying(cli, id, (client, code) => client.denyRequest({ id, ...given({ reason, code }) }));
}

type Say = (client: Client, code?: string) => Promise<ApprovalRequest>;

/** Decides as a user, with a code unless the login just proved a second factor, and prints the request. */
async function saying(cli: CliOf<typeof userLogin>, id: string, say: Say): Promise<void> {
  const page = `/console/approvals/${encodeURIComponent(id)}`;
  const request = await asUser(cli, page, async ({ client, connection, code }) => {
    const { fresh, secondFactor } = await client.getApprovalOptions({ id });
    if (fresh) return say(client);
    if (!secondFactor.includes('totp')) throw noCode(secondFactor, consolePage(connection, page));
    return say(client, await code());
  });
  await printThing(cli, request, requestPairs(request));
}

export async function withdraw(cli: CliOf<typeof approval.withdraw>): Promise<void> {
  await withClient(cli, async (client) => {
    const request = await client.withdrawRequest({ id: cli.get('<ID>') });
    await printThing(cli, request, requestPairs(request));
  });
}

/**
 * Runs a command as the administrator at the machine, with the reason for breaking the glass in each of its requests;
 * or breaks the glass for a request, as a user.
 */
export async function breakGlass(cli: CliOf<typeof approval.breakGlass>): Promise<number> {
  const words = cli.get('[COMMAND...]');
  const id = cli.get('--request');
  const reason = reasonOf(cli);
  if (reason === undefined) throw cli.wrong('--reason is missing');
  if ((id === undefined) === (words.length === 0)) {
    throw cli.wrong('expected a command after --, or --request ID');
  }
  if (id !== undefined) {
    await saying(cli, id, (client, code) => client.breakGlass({ id, reason, ...given({ code }) }));
    return 0;
  }
  const remote = namedRemote(cli);
  if (remote !== undefined) {
    const option = remote.server === undefined ? '--profile' : '--server';
    throw cli.wrong(
      `this works on the machine of the appliance only, not with ${option}; a user can, with --request ID`,
    );
  }
  return cli.run(words[0] === 'kms' ? words.slice(1) : words, { breakingGlass: reason });
}

export async function brokenGlass(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.listBrokenGlass();
    if (cli.json) return printJson(cli, answer);
    if (answer.broken.length === 0) return say(cli.io, 'the glass was never broken');
    await printTable(cli, answer.broken, [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'time', value: ({ at }) => timeText(at), short: true },
      { title: 'by', value: ({ by }) => personText(by), name: true },
      { title: 'action', value: ({ action }) => action, name: true },
      { title: 'on', value: ({ object }) => (object ? thingText(object) : ''), name: true },
      {
        title: 'acknowledged',
        value: acknowledgedText,
        name: true,
        isRed: ({ acknowledged }) => acknowledged === null,
      },
      { title: 'reason', value: ({ reason }) => reason, spare: true },
    ]);
  });
}

export async function acknowledge(cli: CliOf<typeof approval.acknowledge>): Promise<void> {
  const id = cli.get('<ID>');
  const acknowledging = (client: Client) => client.acknowledgeBrokenGlass({ id });
  const broken =
    cli.get('--user') === undefined
      ? await withClient(cli, acknowledging)
      : await asUser(cli, '/console/approvals/broken-glass', ({ client }) => acknowledging(client));
  if (cli.json) return printJson(cli, broken);
  await printLine(cli, `${broken.id} is acknowledged; it was broken by ${personText(broken.by)}: ${broken.reason}`);
}

/** The global --reason. */
function reasonOf(cli: Cli): string | undefined {
  return cli.globals.get('--reason');
}

interface Person {
  readonly id: string;
  readonly name: string;
}

function personText({ id, name }: Person): string {
  return name || id;
}

function thingText({ type, id, name }: NonNullable<ApprovalRequest['object']>): string {
  return `${type} ${name ?? id}`;
}

function acknowledgedText({ acknowledged }: BrokenGlass): string {
  return acknowledged === null ? 'NO' : personText(acknowledged.by);
}

function requestPairs(request: ApprovalRequest): readonly Pair[] {
  const { requester, object, shown, effects, rules, words, broken, uses, may } = request;
  const code = (value: object): string | undefined =>
    Object.keys(value).length > 0 ? JSON.stringify(value) : undefined;
  return [
    ['id', request.id],
    ['state', broken ? `${request.state}, by broken glass` : request.state],
    ['approvals', `${request.given} of ${request.needed}`],
    ['action', request.action],
    ['counts as', request.actions.filter((each) => each !== request.action).join(' ') || undefined],
    ['operation', request.operation],
    ['on', object ? `${thingText(object)}${object.name === undefined ? '' : ` (${object.id})`}` : undefined],
    ['asked by', requester.name ? `${requester.name} (${requester.id})` : requester.id],
    ['from', request.address],
    ['dialect', request.dialect],
    ['reason', request.reason],
    ['asked', timeText(request.createdAt)],
    ['ends', timeText(request.expiresAt)],
    ...shown.further.map(
      ({ action, object: thing }): Pair => ['and', thing ? `${action}, on ${thingText(thing)} (${thing.id})` : action],
    ),
    ['parameters', code(shown.parameters)],
    ['body', shown.body ? code(shown.body) : 'any'],
    ['changes', effects.changed.join(', ') || undefined],
    ['grants', flagsText(effects.granted, effects.grantedCount)],
    ['revokes', flagsText(effects.revoked, effects.revokedCount)],
    ['before', effects.before && code(effects.before)],
    ['after', effects.after && code(effects.after)],
    ...(effects.vouched ?? []).map(
      ({ id, name, reached }): Pair => [
        'vouches for',
        `${name || id}${reached ? ', to whose account the requester could have had access' : ''}`,
      ],
    ),
    ...effects.objects.map((each): Pair => ['along with', thingText(each)]),
    ['along with', effects.objectCount && `${effects.objectCount - effects.objects.length} more`],
    ['vouches for', effects.vouchedCount && `${effects.vouchedCount - (effects.vouched ?? []).length} more`],
    ...(effects.dependents ?? []).map(
      ({ by, operation, uses: times, lastUsedAt }): Pair => [
        'used by',
        `${personText(by)}: ${operation}, ${times === 1 ? 'once' : `${times} times`}, last ${timeText(lastUsedAt)}`,
      ],
    ),
    ...rules.map(
      ({ name, given: has, count, window }): Pair => ['rule', `${name}: ${has} of ${count}, ${windowText(window)}`],
    ),
    ...words.map((word): Pair => ['decision', decisionText(word)]),
    ['done', uses === 0 ? undefined : uses === 1 ? 'once' : `${uses} times`],
    ['digest', request.digest],
    ['you', may.problem],
  ];
}

function decisionText({
  by,
  verdict,
  factor,
  signed,
  reason,
  counts,
  problem,
  at,
}: ApprovalRequest['words'][number]): string {
  const proof = signed ? 'signed by a passkey' : factor === 'totp' ? 'with a code' : 'after a login by passkey';
  const why = reason === undefined ? '' : `: ${reason}`;
  const not = counts ? '' : `; does not count: ${problem ?? ''}`;
  return `${verdict === 'approve' ? 'approved' : 'denied'} by ${personText(by)}, ${timeText(at)}, ${proof}${why}${not}`;
}

/** Flags, and how many more there are. */
function flagsText(names: readonly string[], count = names.length): string | undefined {
  const more = count > names.length ? [`and ${count - names.length} more`] : [];
  return [...names, ...more].join(', ') || undefined;
}
