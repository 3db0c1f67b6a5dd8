// Kind is one kind of object that configuration files describe: how such objects are found on an appliance, compared
// with a file, made, changed and removed. Each is a file in kinds/. It knows neither files nor plans, and asks the
// appliance through the API alone, with the caller's flags.
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

/** An object that the appliance has. */
export interface Found {
  readonly id: string;
  /** The name as a file would have it. */
  readonly name: string;
  /** Every field that a file can set, in the form that `canonical` gives it. */
  readonly fields: JsonObject;
  /** `props.managedBy`: which configuration made it. Absent for objects that were made by hand. */
  readonly managedBy?: string;
  /** An earlier run was cut off while it made the object: it is removed and made again. */
  readonly isUnfinished?: true;
  /** Facts that only the kind itself reads, such as ids of proofs. */
  readonly facts?: unknown;
}

/** Another object that has to be there first. */
export interface Reference {
  readonly kind: KindName;
  readonly name: string;
  /** Path of the field that names it. */
  readonly path: readonly (string | number)[];
}

/** A field that is not as the file says. */
export interface Difference {
  readonly field: string;
  /** Absent if there is none. */
  readonly before?: unknown;
  readonly after: unknown;
  /** Words for people, instead of the two values. */
  readonly words?: string;
}

/** A problem that is certain before anything is done. */
export interface Problem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** A secret that the appliance tells once, for the object that it belongs to. */
export interface Secret {
  readonly kind: KindName;
  readonly name: string;
  /** Distinguishes several of one object, and ends the names of their files: `apikey`, `ci.aws`, `tls.key`. */
  readonly label: string;
  readonly text: string;
}

/** Access to an appliance. */
export interface Desk {
  readonly client: Client;
  /** Requests of the operator; undefined over the network. */
  readonly local: Local | undefined;
  /** The mark that new objects get. */
  readonly managedBy: string;
  /** Names of objects that the kind needs besides its own, such as an account's uid by its id. */
  readonly lookUp: (kind: KindName) => Promise<readonly Found[]>;
}

/** A desk at which objects are changed. */
export interface Workplace extends Desk {
  /** Keeps a secret. Rejects if it could not be kept; the kind then takes back whatever has it. */
  deliver(secret: Secret): Promise<void>;
  /** Whether a key that was used in the last 24 hours may be suspended or deleted. */
  readonly isUsedAllowed: boolean;
}

export interface Kind {
  readonly name: KindName;
  /** What people call one, and several. */
  readonly noun: readonly [one: string, several: string];
  /** The form in which the appliance compares names. */
  nameKey(name: string): string;
  references(wanted: Wanted): readonly Reference[];
  /** The fields in the form in which the appliance shows them, so that both can be compared. */
  canonical(fields: JsonObject): JsonObject;
  /** All of them. Throws `forbidden` if the caller may not list them. */
  list(desk: Desk): Promise<readonly Found[]>;
  /**
   * One by its name, for callers who may not list them; undefined if there is none. Absent: there is no such request.
   * Throws `forbidden` if the caller may not see it.
   */
  find?(desk: Desk, name: string): Promise<Found | undefined>;
  /** Reads facts that lists do not have, of objects whose file has fields that need them. */
  detail?(desk: Desk, found: Found, fields: JsonObject | 'all'): Promise<Found>;
  /** Fields that differ; by default those that the file names and whose canonical values are others. */
  differences?(wanted: Wanted, found: Found): readonly Difference[];
  /** Problems of a new object, or of a change, that the appliance would refuse for certain. */
  problems?(wanted: Wanted, found: Found | undefined, differences: readonly Difference[]): readonly Problem[];
  /** Permission flags that the change takes. `found` is absent for a new one, `wanted` for one that is removed. */
  flagsFor(wanted: Wanted | undefined, found: Found | undefined, differences: readonly Difference[]): readonly string[];
  /** Labels of the secrets that making or changing it brings. */
  secrets(wanted: Wanted, found: Found | undefined, differences: readonly Difference[]): readonly string[];
  create(desk: Workplace, wanted: Wanted): Promise<void>;
  update(desk: Workplace, wanted: Wanted, found: Found, differences: readonly Difference[]): Promise<void>;
  /** Absent for things that cannot be removed. */
  remove?(desk: Workplace, found: Found): Promise<void>;
  /** Why it may not be removed although it has the mark; undefined if it may. */
  keptBecause?(desk: Desk, found: Found, removed: ReadonlySet<string>): Promise<string | undefined>;
  /** The fields of an exported file, without those that have their defaults. */
  exported(found: Found): JsonObject;
}
