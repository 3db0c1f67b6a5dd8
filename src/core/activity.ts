// The activity log: making a record, fetching one, a search whose filters speak of accounts; and the auditor's side:
// the chain as lines of text, whether it holds, and signed heads (docs/activity-export.md). Reading runs beside a
// transaction, since records may have to come from closed segments, and goes record by record: millions take no more
// memory than a few.

import type { Activity } from '../api/activity.ts';
import type { Body } from '../api/endpoints.ts';
import { fromBase64, fromBase64Url, toBase64, toHex, utf8 } from '../crypto/bytes.ts';
import { ed25519FromSpki, ed25519PublicKey, ed25519Sign, ed25519ToSpki, ed25519Verify } from '../crypto/ed25519.ts';
import { hkdfSha256, sha256 } from '../crypto/hash.ts';
import { isMlDsaSpki, mlDsaSign, mlDsaSignatureLength, mlDsaSpki, mlDsaVerify } from '../crypto/ml-dsa.ts';
import { invalidField, KmsError } from '../errors.ts';
import { ownActions } from '../model/actions.ts';
import { canonicalBlock } from '../model/addresses.ts';
import { type Deed, deedProps } from '../model/deed.ts';
import { flagsCovering } from '../model/flags.ts';
import { timestamp } from '../model/timestamp.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import { type ChainAnchor, type ChainVerdict, chainStart, verifyChain } from '../store/activity/chain.ts';
import type { ActivityFilter, ActivityInput, ActivityRecord, Store } from '../store/port.ts';
import type { Page, PageRequest } from '../store/sql.ts';
import type { Tenant, World } from './context.ts';
import { looksAt } from './pages.ts';

interface ActivityDraft
  extends Pick<ActivityInput, 'keyid' | 'action'>,
    Partial<Pick<ActivityInput, 'ringname' | 'validAction' | 'status' | 'address'>> {
  readonly props?: ActivityInput['props'] | undefined;
  readonly deed?: Deed | undefined;
}

const noProps: ActivityInput['props'] = {};

/** A record made now, of something that was done: granted, status 200, about no ring, unless it says otherwise. */
export function activityRecord(world: World, draft: ActivityDraft): ActivityInput {
  const { keyid, action, ringname = '', validAction = true, status = 200, props = noProps, deed, address } = draft;
  return {
    id: world.newId('act'),
    createdAt: world.now(),
    keyid,
    action,
    ringname,
    validAction,
    status,
    props: deed ? { ...props, ...deedProps(deed) } : props,
    address,
  };
}

/** All given filters must hold. The newest first. */
export async function searchActivity(
  store: Store,
  search: Body<'searchActivity'>,
  page: PageRequest,
): Promise<Page<Activity>> {
  const keyids = await keysMeant(store, search);
  if (keyids?.length === 0) return { items: [] };
  const filter: ActivityFilter = {
    ...(keyids && { keyids }),
    ...(search.action !== undefined && { actions: actionsMeant(search.action) }),
    ...(search.ring !== undefined && { ringname: search.ring.toLowerCase() }),
    ...(search.valid !== undefined && { valid: search.valid }),
    ...(search.start !== undefined && { start: search.start }),
    ...(search.end !== undefined && { end: search.end }),
    ...(search.props !== undefined && { props: search.props }),
    ...(search.address !== undefined && { address: blockOf(search.address) }),
    ...(search.object !== undefined && { object: search.object }),
    ...(search.granted !== undefined && { granted: flagsMeant(search.granted) }),
    ...(search.revoked !== undefined && { revoked: flagsMeant(search.revoked) }),
    ...(search.exclude !== undefined && { exclude: search.exclude }),
  };
  const found = await store.activity.search(filter, page);
  const items = found.items.map(toActivity);
  return found.next === undefined ? { items } : { items, next: found.next };
}

/** Throws `not-found`. */
export async function getActivity(store: Store, id: string): Promise<Activity> {
  const record = await store.activity.find(id);
  if (!record) throw new KmsError('not-found', 'no such activity');
  return toActivity(record);
}

/** A `*` in place of the part before the dot, or behind it, stands for each that the service has there. */
function actionsMeant(action: string): string[] {
  const [, resource, operation] = /^(?:(\*)\.[\w-]+|[\w-]+\.(\*))$/.exec(action) ?? [];
  if (resource === undefined && operation === undefined) return [action];
  const fits = (own: string): boolean =>
    resource === undefined ? own.startsWith(action.slice(0, -1)) : own.endsWith(action.slice(1));
  return [action, ...[...ownActions].filter(fits)];
}

function blockOf(text: string): string {
  const block = canonicalBlock(text);
  if (block !== undefined) return block;
  throw invalidField('address', 'expected an IPv4 or IPv6 address, or a block of them such as 192.0.2.0/24');
}

/** None = any flag. */
function flagsMeant(flag: string | true): string[] {
  return flag === true ? [] : flagsCovering(flag);
}

/** The keys that `keyid`, `accountId` and `accountUid` leave; undefined when none of them is given. */
async function keysMeant(store: Store, search: Body<'searchActivity'>): Promise<string[] | undefined> {
  const { keyid, accountId, accountUid } = search;
  const sets: ReadonlySet<string>[] = [];
  if (keyid !== undefined) sets.push(new Set([keyid]));
  if (accountId !== undefined) sets.push(await keysOf(store, accountId));
  if (accountUid !== undefined) {
    const account = await store.transaction(({ accounts }) => accounts.byUid(accountUid));
    // One account under both of its names is gone through once.
    if (!account) sets.push(new Set());
    else if (account.id !== accountId) sets.push(await keysOf(store, account.id));
  }
  const [first, ...others] = sets;
  return first && Array.from(first).filter((id) => others.every((set) => set.has(id)));
}

/** An account's keys, and the users behind those, whose access tokens are recorded under the user's id. */
async function keysOf(store: Store, accountId: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  const looks = looksAt(store);
  let after: number | undefined;
  do {
    const request = { limit: 5000, ...(after !== undefined && { after }) };
    const page = await looks.look(({ apiKeys }) => apiKeys.idsOfAccount(accountId, request));
    for (const key of page.items) {
      ids.add(key.id);
      if (key.userId !== undefined) ids.add(key.userId);
    }
    after = page.next;
  } while (after !== undefined);
  await looks.durable();
  return ids;
}

function toActivity({ seq: _, address, ...activity }: ActivityRecord): Activity {
  return address === undefined ? activity : { ...activity, address };
}

/** The place before the first record that is kept. */
export function chainBegin(store: Store): ChainAnchor {
  const { activityDropped: dropped } = store.status();
  return dropped ? { seq: dropped.seq, hash: dropped.hash } : chainStart;
}

/** The last record that there is. */
export async function chainEnd(store: Store): Promise<ChainAnchor> {
  let end = chainBegin(store);
  const { activityCount } = store.status();
  for await (const { record, hash } of store.activity.read(activityCount)) end = { seq: record.seq, hash };
  return end;
}

/** The chain that was followed, and the place before it. */
type ActivityVerdict = ChainVerdict & { readonly start: ChainAnchor };

/** Follows the whole chain that is kept, which must go through the anchor where there is one. */
export async function verifyActivity(store: Store, anchor?: ChainAnchor): Promise<ActivityVerdict> {
  for (;;) {
    const start = chainBegin(store);
    const verdict = await verifyFrom(store, start, anchor);
    // Once more where retention dropped records between the two.
    if (!verdict.broken || chainBegin(store).seq === start.seq) return { ...verdict, start };
  }
}

async function verifyFrom(store: Store, start: ChainAnchor, anchor?: ChainAnchor): Promise<ChainVerdict> {
  let unreadable: KmsError | undefined;
  async function* links() {
    try {
      yield* store.activity.read(start.seq + 1);
    } catch (error) {
      // That the disk has something else than was written is a verdict too.
      if (!(error instanceof KmsError) || error.code !== 'corrupt') throw error;
      unreadable = error;
    }
  }
  const verdict = await verifyChain(links(), { start, anchors: anchor ? [anchor] : [] });
  if (!unreadable) return verdict;
  const { count, head } = verdict;
  return { count, head, broken: { position: count + 1, seq: head.seq + 1, problem: unreadable.message } };
}

/**
 * The number of the first record after the anchor, by default the first that is kept. Throws `conflict` where the chain
 * does not go through that, or records behind it are not kept, `corrupt` where a segment that is needed from there on
 * is known to be missing or changed.
 */
export async function exportStart(store: Store, anchor: ChainAnchor = chainBegin(store)): Promise<number> {
  const { seq: dropped } = chainBegin(store);
  if (anchor.seq < dropped) {
    throw new KmsError(
      'conflict',
      `records up to ${dropped} were dropped by retention, also those after the head: take an export from the beginning, which says where that is`,
    );
  }
  if ((await hashAt(store, anchor.seq)) !== anchor.hash) {
    throw new KmsError(
      'conflict',
      `record ${anchor.seq}, which was anchored, is another one now or was dropped: see \`kms activity verify\``,
    );
  }
  // Once lines are on their way, what is wrong can only break them off.
  await store.segments?.need(anchor.seq + 1);
  return anchor.seq + 1;
}

async function hashAt(store: Store, seq: number): Promise<string | undefined> {
  const begin = chainBegin(store);
  if (seq === begin.seq) return begin.hash;
  for await (const { hash } of store.activity.read(seq)) return hash;
  return undefined;
}

/** Exports that may be under way at once, of one caller and of all: each holds a segment and reads the disk. */
const mostExports = { ofOne: 2, ofAll: 8 };
/** Whose exports of a store are under way. */
const exporting = new WeakMap<Store, string[]>();

/**
 * The records from `start` to the end of the log as lines of an export, read as they are asked for: nothing before
 * what was done so far is durable. To be called in the request's transaction, and to be read or returned: until then it
 * has one of the places. Throws `rate-limited` where as many exports as may be are under way. `leading` is the head of
 * the record before the first, where retention dropped it: it stands in front of them, so that the export can be
 * verified by itself.
 */
export function exportChain(
  store: Store,
  start: number,
  caller: string,
  leading?: ActivityHead,
): AsyncIterable<string> {
  const callers = exporting.get(store) ?? [];
  const own = callers.filter((each) => each === caller).length;
  if (own >= mostExports.ofOne || callers.length >= mostExports.ofAll) {
    throw new KmsError('rate-limited', 'as many exports as may be are under way; try again when one has ended', {
      retryAfter: 30,
    });
  }
  exporting.set(store, callers);
  const lines = linesFrom(store, { start, leading }, caller, callers);
  // What was begun gives its place back however it ends, read or not.
  void lines.next();
  return lines;
}

async function* linesFrom(
  store: Store,
  { start, leading }: { readonly start: number; readonly leading: ActivityHead | undefined },
  caller: string,
  callers: string[],
): AsyncGenerator<string> {
  callers.push(caller);
  try {
    yield '';
    // It begins after the request's own, and with what that did on the disk.
    await store.transaction(() => undefined);
    let next = start;
    if (leading) yield `${JSON.stringify(leading)}\n`;
    for await (const { record, line, hash } of store.activity.read(start)) {
      if (record.seq !== next++) {
        throw new KmsError('unavailable', 'records were dropped by retention when the export began: take it again');
      }
      yield exportLine(line, hash);
    }
  } finally {
    callers.splice(callers.indexOf(caller), 1);
  }
}

/** The record with its hash before its other fields; what follows the hash is byte for byte what the chain hashes. */
export function exportLine(line: string, hash: string): string {
  return `{"hash":"${hash}",${line.slice(1)}\n`;
}

const headFormat = 'kms-activity-head-1';

/** The place of the last record, signed by the tenant, to be kept where the appliance cannot reach it. */
export interface ActivityHead {
  readonly format: typeof headFormat;
  /** The tenant's id. */
  readonly tenant: string;
  /** The last record; 0 when there is none. */
  readonly seq: number;
  /** The chain's hash at that record, base64url. */
  readonly hash: string;
  readonly signedAt: string;
  /** Of the Ed25519 key that signed, base64 SPKI DER. */
  readonly publicKey: string;
  /** Base64. */
  readonly signature: string;
  /** For readers in a time of quantum computers, where it was asked for: of an ML-DSA-65 key, base64 SPKI DER. */
  readonly mlDsaPublicKey?: string;
  /** Of the same message, base64. Only both are there, or none. */
  readonly mlDsaSignature?: string;
}

type UnsignedHead = Pick<ActivityHead, 'format' | 'tenant' | 'seq' | 'hash' | 'signedAt'>;

/** `isPostQuantum`: signed with ML-DSA-65, too, which takes some 20 ms. */
export function signHead(
  { id, keys }: Tenant,
  place: { readonly seq: number; readonly hash: string },
  now: number,
  isPostQuantum = false,
): ActivityHead {
  const head: UnsignedHead = {
    format: headFormat,
    tenant: id,
    seq: place.seq,
    hash: place.hash,
    signedAt: timestamp(now),
  };
  const seed = keys.key('activity-head');
  const signature = toBase64(ed25519Sign(seed, headMessage(head)));
  const signed = { ...head, publicKey: headKey(seed), signature };
  if (!isPostQuantum) return signed;
  const { spki, signature: mlDsa } = mlDsaSign(mlDsaSeed(seed), headMessage(head));
  return { ...signed, mlDsaPublicKey: toBase64(spki), mlDsaSignature: toBase64(mlDsa) };
}

/**
 * From the seed of the Ed25519 key, so that retired epochs have it as well. A quantum computer finds the private scalar
 * of that key, not its seed, of which the scalar is a hash.
 */
function mlDsaSeed(seed: Uint8Array): Uint8Array {
  return hkdfSha256(seed, 'kms/activity-head/v1/ml-dsa-65', 32);
}

/** Whether the head is signed by the key that it names, whosever that is. */
export function isSigned(head: ActivityHead): boolean {
  const key = ed25519FromSpki(fromBase64(head.publicKey) ?? new Uint8Array());
  const signature = fromBase64(head.signature);
  const message = headMessage(head);
  if (key === undefined || signature === undefined || !ed25519Verify(key, message, signature)) return false;
  const { mlDsaPublicKey, mlDsaSignature } = head;
  if (mlDsaPublicKey === undefined || mlDsaSignature === undefined) return true;
  const none = new Uint8Array();
  return mlDsaVerify(fromBase64(mlDsaPublicKey) ?? none, message, fromBase64(mlDsaSignature) ?? none);
}

/**
 * Whether `expected` names a key that the head is signed with: the text of `publicKey`, or SHA-256 of the ML-DSA-65 key
 * in hex, which is short enough to be noted.
 */
export function isSignedBy({ publicKey, mlDsaPublicKey }: ActivityHead, expected: string): boolean {
  return expected === publicKey || (mlDsaPublicKey !== undefined && expected === mlDsaFingerprint(mlDsaPublicKey));
}

export function mlDsaFingerprint(mlDsaPublicKey: string): string {
  return toHex(sha256(fromBase64(mlDsaPublicKey) ?? new Uint8Array()));
}

/** Throws `conflict` unless this tenant signed the head. */
export function needOwnHead({ id, keys }: Tenant, head: ActivityHead): void {
  if (head.tenant !== id) throw new KmsError('conflict', `the head is that of another tenant, ${head.tenant}`);
  const seed = headSeeds(keys).find((each) => headKey(each) === head.publicKey);
  const { mlDsaPublicKey } = head;
  const isOwn = seed && (mlDsaPublicKey === undefined || toBase64(mlDsaSpki(mlDsaSeed(seed))) === mlDsaPublicKey);
  if (isOwn && isSigned(head)) return;
  throw new KmsError(
    'conflict',
    'the head was changed: the signature is none of this tenant; take the head from where it was kept',
  );
}

/**
 * A head as it came from somewhere: one flat object, each of whose fields has the one form that `signHead` gives it. So
 * strict, since programs of others read heads too, and all must come to one verdict. Throws `invalid` for what is none.
 */
export function parseHead(value: unknown, field: string): ActivityHead {
  const given = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  const { format, tenant, seq, hash, signedAt, publicKey, signature, mlDsaPublicKey, mlDsaSignature } = given;
  if (
    Object.values(given).some((each) => typeof each === 'object' && each !== null) ||
    format !== headFormat ||
    !isText(tenant, /^[!-~]{1,100}$/) ||
    typeof seq !== 'number' ||
    !Number.isSafeInteger(seq) ||
    seq < 0 ||
    !isText(hash, /^[\w-]{43}$/) ||
    fromBase64Url(hash) === undefined ||
    (seq === chainStart.seq && hash !== chainStart.hash) ||
    !isText(signedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) ||
    !isText(publicKey, /^.{60}$/) ||
    ed25519FromSpki(fromBase64(publicKey) ?? new Uint8Array()) === undefined ||
    !isText(signature, /^.{88}$/) ||
    fromBase64(signature)?.length !== 64
  ) {
    throw noHead(field);
  }
  const head = { format: headFormat, tenant, seq, hash, signedAt, publicKey, signature } as const;
  if (mlDsaPublicKey === undefined && mlDsaSignature === undefined) return head;
  if (
    typeof mlDsaPublicKey !== 'string' ||
    !isMlDsaSpki(fromBase64(mlDsaPublicKey) ?? new Uint8Array()) ||
    typeof mlDsaSignature !== 'string' ||
    fromBase64(mlDsaSignature)?.length !== mlDsaSignatureLength
  ) {
    throw noHead(field);
  }
  return { ...head, mlDsaPublicKey, mlDsaSignature };
}

function noHead(field: string): KmsError {
  return invalidField(field, `expected a head of the format ${headFormat}, as \`kms activity head --json\` prints it`);
}

function isText(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value);
}

function headMessage({ tenant, seq, hash, signedAt }: UnsignedHead): Uint8Array {
  return utf8(`${headFormat}\n${tenant}\n${seq}\n${hash}\n${signedAt}\n`);
}

function headKey(seed: Uint8Array): string {
  return toBase64(ed25519ToSpki(ed25519PublicKey(seed)));
}

/** Those of all tenant keys that are held: an old head was signed with an old one. */
function headSeeds(keys: TenantKeys): Uint8Array[] {
  return keys.epochs.map((epoch) => keys.key('activity-head', epoch));
}
