// Kind is one kind of object that configuration files describe: how such objects are found on an appliance, compared
// with a file, made, changed and removed. Each is a file in kinds/. It knows neither files nor plans, and asks the
// appliance through the API alone, with the caller's flags.
import type { ApprovalRequest } from '../../api/approvals.ts';
import type { KindName } from '../../api/configuration.ts';
import type { Client } from '../../client/client.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Local } from '../connect.ts';

/** An object that a file describes. `fields` are the API's, without `kind` and `name`; the schema has checked them. */
export interface Wanted {
  readonly kind: KindName;
  readonly name: string;
  readonly fields: JsonObject;
}

/** An object that the appliance has, in plain JSON: the provider of OpenTofu keeps it between requests. */
export interface Found {
  readonly id: string;
  /** The name as a file would have it. */
  readonly name: string;
  /** Fields that a file can set, in canonical form; some kinds read some of them only in `detail`. */
  readonly fields: JsonObject;
  /** `props.managedBy`: which configuration made it. Absent for objects that were made by hand. */
  readonly managedBy?: string;
  /** An earlier run has not made the object whole: it was cut off, or waits for approval. */
  readonly isUnfinished?: true;
  /** Unfinished, it waits for approval, and its secret is in a safe place: known only in `detail`. */
  readonly isKept?: true;
}

/** Another object that has to be there first. */
interface Reference {
  readonly kind: KindName;
  readonly name: string;
  readonly path: Path;
}

/** Names of fields and positions in lists. */
export type Path = readonly (string | number)[];

/** A field that is not as the file says. */
export interface Difference {
  readonly field: string;
  /** Undefined if there is none. */
  readonly before: unknown;
  readonly after: unknown;
  /** Words for people, instead of the two values. */
  readonly words?: readonly string[];
}

/** A problem that is certain before anything is done. */
export interface Problem {
  readonly path: Path;
  readonly message: string;
}

/** A secret that the appliance tells once, for the object that it belongs to. */
export interface Secret {
  /** Distinguishes several of one object, and ends the name of its file: `apikey`, `ci.aws`. */
  readonly label: string;
  readonly text: string;
}

/** An appliance, as it is looked at. */
export interface Desk {
  readonly client: Client;
  /** Requests of the operator; undefined over the network. */
  readonly local: Local | undefined;
  /** The mark of this configuration's objects. */
  readonly managedBy: string;
  /** Id of the API key or user that asks, or `local`. */
  readonly caller: string;
  /** Names of the caller's flags. */
  readonly flags: JsonObject;
  /** Whether managed keys may be suspended and deleted that were used in the last 24 hours. */
  readonly isUsedAllowed: boolean;
  /** All objects of another kind, read once. Throws `forbidden` if the caller may not list them. */
  list(kind: KindName): Promise<readonly Found[]>;
  /** Own requests that wait for approval or have it, read once. */
  asked(): Promise<readonly ApprovalRequest[]>;
}

/** An appliance, as it is changed: where the secrets of one object go. */
export interface Workplace extends Desk {
  /**
   * Whether a later run continues what this one began, with the secrets that were kept. If so, whatever has a new
   * secret is made switched off and switched on once the secret is kept, and a change that waits for approval is left
   * as far as it got. If not, it is made in one request.
   */
  readonly goesOn: boolean;
  /** Keeps a secret. Rejects if it could not be kept; the kind then takes back whatever has it. */
  deliver(secret: Secret): Promise<void>;
  /** Drops the secrets that were kept for the object, or the one with this label: it was taken back. */
  withdraw(label?: string): Promise<void>;
}

/** Other objects: those that the appliance has, as far as the caller sees them, and those in the files. */
export interface Around {
  readonly isLocal: boolean;
  /** Whether `found` has all objects of the kind. */
  isListed(kind: KindName): boolean;
  found(kind: KindName): readonly Found[];
  wanted(kind: KindName): readonly Wanted[];
  /** Ids of those that the same plan removes. */
  readonly leaving: ReadonlySet<string>;
  readonly kept: readonly Kept[];
}

/** An object that has the mark and is in no file, but stays. */
export interface Kept {
  readonly kind: KindName;
  readonly name: string;
  readonly why: string;
}

/** A deleted object that a command brings back. */
export interface Restorable {
  readonly name: string;
  readonly command: string;
  readonly until: string;
}

/** The plan around a removal, which comes after all else. */
export interface After {
  /** Ids of what goes along, or may. */
  readonly leaving: ReadonlySet<string>;
  /** Objects as the plan, or its files, make them. */
  readonly wanted: readonly Wanted[];
}

export interface Kind {
  readonly name: KindName;
  /** Words for one of them, and for several. */
  readonly noun: readonly [one: string, several: string];
  /** The flag that lists them. */
  readonly listFlag: string;
  /** Why it is for the administrator at the machine alone, if it is. */
  readonly onlyHere?: string;
  /** The form in which the appliance compares names. */
  nameKey(name: string): string;
  references(wanted: Wanted): readonly Reference[];
  /** Other kinds whose objects decide whether it has problems. */
  considers?(wanted: Wanted): readonly KindName[];
  /** All of them. Throws `forbidden` if the caller may not list them. */
  list(desk: Desk): Promise<readonly Found[]>;
  /**
   * One by its name, for callers who may not list them; undefined if there is none. Absent: there is no such request.
   * Throws `forbidden` if the caller may not see it.
   */
  find?(desk: Desk, name: string): Promise<Found | undefined>;
  /** The same with fields that lists do not have, if a file has such fields, or for all. */
  detail?(desk: Desk, found: Found, fields: JsonObject | 'all'): Promise<Found>;
  /** Fields that the file names and that are other on the appliance. */
  differences(wanted: Wanted, found: Found): readonly Difference[];
  /** Problems of a new object, or of a change, that the appliance would refuse for certain. */
  problems(
    wanted: Wanted,
    found: Found | undefined,
    differences: readonly Difference[],
    around: Around,
  ): readonly Problem[];
  /** Sentences about the object that no difference tells, for people to note. */
  notes?(wanted: Wanted, found: Found): readonly string[];
  /** Whether a change cannot be taken back. */
  isFinal?(difference: Difference): boolean;
  /** Why a change cannot be made now; undefined if nothing speaks against it. */
  blockedBecause?(desk: Desk, found: Found, differences: readonly Difference[]): Promise<string | undefined>;
  /**
   * Permission flags that the change takes. `found` is absent for a new object, or unfinished; `wanted` is absent for
   * one that is removed.
   */
  flagsFor(wanted: Wanted | undefined, found: Found | undefined, differences: readonly Difference[]): readonly string[];
  /** Whether the change makes again what an earlier one, which was cut off, has left: it, or its secret. */
  isHalfDone?(wanted: Wanted, found: Found): boolean;
  /** Whether the new object, or the change, needs what this one has, which is removed: then that goes first. */
  needsRoomOf?(wanted: Wanted, leaving: Found): boolean;
  /** Fields that a new object gets by requests of their own, after it is there. */
  readonly laterFields?: readonly string[];
  /** Whether a field that takes several requests is on its way between the two values of a planned difference. */
  isBetween?(planned: Difference, wanted: Wanted, found: Found): boolean;
  /** One that is removed, without what the plan gives to others before: that may have moved already. */
  unclaimed?(leaving: Found, wanted: readonly Wanted[]): Found;
  /** Labels of the secrets that the change brings. */
  secrets(wanted: Wanted, found: Found | undefined): readonly string[];
  /** `unfinished` is what an earlier run has left of it. */
  create(desk: Workplace, wanted: Wanted, unfinished?: Found): Promise<void>;
  update(desk: Workplace, wanted: Wanted, found: Found, differences: readonly Difference[]): Promise<void>;
  /** Absent for things that are not removed. */
  remove?(desk: Desk, found: Found): Promise<void>;
  /** Deleted ones that can still be brought back, if such things wait. */
  restorable?(desk: Desk): Promise<readonly Restorable[]>;
  /** Why it stays although it has the mark; undefined if it can go. */
  keptBecause?(desk: Desk, found: Found, after: After): Promise<string | undefined>;
  /** A field that an exported file lacks, since the caller cannot see it, and why. */
  exportLacks?(found: Found): string | undefined;
  /** The fields of an exported file, without those that have their defaults; undefined for what no file describes. */
  exported(found: Found): JsonObject | undefined;
}
