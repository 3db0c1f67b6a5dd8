// Messages of KMIP: the header, the items of a batch, and the answer to them.
import { continuations, results } from './enumerations.ts';
import { Refusal, reasonOf, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  all,
  byteString,
  date,
  decodeItem,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  one,
  type Structure,
  structure,
  structureIn,
  text,
  valueIn,
} from './ttlv.ts';
import { isSecond, supportedVersions, type Version, versionItem } from './versions.ts';

/** The path of messages in HTTPS. */
export const kmipPath = '/kmip';

export const messageLimits = { bytes: 1 << 20, batch: 100 } as const;

/** Name and password in a header. */
interface NamedCredential {
  readonly name: string;
  readonly password: string;
}

export interface BatchItem {
  readonly operation: number;
  readonly id: Uint8Array | undefined;
  readonly payload: Structure;
  /** An extension that must be understood. */
  readonly isExtended: boolean;
}

export interface RequestMessage {
  readonly version: Version;
  readonly credential: NamedCredential | undefined;
  readonly mostBytes: number | undefined;
  readonly onFailure: 'continue' | 'stop' | 'undo';
  readonly items: readonly BatchItem[];
}

/** The refusal of a whole message. */
export class MessageRefusal extends Refusal {
  /** The version to answer in. */
  readonly version: Version;

  constructor(version: Version, { reason, message }: Refusal) {
    super(reason, message);
    this.version = version;
  }
}

/** Throws `MessageRefusal`. */
export function readMessage(bytes: Uint8Array): RequestMessage {
  let version: Version = 14;
  try {
    const message = decodeItem(bytes);
    if (message.tag !== tags.requestMessage || message.type !== 'structure') {
      throw new Refusal(reasons.invalidMessage, 'expected a request message');
    }
    const header = structureIn(message, tags.requestHeader);
    if (!header) throw new Refusal(reasons.invalidMessage, 'the message has no header');
    version = readVersion(structureIn(header, tags.protocolVersion));
    const items = all(message, tags.batchItem);
    const count = fieldOf(header, tags.batchCount, 'integer');
    if (count !== items.length || count < 1) {
      throw new Refusal(reasons.invalidMessage, 'the batch count is not that of the items');
    }
    if (count > messageLimits.batch) {
      throw new Refusal(reasons.invalidMessage, `a batch has at most ${messageLimits.batch} items`);
    }
    const late = one(header, tags.asynchronousIndicator);
    if (late?.type === 'enumeration' && late.value === mandatory) {
      throw new Refusal(reasons.featureNotSupported, 'nothing is answered later: Asynchronous Indicator Mandatory');
    }
    const option: number = fieldOf(header, tags.batchErrorContinuationOption, 'enumeration') ?? continuations.stop;
    return {
      version,
      credential: readCredential(header),
      mostBytes: fieldOf(header, tags.maximumResponseSize, 'integer'),
      onFailure: option === continuations.continue ? 'continue' : option === continuations.undo ? 'undo' : 'stop',
      items: items.map(readItem),
    };
  } catch (error) {
    throw error instanceof Refusal ? new MessageRefusal(version, error) : error;
  }
}

/** Asynchronous Indicator of 2.x; in 1.x it is a boolean, which only allows late answers. */
const mandatory = 1;

function readVersion(from: Structure | undefined): Version {
  const major = fieldOf(from, tags.protocolVersionMajor, 'integer');
  const minor = fieldOf(from, tags.protocolVersionMinor, 'integer');
  if (major === undefined || minor === undefined) {
    throw new Refusal(reasons.invalidMessage, 'the header has no protocol version');
  }
  const wanted = major * 10 + minor;
  if (minor >= 0 && minor < 10 && supportedVersions.includes(wanted)) return wanted;
  throw new Refusal(reasons.invalidMessage, `protocol version ${major}.${minor} is not supported`);
}

const namedCredential = 1;

function readCredential(header: Structure): NamedCredential | undefined {
  const authentication = structureIn(header, tags.authentication);
  if (!authentication) return undefined;
  for (const item of all(authentication, tags.credential)) {
    const credential: Structure = { tag: item.tag, type: 'structure', value: valueIn(item, 'structure') };
    if (fieldOf(credential, tags.credentialType, 'enumeration') !== namedCredential) continue;
    const value = structureIn(credential, tags.credentialValue);
    const name = fieldOf(value, tags.username, 'text');
    if (name !== undefined) return { name, password: fieldOf(value, tags.password, 'text') ?? '' };
  }
  return undefined;
}

function readItem(item: Item): BatchItem {
  const from: Structure = { tag: item.tag, type: 'structure', value: valueIn(item, 'structure') };
  const operation = fieldOf(from, tags.operation, 'enumeration');
  const payload = structureIn(from, tags.requestPayload);
  if (operation === undefined || !payload) {
    throw new Refusal(reasons.invalidMessage, 'an item of the batch lacks its operation or payload');
  }
  const isExtended = all(from, tags.messageExtension).some((each) => {
    const extension: Structure = { tag: each.tag, type: 'structure', value: valueIn(each, 'structure') };
    return fieldOf(extension, tags.criticalityIndicator, 'boolean') === true;
  });
  return { operation, id: fieldOf(from, tags.uniqueBatchItemId, 'bytes'), payload, isExtended };
}

/** The outcome of one item. */
export type ItemResult =
  | { readonly payload: Structure; readonly error?: undefined; readonly isUndone?: undefined }
  | { readonly payload?: undefined; readonly error: unknown; readonly isUndone?: undefined }
  | { readonly payload?: undefined; readonly error?: undefined; readonly isUndone: true };

/** An item of an answer. `of` is undefined if the message could not be read. */
export function resultItem(version: Version, of: BatchItem | undefined, result: ItemResult): Item {
  const status = result.payload ? results.success : result.isUndone ? results.undone : results.failed;
  return structure(
    tags.batchItem,
    of && enumeration(tags.operation, of.operation),
    of?.id && byteString(tags.uniqueBatchItemId, of.id),
    enumeration(tags.resultStatus, status),
    result.payload ?? (result.isUndone ? undefined : failureItems(version, result.error)),
  );
}

/** Reason and text of a failure. */
function failureItems(version: Version, error: unknown): readonly Item[] {
  const told = reasonOf(error) ?? { reason: reasons.generalFailure, later: reasons.generalFailure, message: 'failed' };
  return [
    enumeration(tags.resultReason, isSecond(version) ? told.later : told.reason),
    text(tags.resultMessage, told.message),
  ];
}

export function answerMessage(version: Version, now: number, items: readonly Item[]): Uint8Array {
  return encodeItem(
    structure(
      tags.responseMessage,
      structure(
        tags.responseHeader,
        versionItem(version),
        date(tags.timeStamp, now),
        integer(tags.batchCount, items.length),
      ),
      items,
    ),
  );
}

/** The answer to a message as a whole, if nothing of it was done. */
export function refusedMessage(version: Version, now: number, error: unknown, of?: BatchItem): Uint8Array {
  return answerMessage(version, now, [resultItem(version, of, { error })]);
}

/** The answer to a message of which only the head was read. */
export function unreadableMessage(now: number, problem: string): Uint8Array {
  return refusedMessage(14, now, new Refusal(reasons.invalidMessage, problem));
}

/** The answer to a message for which there is no room, or no appliance yet. */
export function unavailableMessage(now: number): Uint8Array {
  return refusedMessage(14, now, new Refusal(reasons.generalFailure, 'not available now; try again'));
}

/** Why a message that begins like this is not read; undefined if it is. `head` has 8 bytes. */
export function headProblem(head: Uint8Array, most: number): string | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (view.getUint32(0) !== tags.requestMessage * 256 + 1) return 'expected a request message';
  const length = view.getUint32(4);
  if (length > most) return 'the message is too long';
  return length % 8 === 0 ? undefined : 'malformed TTLV: length of a structure';
}

export function tooLong(of: BatchItem | undefined, version: Version, now: number): Uint8Array {
  const error = new Refusal(reasons.responseTooLarge, 'the answer is longer than the client takes');
  return refusedMessage(version, now, error, of);
}
