// An operation of KMIP, and what one has while it runs: the batch's transaction, the client's version, the ID
// placeholder, and the object that its record is about.

import type { KeyWork } from '../../core/key-work.ts';
import {
  type KmipObject,
  type KmipRight,
  knownKmipObject,
  needKmipRight,
  noKmipObject,
} from '../../core/kmip-objects.ts';
import { keyRef } from '../../core/managed-keys.ts';
import type { BatchContext } from '../../http/batch-way.ts';
import type { ActivityDetails } from '../../model/activity-details.ts';
import type { KeyType } from '../../model/key-types.ts';
import type { Slices } from '../../store/sql.ts';
import { Effort } from './effort.ts';
import { attributesOf } from './objects.ts';
import { denied, laterReasons, Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import { all, one, type Structure, structure, text } from './ttlv.ts';
import { isSecond, type Version } from './versions.ts';

export interface Operation {
  readonly code: number;
  readonly name: string;
  readonly since: Version;
  /** Name under which it is recorded. */
  readonly action: string;
  /** Whether it has work for another thread. `type` is the named object's, undefined if that is not known. */
  readonly isCostly?: (payload: Structure, type: KeyType | undefined) => boolean;
  readonly run?: (work: Work, payload: Structure) => Structure;
  /** Instead of `run`, for operations that know no objects: clients without an API key may have them, too. */
  readonly open?: (version: Version, payload: Structure) => Structure;
  /** Instead of `run`, for work that may be too long for one turn of the event loop. */
  readonly slices?: (work: Work, payload: Structure) => Slices<Structure>;
}

interface Found {
  /** Archived objects too. */
  readonly archived?: boolean;
  readonly destroyed?: boolean;
}

/** Characters of an id that a record keeps. */
const longestAsked = 256;
const idPlaceholder = 1;
const [uniqueId, privateId, publicId] = [
  tags.uniqueIdentifier,
  tags.privateKeyUniqueIdentifier,
  tags.publicKeyUniqueIdentifier,
];

/** Enumerations of 2.x for ids of the batch: the code of an operation that is served, and the field of its answer. */
const lastIds: ReadonlyMap<number, readonly [operation: number, tag: number]> = new Map([
  [0x03, [0x01, uniqueId]],
  [0x04, [0x02, privateId]],
  [0x05, [0x02, privateId]],
  [0x06, [0x02, publicId]],
  [0x08, [0x05, uniqueId]],
  [0x0b, [0x08, uniqueId]],
  [0x0c, [0x03, uniqueId]],
  [0x0d, [0x04, uniqueId]],
  [0x0f, [0x1d, privateId]],
  [0x10, [0x1d, privateId]],
  [0x11, [0x1d, publicId]],
]);

export class Work {
  readonly ctx: BatchContext;
  readonly version: Version;
  readonly keys: KeyWork;
  /** Unique identifier for items of the batch that name none. */
  placeholder: string | undefined = undefined;
  /** By number of the enumeration: the ids that operations of the batch answered with. */
  readonly #ids = new Map<number, string>();
  readonly effort = new Effort();
  /** Name of the managed key that the item is about. */
  subject = '';
  /** The object that the item named and the client may know of. */
  #named: KmipObject | undefined;
  /** The id that the item named. */
  #asked: string | undefined;

  constructor(ctx: BatchContext, version: Version, keys: KeyWork) {
    this.ctx = ctx;
    this.version = version;
    this.keys = keys;
  }

  get now(): number {
    return this.ctx.world.now();
  }

  get isSecond(): boolean {
    return isSecond(this.version);
  }

  /** Begins with another item. */
  begin(): void {
    this.ctx.deed = undefined;
    this.ctx.further = [];
    this.subject = '';
    this.#named = undefined;
    this.#asked = undefined;
  }

  /** The object of a refused item as its record names it, or else the id that the item named. */
  refusedObject(): { readonly name: string; readonly deed: ActivityDetails | undefined; readonly asked?: string } {
    const key = this.#named?.key;
    if (key) return { name: key.name, deed: { object: keyRef(key) } };
    const asked = this.#asked?.slice(0, longestAsked).toWellFormed();
    return { name: '', deed: undefined, ...(asked !== undefined && { asked }) };
  }

  /** The id in a field; the placeholder if there is none. */
  id(payload: Structure, tag: number = tags.uniqueIdentifier): string {
    const given = one(payload, tag);
    if (given?.type === 'text') return given.value;
    if (given && (given.type !== 'enumeration' || !this.isSecond)) {
      throw new Refusal(reasons.invalidMessage, 'the unique identifier is no text');
    }
    const found = given ? this.#meant(given.value) : this.placeholder;
    if (found !== undefined) return found;
    throw new Refusal(reasons.missingData, 'expected a unique identifier: no operation before this one has set one');
  }

  /** The id that an enumeration of 2.x stands for: the placeholder, or that of the last operation of a kind. */
  #meant(number: number): string | undefined {
    if (number === idPlaceholder) return this.placeholder;
    if (lastIds.has(number)) return this.#ids.get(number);
    throw new Refusal(reasons.invalidField, 'there is no such unique identifier');
  }

  /** Notes the answer of an operation, whose ids items after this one may mean. */
  answered(code: number, payload: Structure): void {
    for (const [number, [operation, tag]] of lastIds) {
      if (operation !== code) continue;
      const ids = all(payload, tag);
      const [first] = ids;
      // Several hits of a search leave none, as they leave no placeholder.
      if (ids.length === 1 && first?.type === 'text') this.#ids.set(number, first.value);
      else this.#ids.delete(number);
    }
  }

  /** The object that a payload names. Throws `Refusal`, `not-found`, `forbidden`. */
  find(payload: Structure, right: KmipRight, also: Found = {}): KmipObject {
    return this.byId(this.id(payload), right, also);
  }

  byId(id: string, right: KmipRight, { archived = false, destroyed = false }: Found = {}): KmipObject {
    this.#asked = id;
    this.#named = undefined;
    const found = knownKmipObject(this.ctx, id, right);
    if (!found) throw noKmipObject();
    this.isAbout(found);
    needKmipRight(this.ctx, found, right);
    if (found.isDestroyed && !destroyed) {
      throw new Refusal(reasons.itemNotFound, 'there is no such object', laterReasons.objectDestroyed);
    }
    if (!archived && attributesOf(found).first('Archive Date')) {
      throw new Refusal(reasons.objectArchived, 'the object is archived');
    }
    if (found.state === 'suspended' && !rightsToSuspended.has(right)) {
      throw denied('an operator suspended the object, and resumes it or ends it');
    }
    return found;
  }

  /** Notes the object that the item is about. */
  isAbout(object: KmipObject, deed: ActivityDetails = {}): void {
    this.#named = object;
    this.subject = object.key.name;
    this.ctx.note({ object: keyRef(object.key), ...deed });
  }

  /** Notes a new object, which items after this one may mean. */
  made(object: KmipObject): void {
    this.placeholder = object.id;
    this.subject = object.key.name;
    this.ctx.note({ object: keyRef(object.key), custody: 'server' });
  }
}

/**
 * Rights to an object that its operator suspended: only the operator gets it out of this state. Its uses are
 * refused as for any other key that is not active.
 */
const rightsToSuspended: ReadonlySet<KmipRight> = new Set<KmipRight>([
  ...(['read', 'config', 'encrypt', 'decrypt', 'sign', 'verify', 'mac', 'wrap', 'derive'] as const),
]);

/** The answer of an operation that tells no more than the object's id. */
export function idAnswer({ id }: KmipObject): Structure {
  return structure(tags.responsePayload, text(tags.uniqueIdentifier, id));
}
