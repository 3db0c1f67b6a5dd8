// Describes a set of permission flags in a sentence. The text is made from the flags alone, so it is as true of a
// custom set as of a preset.
import { resourceNames } from '../text.ts';
import { draftOf, type FlagDraft, flagGroups, wildcard } from './draft.ts';

type Flags = Readonly<Record<string, unknown>>;

/** A clause such as `encrypt and decrypt with the keyring payroll`. */
interface Clause {
  readonly verbs: string;
  readonly target: string;
}

const things: ReadonlyMap<string, string> = new Map([
  ...resourceNames,
  ['activity', 'the activity log'],
  ['system', 'the appliance'],
]);

/** Verbs for operations whose names are not used as they are. */
const verbs: Readonly<Record<string, string>> = {
  create: 'create',
  update: 'change',
  config: 'change the settings of',
  validate: 'check',
  datakey: 'get data keys from',
  'datakey-wrapped': 'get encrypted data keys from',
  verify: 'verify signatures of',
  'system.metrics': 'read the metrics of',
  'approval.rule': 'set the rules of',
  'system.backup': 'back up',
};

/** Operations done with a ring instead of to it. */
const uses: readonly string[] = ['encrypt', 'decrypt', 'rewrap', 'sign'];

/** Maximum number of ring names in a clause; the rest are counted. */
const mostRings = 4;

/** Flags whose holder can pass on their own flags, through the users or keys that they create or change. */
const passers = ['user.create', 'user.update', 'user.invite', 'apikey.create', 'apikey.update'];

/** `isMine`: the text is for the holder. */
export function abilitiesText(flags: Flags, isMine = false): string {
  const holder = isMine ? 'You' : 'The holder of these flags';
  const { plain, rings, others } = draftOf(flags);
  const own = others.filter(({ granted }) => granted).length;
  if (plain.includes(wildcard)) {
    return `${holder} can do everything, now and later, and grant it to others.`;
  }
  const clauses = clausesOf({ plain, rings });
  const sentences = [
    clauses.length === 0 ? `${holder} can do nothing here.` : `${holder} can ${clausesText(clauses)}. Nothing else.`,
  ];
  if (passers.some((flag) => plain.includes(flag) || plain.includes(`${flag.slice(0, flag.indexOf('.'))}.*`))) {
    sentences.push(
      `${isMine ? 'You can grant others what you have yourself' : 'They can grant others what they have themselves'}.`,
    );
  }
  if (own > 0) {
    const what = own === 1 ? 'One flag means' : `${own} flags mean`;
    sentences.push(`${what} something only to your own programs.`);
  }
  return sentences.join(' ');
}

/** Acts that flags name, such as `delete every keyring, now and later`; empty if there are none. */
export function actsText(draft: Pick<FlagDraft, 'plain' | 'rings'>): string {
  return draft.plain.includes(wildcard) ? 'do anything that takes a permission' : clausesText(clausesOf(draft));
}

function clausesOf({ plain, rings }: Pick<FlagDraft, 'plain' | 'rings'>): Clause[] {
  return flagGroups.flatMap(({ resource, plain: operations, ofRing }) => [
    ...ringClauses(
      resource,
      rings.filter((row) => row.resource === resource && !plain.includes(`${resource}.${wildcard}`)),
      ofRing.map(({ name }) => name),
    ),
    ...plainClauses(
      resource,
      operations.map(({ name }) => name),
      plain,
    ),
  ]);
}

interface RingOperations {
  readonly ring: string;
  readonly operations: readonly string[];
}

function ringClauses(resource: string, rows: readonly RingOperations[], all: readonly string[]): Clause[] {
  const ofEvery = rows.find(({ ring }) => ring === wildcard)?.operations ?? [];
  const targets = new Map<string, { readonly operations: readonly string[]; readonly rings: string[] }>();
  for (const { ring, operations } of rows) {
    const rest = operations.includes(wildcard)
      ? [wildcard]
      : all.filter((name) => operations.includes(name) && (ring === wildcard || !ofEvery.includes(name)));
    if (rest.length === 0 || (ring !== wildcard && ofEvery.includes(wildcard))) continue;
    const same = targets.get(`${ring === wildcard} ${rest}`) ?? { operations: rest, rings: [] };
    same.rings.push(ring);
    targets.set(`${ring === wildcard} ${rest}`, same);
  }
  const thing = things.get(resource)?.replace(/s$/, '') ?? resource;
  return [...targets.values()].flatMap(({ operations, rings }) => {
    const target = ringsText(thing, rings);
    if (operations.includes(wildcard)) return [{ verbs: 'do everything with', target }];
    const used = operations.filter((name) => uses.includes(name));
    const kept = operations.filter((name) => !uses.includes(name));
    return [
      ...(used.length > 0 ? [{ verbs: `${listText(used)} with`, target }] : []),
      ...(kept.length > 0 ? [{ verbs: listText(kept.map((name) => verbOf(resource, name))), target }] : []),
    ];
  });
}

function ringsText(thing: string, rings: readonly string[]): string {
  if (rings.includes(wildcard)) return `every ${thing}, now and later`;
  const [first = ''] = rings;
  if (rings.length === 1) return `the ${thing} ${first}`;
  const rest = rings.length - mostRings;
  const names = rest > 1 ? [...rings.slice(0, mostRings), `${rest} more`] : rings;
  return `the ${thing}s ${listText(names)}`;
}

function plainClauses(resource: string, all: readonly string[], plain: readonly string[]): Clause[] {
  const target = things.get(resource) ?? resource;
  if (plain.includes(`${resource}.${wildcard}`)) return [{ verbs: 'do everything with', target }];
  const granted = all.filter((name) => plain.includes(`${resource}.${name}`));
  if (granted.length === 0) return [];
  return [{ verbs: listText(granted.map((name) => verbOf(resource, name))), target }];
}

function verbOf(resource: string, name: string): string {
  return verbs[`${resource}.${name}`] ?? verbs[name] ?? name;
}

/** Merges the targets of the same verbs. */
function clausesText(clauses: readonly Clause[]): string {
  const targets = new Map<string, string[]>();
  for (const { verbs, target } of clauses) targets.set(verbs, [...(targets.get(verbs) ?? []), target]);
  const texts = [...targets].map(([verbs, each]) => `${verbs} ${listText(each)}`);
  return texts.join('; ');
}

/** A list such as `a, b and c`. */
function listText(texts: readonly string[]): string {
  const last = texts.at(-1) ?? '';
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(', ')} and ${last}`;
}
