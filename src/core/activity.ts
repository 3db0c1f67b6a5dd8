// The activity log: making a record, fetching one; and the auditor's side: export of the chain as lines of text, its
// verification, and signed heads (docs/activity-export.md). Reading runs outside the request's transaction, since
// records may have to come from closed segments, and goes record by record, so memory does not grow with the log.

import type { Activity } from '../api/activity.ts';
import { fromBase64, fromBase64Url, toBase64, toHex, utf8 } from '../crypto/bytes.ts';
import { ed25519FromSpki, ed25519PublicKey, ed25519Sign, ed25519ToSpki, ed25519Verify } from '../crypto/ed25519.ts';
import { hkdfSha256, sha256 } from '../crypto/hash.ts';
import { isMlDsaSpki, mlDsaSign, mlDsaSignatureLength, mlDsaSpki, mlDsaVerify } from '../crypto/ml-dsa.ts';
import { invalidField, KmsError } from '../errors.ts';
import { type ActivityDetails, detailsProps } from '../model/activity-details.ts';
import { timestamp } from '../model/timestamp.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import { type ChainAnchor, type ChainVerdict, chainStart, verifyChain } from '../store/activity/chain.ts';
import type { ActivityInput, ActivityRecord, Store } from '../store/port.ts';
import type { Tenant, World } from './context.ts';

interface ActivityDraft
  extends Pick<ActivityInput, 'keyid' | 'action'>,
    Partial<Pick<ActivityInput, 'ringname' | 'validAction' | 'status' | 'address'>> {
  readonly props?: ActivityInput['props'] | undefined;
  readonly deed?: ActivityDetails | undefined;
}

const noProps: ActivityInput['props'] = {};

/** A record made now: granted, status 200, about no ring, unless the draft says otherwise. */
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
    props: deed ? { ...props, ...detailsProps(deed) } : props,
    address,
  };
}

/** Throws `not-found`. */
export async function getActivity(store: Store, id: string): Promise<Activity> {
  const record = await store.activity.find(id);
  if (!record) throw new KmsError('not-found', 'no such activity');
  return toActivity(record);
}

export function toActivity({ seq: _, address, ...activity }: ActivityRecord): Activity {
  return address === undefined ? activity : { ...activity, address };
}

/** Position before the first record that is kept. */
export function chainBegin(store: Store): ChainAnchor {
  const { activityDropped: dropped } = store.status();
  return dropped ? { seq: dropped.seq, hash: dropped.hash } : chainStart;
}

/** Position of the last record. */
export async function chainEnd(store: Store): Promise<ChainAnchor> {
  let end = chainBegin(store);
  const { activityCount } = store.status();
  for await (const { record, hash } of store.activity.read(activityCount)) end = { seq: record.seq, hash };
  return end;
}

/** The verified chain and the position before it. */
type ActivityVerdict = ChainVerdict & { readonly start: ChainAnchor };

/** Verifies the whole chain that is kept; it must pass through the anchor, if given. */
export async function verifyActivity(store: Store, anchor?: ChainAnchor): Promise<ActivityVerdict> {
  for (;;) {
    const start = chainBegin(store);
    const verdict = await verifyFrom(store, start, anchor);
    // Try again if retention dropped records in the meantime.
    if (!verdict.broken || chainBegin(store).seq === start.seq) return { ...verdict, start };
  }
}

async function verifyFrom(store: Store, start: ChainAnchor, anchor?: ChainAnchor): Promise<ChainVerdict> {
  let unreadable: KmsError | undefined;
  async function* links() {
    try {
      yield* store.activity.read(start.seq + 1);
    } catch (error) {
      // Corruption on disk is a verdict, not a failure.
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
 * Sequence number of the first record after the anchor, by default the first that is kept. Throws `conflict` if the
 * chain does not pass through the anchor or records after it were dropped, `corrupt` if a segment needed from there on
 * is known to be missing or changed.
 */
export async function exportStart(store: Store, anchor: ChainAnchor = chainBegin(store)): Promise<number> {
  const { seq: dropped } = chainBegin(store);
  if (anchor.seq < dropped) {
    throw new KmsError(
      'conflict',
      `records up to ${dropped} were dropped by retention, including some after the head: take an export from the beginning, which says where that is`,
    );
  }
  if ((await hashAt(store, anchor.seq)) !== anchor.hash) {
    throw new KmsError(
      'conflict',
      `record ${anchor.seq}, which was anchored, has changed or was dropped: see \`kms activity verify\``,
    );
  }
  // Once lines have been sent, an error can only cut them off.
  await store.segments.need(anchor.seq + 1);
  return anchor.seq + 1;
}

async function hashAt(store: Store, seq: number): Promise<string | undefined> {
  const begin = chainBegin(store);
  if (seq === begin.seq) return begin.hash;
  for await (const { hash } of store.activity.read(seq)) return hash;
  return undefined;
}

/** Concurrent exports per caller and in total: each holds a segment in memory and reads the disk. */
const mostExports = { ofOne: 2, ofAll: 8 };
/** The caller of each export in progress, per store. */
const exporting = new WeakMap<Store, string[]>();

/**
 * The records from `start` to the end of the log as lines of an export, read on demand. None is sent before everything
 * done so far is durable. Call it in the request's transaction, then read or return the iterator: until then it
 * occupies one of the export slots. Throws `rate-limited` if all slots are taken. `leading` is the head of the record
 * before the first, if retention dropped that record: it is the export's first line, so that the export can be verified
 * on its own.
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
    throw new KmsError('rate-limited', 'too many exports are under way; try again when one has ended', {
      retryAfter: 30,
    });
  }
  exporting.set(store, callers);
  const lines = linesFrom(store, { start, leading }, caller, callers);
  // A started generator gives back its slot however it ends, read or not.
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
    // Starts after the request's own transaction, whose records are then on disk.
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

/** The record with its hash as first field; the bytes after the hash are exactly those that the chain hashes. */
export function exportLine(line: string, hash: string): string {
  return `{"hash":"${hash}",${line.slice(1)}\n`;
}

const headFormat = 'kms-activity-head-1';

/** Position of the last record, signed by the tenant, to be kept out of the appliance's reach. */
export interface ActivityHead {
  readonly format: typeof headFormat;
  /** The tenant's id. */
  readonly tenant: string;
  /** Sequence number of the last record; 0 if there is none. */
  readonly seq: number;
  /** The chain's hash at that record, base64url. */
  readonly hash: string;
  readonly signedAt: string;
  /** Public half of the Ed25519 key that signed, base64 SPKI DER. */
  readonly publicKey: string;
  /** Base64. */
  readonly signature: string;
  /** Public half of an ML-DSA-65 key, base64 SPKI DER, if a post-quantum signature was asked for. */
  readonly mlDsaPublicKey?: string;
  /** ML-DSA-65 signature of the same message, base64. Present exactly if `mlDsaPublicKey` is. */
  readonly mlDsaSignature?: string;
}

type UnsignedHead = Pick<ActivityHead, 'format' | 'tenant' | 'seq' | 'hash' | 'signedAt'>;

/** `isPostQuantum`: also sign with ML-DSA-65, which takes some 20 ms. */
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
 * Derived from the seed of the Ed25519 key, so that retired epochs have one as well. A quantum computer finds that
 * key's private scalar, not the seed, of which the scalar is a hash.
 */
function mlDsaSeed(seed: Uint8Array): Uint8Array {
  return hkdfSha256(seed, 'kms/activity-head/v1/ml-dsa-65', 32);
}

/** Whether the head's signatures fit the keys it names. It does not check who owns these keys. */
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
 * Whether `expected` names a key that signed the head: the text of `publicKey`, or SHA-256 of the ML-DSA-65 key in hex,
 * which is short enough to write down.
 */
export function isSignedBy({ publicKey, mlDsaPublicKey }: ActivityHead, expected: string): boolean {
  return expected === publicKey || (mlDsaPublicKey !== undefined && expected === mlDsaFingerprint(mlDsaPublicKey));
}

export function mlDsaFingerprint(mlDsaPublicKey: string): string {
  return toHex(sha256(fromBase64(mlDsaPublicKey) ?? new Uint8Array()));
}

/** Throws `conflict` unless this tenant signed the head. */
export function needOwnHead({ id, keys }: Tenant, head: ActivityHead): void {
  if (head.tenant !== id) throw new KmsError('conflict', `the head belongs to another tenant, ${head.tenant}`);
  const seed = headSeeds(keys).find((each) => headKey(each) === head.publicKey);
  const { mlDsaPublicKey } = head;
  const isOwn = seed && (mlDsaPublicKey === undefined || toBase64(mlDsaSpki(mlDsaSeed(seed))) === mlDsaPublicKey);
  if (isOwn && isSigned(head)) return;
  throw new KmsError(
    'conflict',
    'the head was changed: the signature is not from this tenant; take the head from where it was kept',
  );
}

/**
 * Parses a head from outside: one flat object, each of whose fields has exactly the form that `signHead` gives it.
 * Other programs read heads too, and all must reach one verdict. Throws `invalid` for anything else.
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

/** Seeds of all epochs held: an old head was signed with an old key. */
function headSeeds(keys: TenantKeys): Uint8Array[] {
  return keys.epochs.map((epoch) => keys.key('activity-head', epoch));
}
