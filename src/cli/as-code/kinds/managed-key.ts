// Managed keys in configuration files. Type, uses and derivation are fixed when a key is made; versions come by
// rotation and stand in no file.
import type { ManagedKey } from '../../../api/managed-keys.ts';
import type { InputOf } from '../../../client/client.ts';
import { items } from '../../../client/pages.ts';
import { KmsError } from '../../../errors.ts';
import { flagName } from '../../../model/flags.ts';
import { type JsonObject, sameJson } from '../../../model/json.ts';
import { type KeyState, movesFrom, stateAfter } from '../../../model/key-states.ts';
import { type KeyType, type KeyUse, keyUses, usesProblem, usualUses } from '../../../model/key-types.ts';
import { reservedKeyNames } from '../../../model/names.ts';
import { differing, withoutDefaults } from '../differing.ts';
import type { Around, Desk, Difference, Found, Kind, Problem, Restorable, Wanted } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';
import { eachOrWaiting } from '../waiting.ts';
import { ifAllowed, ifThere, isHidden } from './account.ts';

const dayLength = 86_400_000;
const deletedToo = { limit: 10_000, deleted: 'true' } as const;

interface FoundManagedKey extends Found {
  readonly latestVersion: number;
}

function foundOf(key: ManagedKey): FoundManagedKey {
  const { props, ...mark } = unmarked(key.props);
  return {
    id: key.id,
    name: key.displayName,
    latestVersion: key.latestVersion,
    fields: {
      type: key.type,
      uses: canonicalUses(key.uses),
      aliases: aliasesIn(key.aliases),
      derived: key.derived,
      exportable: key.exportable,
      origin: key.origin,
      rotateAfter: key.rotateAfter,
      deletionAllowed: key.deletionAllowed,
      minDecryptVersion: key.minDecryptVersion,
      minEncryptVersion: key.minEncryptVersion,
      tags: key.tags,
      props,
      activateAt: key.activateAt,
      deactivateAt: key.deactivateAt,
      state: key.state,
    },
    ...mark,
  };
}

/** The form in which names and aliases compare. */
function nameKey(name: string): string {
  return name.toLowerCase();
}

/** Each of them once, as it was given, in one order. */
function aliasesIn(list: unknown): readonly string[] {
  const known = new Map([list].flat().map((alias) => [nameKey(String(alias)), String(alias)]));
  return [...known].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, alias]) => alias);
}

function aliasKeys(list: unknown): readonly string[] {
  return aliasesIn(list).map(nameKey);
}

/** In one order; `export` is said by `exportable`. */
function canonicalUses(uses: unknown): readonly KeyUse[] {
  return keyUses.filter((use) => use !== 'export' && Array.isArray(uses) && uses.includes(use));
}

/** A time that is past, of a field with a date. */
function isPast(date: unknown): boolean {
  return typeof date === 'number' && date <= Date.now();
}

/** The state that a file means: its dates, or else those that the key has, may have moved the key by themselves. */
function wantedState({ state, ...dates }: JsonObject, found: JsonObject): unknown {
  const { activateAt, deactivateAt } = { ...found, ...dates };
  const isWaiting = typeof activateAt === 'number' && !isPast(activateAt);
  const begun = state === 'pre-active' && isPast(activateAt) ? 'active' : state;
  const isEnded = isPast(deactivateAt) && (begun === 'active' || begun === 'suspended');
  const byDate = isEnded ? 'deactivated' : isWaiting && state === 'active' ? 'pre-active' : begun;
  return byDate === found.state ? byDate : state;
}

function differences({ fields }: Wanted, found: Found): Difference[] {
  const wanted = canonical(fields);
  const { aliases } = found.fields;
  const hasAliases = fields.aliases !== undefined && sameJson(aliasKeys(fields.aliases), aliasKeys(aliases));
  const state = fields.state === undefined ? {} : { state: wantedState(fields, found.fields) };
  return differing({ ...wanted, ...(hasAliases && { aliases }), ...state }, found.fields).filter(
    // It has begun: by the date, or before it.
    ({ field, after }) => !(field === 'activateAt' && isPast(after) && found.fields.state !== 'pre-active'),
  );
}

function canonical(fields: JsonObject): JsonObject {
  const forms: Readonly<Record<string, (value: unknown) => unknown>> = {
    uses: canonicalUses,
    aliases: aliasesIn,
    minDecryptVersion: (version) => Math.max(1, Number(version)),
  };
  return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, forms[field]?.(value) ?? value]));
}

/** Fields that stay as they were when the key was made. */
const fixed = ['type', 'uses', 'derived', 'origin'] as const;

function problems(wanted: Wanted, found: Found | undefined, changes: readonly Difference[], around: Around): Problem[] {
  const own = found
    ? [...changeProblems(changes, found), ...versionProblems(wanted, found)]
    : newProblems(wanted, around);
  return [...own, ...dateProblems(wanted, found), ...tagProblems(wanted), ...aliasProblems(wanted, around)];
}

function newProblems({ name, fields }: Wanted, around: Around): Problem[] {
  const wrong: Problem[] = [];
  const holder = around.found('managed-key').find((each) => aliasKeys(each.fields.aliases).includes(nameKey(name)));
  if (holder) {
    const message = `the managed key ${holder.name} has it as an alias: a run before this one can free it`;
    wrong.push({ path: ['name'], message });
  }
  if (reservedKeyNames.has(name.toLowerCase()))
    wrong.push({ path: ['name'], message: 'no managed key can have this name' });
  // Casts: the schema has checked both.
  const type = (fields.type ?? 'aes256-gcm') as KeyType;
  const uses = fields.uses as readonly KeyUse[] | undefined;
  const problem = usesProblem(type, uses ?? usualUses(type));
  if (problem !== undefined) wrong.push({ path: ['uses'], message: problem });
  const { state, deactivateAt } = fields;
  const isFirst = state === undefined || state === 'active' || state === 'suspended';
  if (!isFirst) wrong.push({ path: ['state'], message: `a new key is active or suspended, not ${state}` });
  if (isPast(deactivateAt)) {
    wrong.push({ path: ['deactivateAt'], message: 'expected a time to come: the key would never protect anything' });
  }
  for (const field of ['minDecryptVersion', 'minEncryptVersion'] as const) {
    const value = fields[field];
    if (typeof value === 'number' && value > 1) wrong.push({ path: [field], message: 'a new key has version 1 alone' });
  }
  return wrong;
}

function changeProblems(changes: readonly Difference[], { fields }: Found): Problem[] {
  return changes.flatMap(({ field, before, after }): Problem[] => {
    if (fixed.some((each) => each === field)) {
      const was = Array.isArray(before) ? before.join(', ') : String(before);
      return [{ path: [field], message: `cannot be changed: the key has ${was}; make another one` }];
    }
    const isBegun = field === 'activateAt' && typeof after === 'number' && fields.state !== 'pre-active';
    if (isBegun) {
      const message = `the key is ${fields.state}: only one that was never active has a time for that`;
      return [{ path: [field], message }];
    }
    if (field === 'exportable' && after === true) {
      return [{ path: [field], message: 'cannot be given back: a key that may not leave the appliance stays so' }];
    }
    const isMove = field === 'state' && !canMove(String(fields.state) as KeyState, after);
    return isMove ? [{ path: [field], message: `cannot be reached: the key is ${fields.state}` }] : [];
  });
}

function versionProblems({ fields }: Wanted, found: Partial<FoundManagedKey> & Found): Problem[] {
  const named = canonical(fields);
  const { latestVersion } = found;
  const [decrypts, encrypts] = (['minDecryptVersion', 'minEncryptVersion'] as const).map((field) =>
    Number(named[field] ?? found.fields[field]),
  );
  // A state of the provider may lack it: the appliance judges.
  if (latestVersion === undefined || decrypts === undefined || encrypts === undefined) return [];
  if (named.minDecryptVersion !== undefined && decrypts > Math.max(1, latestVersion)) {
    return [{ path: ['minDecryptVersion'], message: `the latest version is ${latestVersion}` }];
  }
  if (encrypts === 0 || (encrypts >= decrypts && encrypts <= latestVersion)) return [];
  const path = [fields.minEncryptVersion === undefined ? 'minDecryptVersion' : 'minEncryptVersion'];
  const message = `minEncryptVersion is 0, or a version from ${decrypts} to ${latestVersion}, not ${encrypts}`;
  return fields.minEncryptVersion === undefined && fields.minDecryptVersion === undefined ? [] : [{ path, message }];
}

const mostTags = 50;
const longestTag = 256;

function tagProblems({ fields }: Wanted): Problem[] {
  const entries = Object.entries(Object(fields.tags));
  if (entries.length > mostTags) return [{ path: ['tags'], message: `expected at most ${mostTags} tags` }];
  return entries.flatMap(([name, text]): Problem[] => {
    const isText = typeof text === 'string' && text.length <= longestTag && name !== '' && name.length <= longestTag;
    const message = `expected a name and a text of at most ${longestTag} characters`;
    return isText ? [] : [{ path: ['tags', name], message }];
  });
}

function dateProblems({ fields }: Wanted, found: Found | undefined): Problem[] {
  const wrong: Problem[] = [];
  const { activateAt, deactivateAt, state } = { ...found?.fields, ...fields };
  const isWaiting = typeof activateAt === 'number' && !isPast(activateAt);
  if (typeof activateAt === 'number' && typeof deactivateAt === 'number' && deactivateAt <= activateAt) {
    wrong.push({ path: ['deactivateAt'], message: 'expected a time after activateAt' });
  }
  if (isWaiting && fields.state !== undefined && state === 'suspended') {
    wrong.push({ path: ['state'], message: 'a key with a time to come in activateAt is not suspended: leave it out' });
  }
  return wrong;
}

function canMove(from: KeyState, to: unknown): boolean {
  return movesFrom(from).some((move) => {
    const after = move === 'restore' || move === 'destroy' ? undefined : stateAfter(from, move, undefined);
    return after !== undefined && 'state' in after && after.state === to;
  });
}

/** An alias that another key has, and keeps. */
function aliasProblems(wanted: Wanted, around: Around): Problem[] {
  if (wanted.fields.aliases === undefined) return [];
  const own = nameKey(wanted.name);
  const others = around.found('managed-key').filter(({ name }) => nameKey(name) !== own);
  const kept = (other: Found, alias: string): boolean => {
    if (around.leaving.has(other.id)) return false;
    const file = around.wanted('managed-key').find(({ name }) => nameKey(name) === nameKey(other.name));
    return file?.fields.aliases === undefined || aliasKeys(file.fields.aliases).includes(alias);
  };
  return [wanted.fields.aliases].flat().flatMap((given, at): Problem[] => {
    const path = ['aliases', at];
    const alias = nameKey(String(given));
    if (others.some(({ name }) => nameKey(name) === alias))
      return [{ path, message: `a managed key has the name ${alias}` }];
    const twins = around.wanted('managed-key').filter(({ name }) => nameKey(name) !== own);
    const twin = twins.find(
      ({ name, fields: { aliases = [] } }) => nameKey(name) === alias || aliasKeys(aliases).includes(alias),
    );
    if (twin) return [{ path, message: `the managed key ${twin.name} of the files has it, too` }];
    const holder = others.find((each) => aliasKeys(each.fields.aliases).includes(alias));
    return holder && kept(holder, alias)
      ? [{ path, message: `the managed key ${holder.name} has the alias ${alias}: a run before this one can free it` }]
      : [];
  });
}

function flagsFor(wanted: Wanted | undefined, found: Found | undefined, changes: readonly Difference[]) {
  if (!found) return ['key.create'];
  if (!wanted) return [flagName('key.delete', nameKey(found.name))];
  const fields = changes.map(({ field }) => field);
  const isState = (field: string): boolean => ['state', 'activateAt', 'deactivateAt'].includes(field);
  const action = (needed: boolean, flag: string) => (needed ? [flagName(flag, nameKey(found.name))] : []);
  return [
    ...action(
      fields.some((field) => field !== 'state'),
      'key.config',
    ),
    ...action(fields.some(isState), 'key.state'),
  ];
}

async function recentUse({ client, isUsedAllowed }: Desk, { name }: Found): Promise<string | undefined> {
  if (isUsedAllowed) return undefined;
  const since = String(Date.now() - dayLength);
  const { dependents } = await client.listManagedKeyDependents({ key: nameKey(name), since });
  const callers = new Set(dependents.map(({ caller }) => caller)).size;
  if (callers === 0) return undefined;
  return `${callers === 1 ? '1 caller' : `${callers} callers`} used it in the last 24 hours: --used goes on all the same`;
}

/** Changes of the configuration, then of aliases, then of the state; a key that is to stop does so first. */
async function update(desk: Desk, wanted: Wanted, found: Found, changes: readonly Difference[]): Promise<void> {
  const { client, isUsedAllowed } = desk;
  const key = nameKey(found.name);
  const changed = new Map(changes.map((change) => [change.field, change]));
  const state = changed.get('state')?.after as InputOf<'setManagedKeyState'>['state'] | undefined;
  const move = async (): Promise<void> => {
    if (state !== undefined) await client.setManagedKeyState({ key, state, ...(isUsedAllowed && { used: true }) });
  };
  if (state !== 'active') await move();
  const { aliases, state: _, ...named } = wanted.fields;
  const config = Object.fromEntries(Object.entries(named).filter(([field]) => changed.has(field)));
  if (changed.has('props')) config.props = keepingMark(named.props, found);
  const { before = [], after = [] } = changed.get('aliases') ?? {};
  const [had, has] = [new Set(aliasKeys(before)), new Set(aliasKeys(after))];
  const added = aliasesIn(after).filter((alias) => !had.has(nameKey(alias)));
  await eachOrWaiting(
    [
      ...(Object.keys(config).length > 0 ? [() => client.configureManagedKey({ key, ...config })] : []),
      ...added.map((alias) => () => client.addManagedKeyAlias({ key, alias })),
    ],
    (change): Promise<unknown> => change(),
  );
  // One may have moved to another key already.
  await eachOrWaiting(
    [...had].filter((alias) => !has.has(alias)),
    (alias) => ifThere(client.removeManagedKeyAlias({ key, alias })),
  );
  if (state === 'active') await move();
}

/** Whether each alias that is there is one of the two lists, and none is missing that both have. */
function isBetween({ field, before, after }: Difference, _wanted: Wanted, found: Found): boolean {
  if (field !== 'aliases') return false;
  const [had, has, now] = [aliasKeys(before ?? []), aliasKeys(after ?? []), aliasKeys(found.fields.aliases)];
  const isPlanned = now.every((alias) => had.includes(alias) || has.includes(alias));
  return isPlanned && had.every((alias) => now.includes(alias) || !has.includes(alias));
}

/** Takes these aliases from deleted keys, which have theirs until they are destroyed. Returns whether one had any. */
async function freeOfDeleted(client: Desk['client'], names: readonly string[]): Promise<boolean> {
  const wanted = new Set(names.map(nameKey));
  let isFreed = false;
  for await (const { id, name, aliases, deletedAt } of items(client.listManagedKeys, deletedToo)) {
    for (const alias of deletedAt === undefined ? [] : aliasKeys(aliases).filter((each) => wanted.has(each))) {
      await ifThere(client.removeManagedKeyAlias({ key: id, alias })).catch((cause) => {
        if (!isHidden(cause)) throw cause;
        throw new KmsError('forbidden', `the deleted key ${name} has ${alias} as an alias: ${cause.message}`, {
          cause,
        });
      });
      isFreed = true;
    }
  }
  return isFreed;
}

const defaults = {
  aliases: [],
  derived: false,
  exportable: false,
  origin: 'generated',
  rotateAfter: null,
  deletionAllowed: false,
  minDecryptVersion: 1,
  minEncryptVersion: 0,
  tags: {},
  props: {},
  activateAt: null,
  deactivateAt: null,
  state: 'active',
};

export const managedKeyKind: Kind = {
  name: 'managed-key',
  noun: ['managed key', 'managed keys'],
  listFlag: 'key.list',
  nameKey,
  references: () => [],
  async list({ client }) {
    const found: Found[] = [];
    for await (const key of items(client.listManagedKeys, { limit: 10_000 })) found.push(foundOf(key));
    return found;
  },
  async find({ client }, name) {
    const answer = await ifThere(client.getManagedKey({ key: name }));
    // An id or an alias leads to a key of another name.
    const isNamed = answer?.key.name === nameKey(name) && answer.key.deletedAt === undefined;
    return answer && isNamed ? foundOf(answer.key) : undefined;
  },
  differences,
  problems,
  async blockedBecause(desk, found, changes) {
    const isStopped = ({ field, after }: Difference): boolean =>
      (field === 'state' && (after === 'suspended' || after === 'deactivated')) ||
      (field === 'deactivateAt' && isPast(after));
    return changes.some(isStopped) ? recentUse(desk, found) : undefined;
  },
  isFinal: ({ field, after }) =>
    (field === 'state' && (after === 'deactivated' || after === 'compromised')) ||
    (field === 'deactivateAt' && isPast(after)) ||
    (field === 'exportable' && after === false),
  flagsFor,
  secrets: () => [],
  async restorable({ client }) {
    const gone: Restorable[] = [];
    for await (const { id, name, deletedAt, restorableUntil } of items(client.listManagedKeys, deletedToo)) {
      if (deletedAt !== undefined) gone.push({ name, command: `kms key restore ${id}`, until: restorableUntil ?? '' });
    }
    return gone;
  },
  laterFields: ['aliases'],
  isBetween,
  unclaimed(leaving, wanted) {
    const claimed = new Set(
      wanted.flatMap(({ kind, fields }) => (kind === 'managed-key' ? aliasKeys(fields.aliases ?? []) : [])),
    );
    const aliases = aliasesIn(leaving.fields.aliases).filter((alias) => !claimed.has(nameKey(alias)));
    return { ...leaving, fields: { ...leaving.fields, aliases } };
  },
  /** Aliases move from the keys that have them once the new one is there. */
  async create({ client, managedBy, list }, wanted) {
    const { minDecryptVersion: _, minEncryptVersion: __, ...given } = wanted.fields;
    const aliases = Array.isArray(given.aliases) ? given.aliases.map(String) : [];
    const known = aliases.length > 0 ? await ifAllowed(list('managed-key')) : [];
    const taken = new Set(known === 'unseen' ? [] : known.flatMap(({ fields }) => aliasKeys(fields.aliases)));
    const [free, others] = [false, true].map((isTaken) =>
      aliases.filter((alias) => taken.has(nameKey(alias)) === isTaken),
    );
    const { name } = wanted;
    const props = marked(wanted.fields.props, managedBy);
    // Cast: the schema has checked the fields; a new key has no other states.
    const body = { ...given, ...(given.aliases !== undefined && { aliases: free }), name, props };
    const make = () => client.createManagedKey(body as InputOf<'createManagedKey'>);
    await make().catch(async (error) => {
      const problems = error instanceof KmsError ? Object.keys(error.fields ?? {}) : [];
      const isTaken = problems.some((field) => field === 'name' || field === 'alias');
      if (!isTaken || !(await freeOfDeleted(client, [name, ...(free ?? [])]))) throw error;
      return make();
    });
    for (const alias of others ?? []) await client.addManagedKeyAlias({ key: nameKey(name), alias });
  },
  update,
  async remove({ client, isUsedAllowed }, { name }) {
    await client.deleteManagedKey({ key: nameKey(name), ...(isUsedAllowed && { used: true }) });
  },
  async keptBecause(desk, found) {
    if (found.fields.deletionAllowed !== true) return 'it is protected from deletion (deletionAllowed: false)';
    return recentUse(desk, found);
  },
  exported({ name, fields }) {
    // A secret is a value that somebody stored, and each appliance makes the authority of its certificates by itself.
    const isOwn =
      fields.type === 'secret' || (fields.type === 'ecdsa-p256' && /^client-ca(?:-\d+)?$/.test(nameKey(name)));
    if (isOwn) return undefined;
    const { state, ...rest } = fields;
    // Dates decide it, here and wherever the file is applied.
    const isByDate =
      (state === 'pre-active' && fields.activateAt !== null) ||
      (state === 'deactivated' && isPast(fields.deactivateAt));
    return withoutDefaults(isByDate ? rest : fields, defaults);
  },
};
