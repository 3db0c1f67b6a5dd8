// Activity log commands: search, show, verify and export; and its heads, which an auditor keeps elsewhere, so that
// removing records up to one is noticed.

import type { Activity } from '../../api/activity.ts';
import { paths } from '../../api/paths.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { detailsIn, proofChangeText, provedIn, type ResourceRef } from '../../model/activity-details.ts';
import { callersMeant, sayOfExcluded, sayOfFilters } from '../activity-filters.ts';
import { watchActivity } from '../activity-watch.ts';
import { Callers } from '../caller-names.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { type Connection, localOf, send, withClient } from '../connect.ts';
import { readSmallFile } from '../files.ts';
import type { activity } from '../grammar/activity.ts';
import { mustReachStdout, write } from '../io.ts';
import { type Pair, printJson, printLine, printList, printThing, timeOn } from '../output.ts';
import { type Lines, openInput, openOutput, transfer, withProgress, writesToStdout } from '../streams.ts';
import type { Column } from '../table.ts';
import { approvalLines, type VerifiedApprovals } from '../verified-approvals.ts';

export async function search(cli: CliOf<typeof activity.search>): Promise<void> {
  if (cli.get('--watch')) return watchActivity(cli, (client) => filtersOf(cli, client), activityColumns);
  cli.refuseWithout('--watch', ['--every']);
  if (cli.get('--limit') === 0) throw cli.wrong('--limit: expected at least 1, got 0');
  await withClient(cli, async (client) => {
    const filters = await filtersOf(cli, client);
    const callers = new Callers(cli, client);
    await printList(cli, client.searchActivity, filters, {
      columns: activityColumns(callers),
      before: (records) => callers.meet(records.map(({ keyid }) => keyid)),
      empty: 'no activity matches',
      onEmpty: () => sayOfFilters(cli, client),
      usual: cli.get('--all') ? undefined : 100,
    });
  });
}

/** The filters with the ids of callers, and a word on stderr about callers that do not exist. */
async function filtersOf(cli: CliOf<typeof activity.search>, client: Client) {
  const beside = (['--keyid', '--account', '--ring', '--object'] as const).find((option) => cli.isTyped(option));
  if (cli.isTyped('--about') && beside !== undefined) throw cli.wrong(`--about and ${beside} exclude each other`);
  const { keyid, excluded, doubts } = await callersMeant(cli, client);
  await sayOfExcluded(cli, doubts);
  const exclude = given({ keyid: excluded, action: cli.get('--exclude-action') });
  return given({
    // Sent as UID, so that only the search's flag is needed.
    accountUid: cli.get('--account'),
    keyid,
    action: cli.get('--action'),
    ring: cli.get('--ring'),
    valid: cli.get('--valid'),
    start: cli.get('--start'),
    end: cli.get('--end'),
    props: cli.get('--contains'),
    object: cli.get('--object'),
    about: cli.get('--about'),
    address: cli.get('--address'),
    granted: cli.get('--granted'),
    revoked: cli.get('--revoked'),
    exclude: Object.keys(exclude).length > 0 ? exclude : undefined,
  });
}

export async function show(cli: CliOf<typeof activity.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const activity = await client.getActivity({ id: cli.get('<ID>') });
    const callers = new Callers(cli, client);
    await callers.meet([activity.keyid, activity.reporter]);
    await printThing(cli, activity, activityPairs(activity, callers));
  });
}

function activityPairs(activity: Activity, callers: Callers): readonly Pair[] {
  return [
    ['id', activity.id],
    ['time', time(activity)],
    ['by', callers.whole(activity.keyid)],
    ...proofPairs(activity),
    ['from', activity.address],
    ['action', activity.action],
    ['ring', activity.ringname],
    ['verdict', verdict(activity)],
    ['status', activity.status],
    ['reported by', activity.reporter && callers.whole(activity.reporter)],
    ...deedPairs(activity),
    ['props', JSON.stringify(activity.props)],
  ];
}

/** How the caller was proved, and which check refused its token. */
function proofPairs({ props, reporter }: Activity): readonly Pair[] {
  const { proof, subject, refusedBy, olderProof, olderProofOf } = reporter === undefined ? provedIn(props) : {};
  return [
    ['proved by', subject],
    ['proof', proof],
    ['refused by', refusedBy && `the check ${refusedBy}`],
    ['it is', olderProof && `the older proof ${olderProof} of the API key ${olderProofOf}`],
  ];
}

/** Pairs for the deed of a record that the appliance made itself. */
function deedPairs({ props, reporter }: Activity): readonly Pair[] {
  if (reporter !== undefined) return [];
  const {
    object,
    objects = [],
    objectCount = objects.length,
    changed = [],
    keyVersion,
    fromKeyVersion,
    proofChange,
    granted = [],
    revoked = [],
  } = detailsIn(props);
  const more = objectCount - objects.length;
  return [
    ['about', object && thingText(object)],
    ...objects.map((each): Pair => ['along with', thingText(each)]),
    ['along with', more > 0 ? `${more} more` : undefined],
    ['key version', keyVersion],
    ['from version', fromKeyVersion],
    ['the proof was', proofChange && proofChangeText(proofChange)],
    ['changed', changed.join(', ') || undefined],
    ['granted', granted.join(', ') || undefined],
    ['revoked', revoked.join(', ') || undefined],
  ];
}

function thingText({ type, id, name }: ResourceRef): string {
  return name === undefined ? `${type} ${id}` : `${type} ${name} (${id})`;
}

/** The object in one word: its name, or its id. For a login of a program, the program. */
function about({ action, props, reporter }: Activity): string {
  if (reporter !== undefined) return '';
  const { object, objects = [] } = detailsIn(props);
  const first = object ?? objects[0];
  if (first) return `${first.type} ${first.name ?? first.id}`;
  const { subject } = provedIn(props);
  return action === 'session.create' && subject !== undefined ? `program ${subject}` : '';
}

const activityColumns = (callers: Callers): readonly Column<Activity>[] => [
  { title: 'time', value: time, short: true },
  { title: 'verdict', value: verdict, whole: true, isRed: ({ validAction }) => !validAction },
  { title: 'action', value: (activity) => activity.action, name: true },
  { title: 'ring', value: (activity) => activity.ringname, name: true },
  { title: 'by', value: (activity) => callers.shown(activity.keyid), short: true, name: true },
  { title: 'about', value: about, name: true, spare: true },
  { title: 'from', value: (activity) => activity.address ?? '', whole: true, spare: true },
  { title: 'status', value: (activity) => activity.status, spare: true },
  { title: 'id', value: (activity) => activity.id, short: true, spare: true },
];

function time({ createdAt }: Activity): string {
  const date = new Date(createdAt);
  return Number.isNaN(date.getTime()) ? String(createdAt) : date.toISOString();
}

/** An act that was granted may still fail, by the state of what it is about. */
function verdict({ validAction, status }: Activity): string {
  if (!validAction) return 'denied';
  return status < 400 ? 'granted' : `granted, failed (${status})`;
}

export async function head(cli: CliOf<typeof activity.head>): Promise<void> {
  await withClient(cli, async (client) => {
    const head = await client.getActivityHead(cli.get('--post-quantum') ? { postQuantum: true } : {});
    const pairs = Object.entries(headLabels).map(([label, field]): Pair => [label, head[field]]);
    // `--since` reads what is printed.
    await printThing(cli, head, [...pairs, ['kept from', head.from]], 'exact');
  });
}

interface Verdict {
  readonly tenant?: string;
  readonly count: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly broken?: { readonly seq: number; readonly problem: string };
  readonly since?: {
    readonly seq: number;
    readonly signedAt: string;
    readonly publicKey: string;
    readonly mlDsaPublicKey?: string;
  };
  /** The last record dropped by retention; in an export, its signed head. */
  readonly dropped?: { readonly seq: number; readonly hash: string; readonly publicKey?: string };
  /** Present for an export alone. */
  readonly approvals?: VerifiedApprovals;
}

/**
 * With --file it verifies an export, without an appliance. Otherwise it verifies a tenant's whole chain: on the
 * appliance's machine the appliance does so from its disk; over the network an export is verified here, so that the
 * appliance need not be trusted.
 */
export async function verify(cli: CliOf<typeof activity.verify>): Promise<void> {
  const since = await readHead(cli.get('--since'));
  const file = cli.get('--file');
  const body = since === undefined ? {} : { since };
  if (file !== undefined) return showVerdict(cli, await verifyFile(cli, file, body));
  await withClient(cli, async (_client, connection) => {
    if (connection.way === 'network') {
      return showVerdict(cli, await verifyLines(cli, await exportOf(cli, connection, {}), body));
    }
    cli.refuseWithout('--file or --server', ['--public-key']);
    await showVerdict(cli, await localOf(cli, connection).ask('verifyActivity', { body }));
  });
}

async function verifyFile(
  cli: CliOf<typeof activity.verify>,
  file: string,
  body: { readonly since?: object },
): Promise<Verdict> {
  const input = await openInput(cli, file);
  try {
    return await verifyLines(cli, withProgress(cli, input.source, input.size), body);
  } finally {
    await input.close();
  }
}

async function verifyLines(
  cli: CliOf<typeof activity.verify>,
  lines: AsyncIterable<Uint8Array>,
  body: { readonly since?: object },
): Promise<Verdict> {
  const publicKey = cli.get('--public-key');
  const { verifyExport } = await import('../../appliance/verify-export.ts');
  const verdict = await verifyExport(lines, publicKey === undefined ? body : { ...body, publicKey });
  // Only heads are signed: the saved one, and the one at the start of an export after retention.
  if (!verdict.since && !verdict.dropped) cli.refuseWithout('--since: the export has no head', ['--public-key']);
  if (verdict.count === 0 && !verdict.broken && !verdict.dropped) {
    throw new KmsError('invalid', 'record 1 is missing: the export has no record in it, and nothing was verified', {
      hint: 'export it again, and see that `kms activity export` ends with exit code 0',
    });
  }
  return verdict;
}

async function showVerdict(cli: CliOf<typeof activity.verify>, verdict: Verdict): Promise<void> {
  const { tenant, count, head, broken, dropped, approvals } = verdict;
  if (cli.json) await printJson(cli, { valid: broken === undefined, ...verdict });
  if (broken) {
    throw new KmsError('refused', `the activity log does not verify: ${broken.problem}`, {
      hint: advice(cli, head.seq, broken.problem),
    });
  }
  if (cli.json) return;
  const whose = tenant === undefined ? '' : ` of the tenant ${tenant}`;
  await printLine(cli, `verified: ${count} records${whose}, up to record ${head.seq} with the hash ${head.hash}`);
  if (dropped) {
    const key = dropped.publicKey === undefined ? '' : `; key: ${dropped.publicKey}`;
    await printLine(cli, `records up to ${dropped.seq} were dropped by retention${key}`);
  }
  await showAnchor(cli, verdict);
  if (approvals) for (const line of approvalLines(approvals)) await printLine(cli, line);
}

async function showAnchor(cli: CliOf<typeof activity.verify>, { since, dropped }: Verdict): Promise<void> {
  if (!since) return;
  const anchored = `record ${since.seq}, anchored at ${timeOn(cli, 'stdout', since.signedAt)}`;
  if (dropped && since.seq < dropped.seq) {
    await printLine(cli, `${anchored}, is one of them`);
    return;
  }
  await printLine(cli, `${anchored}, is still there; key: ${since.publicKey}`);
  const { mlDsaPublicKey } = since;
  if (mlDsaPublicKey === undefined) return;
  const { mlDsaFingerprint } = await import('../../appliance/verify-export.ts');
  await printLine(cli, `signed with ML-DSA-65, too; SHA-256 of the key: ${mlDsaFingerprint(mlDsaPublicKey)}`);
}

function advice(cli: CliOf<typeof activity.verify>, verified: number, problem: string): string {
  if (verified > 0) return `records up to ${verified} are as they were written`;
  const isLater =
    /record 1 was dropped/.test(problem) && cli.get('--file') !== undefined && cli.get('--since') === undefined;
  return isLater
    ? 'an export that begins later needs --since with the head that it begins after'
    : 'no record before it verifies';
}

/** All records as JSON Lines with the chain's hashes. */
export async function exportRecords(cli: CliOf<typeof activity.exportRecords>): Promise<void> {
  const since = await readHead(cli.get('--since'));
  if (writesToStdout(cli)) mustReachStdout(cli.io);
  await withClient(cli, async (client, connection) => {
    const output = writesToStdout(cli) ? undefined : await openOutput(cli, { binary: false });
    try {
      // A program reads no head, and leaves no record of it.
      const total = output && cli.io.stderr.isTTY ? await recordsSince(client, since) : undefined;
      const lines = await exportOf(cli, connection, since === undefined ? {} : { since });
      if (output) await transfer(cli, withProgress(cli, lines, total), output);
      else for await (const chunk of lines) await write(cli.io.stdout, chunk);
    } catch (error) {
      await output?.discard();
      throw error;
    }
  });
}

/** Records that an export will have; a few more may come meanwhile. */
async function recordsSince(client: Client, since: object | undefined): Promise<Lines> {
  const { seq, from = 1 } = await client.getActivityHead({});
  const before = since && 'seq' in since && typeof since.seq === 'number' ? since.seq : 0;
  return { count: Math.max(0, seq - Math.max(before, from - 1)), noun: 'records' };
}

async function exportOf(cli: Cli, connection: Connection, body: object): Promise<AsyncIterable<Uint8Array>> {
  const headers = { ...connection.headers, ...connection.tenantHeaders };
  const [method, path] = paths.exportActivity;
  const { body: lines } = await send(cli, connection, { method, path, body, headers });
  return whole(cli, lines ?? new ReadableStream());
}

/** The stream, with a clear error if it ends early. */
async function* whole(cli: Cli, stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (cause) {
    if (cause instanceof KmsError || cli.io.signal.aborted) throw cause;
    throw new KmsError('refused', 'the export broke off: it is incomplete', {
      hint: 'see `kms activity verify` and the log of the appliance',
      cause,
    });
  }
}

/** Labels of a head for people, and its JSON fields. */
const headLabels = {
  tenant: 'tenant',
  sequence: 'seq',
  hash: 'hash',
  'signed at': 'signedAt',
  'public key': 'publicKey',
  signature: 'signature',
  'ML-DSA-65 key': 'mlDsaPublicKey',
  'ML-DSA-65 signature': 'mlDsaSignature',
} as const;

const headFormat = 'kms-activity-head-1';

/** The head in that file; undefined without a file. Its form and signature are verified later. */
async function readHead(path: string | undefined): Promise<object | undefined> {
  if (path === undefined) return undefined;
  // Decoded as leniently as other verifiers do: ignored fields may hold invalid UTF-8.
  const text = Buffer.from(await readSmallFile(path, 'the head'))
    .toString()
    .replace(/^\ufeff/, '');
  const head = /^\s*\{/.test(text) ? parsed(text) : shown(text);
  if (head) return head;
  throw new KmsError('invalid', `${path} does not hold a head of the activity log`, {
    hint: 'keep what `kms activity head` prints, whole',
  });
}

function parsed(text: string): object | undefined {
  try {
    // Cast: text that begins with a brace and parses is an object.
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

function shown(text: string): object | undefined {
  const values = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, label, value] = /^(\S.*?) {2,}(\S.*?)\r?$/.exec(line) ?? [];
    if (label !== undefined && value !== undefined) values.set(label, value);
  }
  const head: Record<string, unknown> = { format: headFormat };
  for (const [label, field] of Object.entries(headLabels)) {
    const value = values.get(label);
    if (value === undefined && field.startsWith('mlDsa')) continue;
    if (value === undefined) return undefined;
    head[field] = field === 'seq' ? Number(value) : value;
  }
  return head;
}
