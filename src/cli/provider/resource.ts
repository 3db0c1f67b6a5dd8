// Resources and data sources for the kinds of objects that configuration as code knows: found, compared, made, changed
// and removed as `kms apply` does it.
import { fileProblems } from '../../api/configuration.ts';
import { KmsError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { oddFlags } from '../as-code/differing.ts';
import type { Found, Kind, Wanted, Workplace } from '../as-code/kind.ts';
import { markProblems } from '../as-code/mark.ts';
import { type Attribute, type Attributes, fieldOf, valueOfField } from './attributes.ts';
import { keepsSecrets, noKeeper, noSecrets, type SecretPlace, secretAttributes, secretKeeper } from './kept-secrets.ts';
import type { DataSource, Instance, Problem, ResourceType } from './service.ts';
import { hasUnknown, mapped, type ObjectValue } from './values.ts';

export interface KindOptions {
  readonly kind: Kind;
  readonly about: string;
  /** Attributes for the kind's fields. */
  readonly fields: Attributes;
  /** Whether making one may bring secrets. */
  readonly hasSecrets: boolean;
  /** Fields that stay as they are once the object is made. */
  readonly fixed: ReadonlySet<string>;
  /** The appliance. */
  open(secrets: SecretPlace): Promise<Workplace>;
  /** Whether the appliance is the one of this machine. */
  isLocal(): Promise<boolean>;
  /** Whether flags are taken that grant nothing. */
  isAnyFlag(): boolean;
}

const id: Attribute = { about: 'its id', field: '', type: 'string', origin: 'computed' };
const name: Attribute = { about: 'its name', field: 'name', type: 'string', origin: 'required' };

export function resourceOf(options: KindOptions): ResourceType {
  const { kind, about, fields, hasSecrets, open } = options;
  const attributes = { id, name: { ...name, replaces: true as const }, ...fields, ...(hasSecrets && secretAttributes) };

  /** Values of `before` stay as they are unless the object differs from them. */
  function instanceOf(found: Found, before: ObjectValue, more: ObjectValue = {}): Instance {
    const differences = kind.differences(wantedOf(options, before), found);
    const changed = new Set(differences.map(({ field }) => field.split('.')[0]));
    // Some fields are shown by an exported file alone, or where they differ.
    const differing = Object.fromEntries(differences.map(({ field, before }) => [field, before]));
    const shown: JsonObject = { ...kind.exported(found), ...differing, ...found.fields };
    const isNamed = typeof before.name === 'string' && kind.nameKey(before.name) === kind.nameKey(found.name);
    const state = {
      ...mapped(attributes, (_, each) => before[each] ?? null),
      ...mapped(fields, (attribute, each) => {
        const value = before[each] ?? null;
        const isKept = value !== null && !changed.has(attribute.field) && !hasUnknown(value);
        return isKept ? value : valueOfField(attribute, shown[attribute.field]);
      }),
      id: found.id,
      name: isNamed ? (before.name ?? null) : found.name,
      ...more,
    };
    return { state, memory: found };
  }

  /** Found by its name, or, if it has another name by now, by its id. Without an id, its making was cut off. */
  async function found(desk: Workplace, { id, name }: ObjectValue): Promise<Found | undefined> {
    if (id === null) return ownObject(desk, String(name));
    const named = await kind.find?.(desk, String(name));
    const found = named?.id === id ? named : (await kind.list(desk)).find((each) => each.id === id);
    return found && detailed(kind, desk, found);
  }

  /** One of this configuration that is no earlier run's remnant, which would be made again. */
  async function ownObject(desk: Workplace, name: string): Promise<Found | undefined> {
    const made = await namedObject(kind, desk, name);
    return made?.managedBy === desk.managedBy && !made.isUnfinished ? made : undefined;
  }

  async function read(state: ObjectValue): Promise<Instance | null> {
    const object = await found(await open(noSecrets), state);
    return object ? instanceOf(object, state) : null;
  }

  /** Names of those that are being made: what one of them leaves must not be taken for another's. */
  const making = new Set<string>();
  const keeperFor = (config: ObjectValue) => secretKeeper(config, async () => (await open(noSecrets)).client);
  const secretsIn = (keeper: ReturnType<typeof keeperFor>, prior: ObjectValue): ObjectValue =>
    hasSecrets ? keeper.values(prior) : {};

  return {
    about,
    attributes,
    problems: (config) => fieldProblems(options, config),
    read,
    refused: (config, prior) => refusals(options, config, prior),
    unsettled: (config, prior) => (secretsOf(options, config, prior).length > 0 ? ['secrets', 'wrapped_secrets'] : []),
    async create(config) {
      const wanted = wantedOf(options, config);
      const key = kind.nameKey(wanted.name);
      if (making.has(key)) throw taken(kind, wanted.name, 'another resource makes it');
      making.add(key);
      const keeper = keeperFor(config);
      try {
        const desk = await open(keeper);
        if (kind.remove) await createNew(kind, desk, wanted);
        else await adopt(kind, desk, wanted);
        const made = await namedObject(kind, desk, wanted.name);
        if (!made) throw new KmsError('internal', `the new ${kind.noun[0]} ${wanted.name} is not there`);
        return { made: instanceOf(made, config, secretsIn(keeper, {})) };
      } catch (failed) {
        // One that had the name before is another's, whatever its mark: the state would have it removed.
        const isOther = keeper.isEmpty() && isNameTaken(failed);
        if (!kind.remove || isOther) throw failed;
        const state = { ...mapped(attributes, (_, each) => config[each] ?? null), ...secretsIn(keeper, {}) };
        // A secret belongs to something that is there, even if nothing can be read now.
        const unread = keeper.isEmpty() ? null : { state, memory: null };
        return { made: await read({ ...state, id: null }).catch(() => unread), failed };
      } finally {
        making.delete(key);
      }
    },
    async update(config, prior) {
      const keeper = keeperFor(config);
      try {
        const desk = await open(keeper);
        const object = await found(desk, prior.state);
        if (!object) throw gone(kind, String(prior.state.name));
        await change(kind, desk, wantedOf(options, config), object);
        const changed = await found(desk, prior.state);
        if (!changed) throw gone(kind, String(prior.state.name));
        return { made: instanceOf(changed, config, secretsIn(keeper, prior.state)) };
      } catch (failed) {
        const state = { ...prior.state, ...secretsIn(keeper, prior.state) };
        const made = await read(state).catch(() => null);
        return { made: made ?? { ...prior, state }, failed };
      }
    },
    async remove(state) {
      const desk = await open(noSecrets);
      const object = await found(desk, state);
      if (!object || !kind.remove) return;
      const reason = await kind.keptBecause?.(desk, object, { leaving: new Set(), wanted: [] });
      if (reason !== undefined) throw new KmsError('refused', `the ${kind.noun[0]} ${object.name} is kept: ${reason}`);
      await kind.remove(desk, object);
    },
    async imported(given) {
      const desk = await open(noSecrets);
      const object = await namedObject(kind, desk, given, given);
      if (!object) throw new KmsError('not-found', `there is no ${kind.noun[0]} with the name or id ${given}`);
      return { ...mapped(attributes, () => null), id: object.id, name: object.name };
    },
  };
}

export function dataSourceOf(options: KindOptions): DataSource {
  const { kind, fields, open } = options;
  const shown = mapped(fields, (attribute) => asComputed(attribute));
  return {
    about: options.about,
    attributes: { id, name, ...shown },
    problems: () => [],
    async read(config) {
      const desk = await open(noSecrets);
      const object = await namedObject(kind, desk, String(config.name));
      if (!object) throw new KmsError('not-found', `there is no ${kind.noun[0]} ${config.name}`);
      const values = { ...kind.exported(object), ...object.fields };
      return {
        id: object.id,
        name: config.name ?? null,
        ...mapped(shown, (attribute) => valueOfField(attribute, values[attribute.field])),
      };
    },
  };
}

function asComputed({ replaces: _, ...attribute }: Attribute): Attribute {
  const { nested } = attribute;
  return {
    ...attribute,
    origin: 'computed',
    ...(nested && { nested: { ...nested, attributes: mapped(nested.attributes, asComputed) } }),
  };
}

/** The object that a configuration or a state describes, as far as it is known. */
function wantedOf({ kind, fields }: KindOptions, values: ObjectValue): Wanted {
  const given = Object.entries(fields).flatMap(([each, attribute]) => {
    const value = values[each] ?? null;
    return value === null || hasUnknown(value) ? [] : [[attribute.field, fieldOf(attribute, value)]];
  });
  return { kind: kind.name, name: String(values.name), fields: Object.fromEntries(given) };
}

/** Throws `refused` if nothing can be changed now. */
async function change(kind: Kind, desk: Workplace, wanted: Wanted, found: Found): Promise<void> {
  const differences = kind.differences(wanted, found);
  if (differences.length === 0) return;
  const reason = await kind.blockedBecause?.(desk, found, differences);
  if (reason !== undefined)
    throw new KmsError('refused', `the ${kind.noun[0]} ${found.name} stays as it is: ${reason}`);
  await kind.update(desk, wanted, found, differences);
}

/** Throws `conflict` if there are several of that name. */
async function namedObject(kind: Kind, desk: Workplace, name: string, id?: string): Promise<Found | undefined> {
  const found = (await kind.find?.(desk, name)) ?? (await listedObject(kind, desk, name, id));
  return found && detailed(kind, desk, found);
}

async function listedObject(kind: Kind, desk: Workplace, name: string, id?: string): Promise<Found | undefined> {
  const all = await kind.list(desk);
  const known = all.find((each) => each.id === id);
  const [first, second] = all.filter((each) => kind.nameKey(each.name) === kind.nameKey(name));
  if (known || !second) return known ?? first;
  throw new KmsError('conflict', `there are several ${kind.noun[1]} ${name}`, { hint: 'give another name, or the id' });
}

async function detailed(kind: Kind, desk: Workplace, found: Found): Promise<Found> {
  return (await kind.detail?.(desk, found, 'all')) ?? found;
}

/** Throws `conflict` if there is such an object. One that an earlier run left unfinished is made again. */
async function createNew(kind: Kind, desk: Workplace, wanted: Wanted): Promise<void> {
  const there = await namedObject(kind, desk, wanted.name);
  const unfinished = there?.isUnfinished && there.managedBy === desk.managedBy ? there : undefined;
  if (there && !unfinished) {
    throw taken(kind, wanted.name, `import it (\`tofu import ADDRESS ${there.id}\`), or choose another name`);
  }
  await kind.create(desk, wanted, unfinished);
}

/** Changes what is always there. */
async function adopt(kind: Kind, desk: Workplace, wanted: Wanted): Promise<void> {
  const there = await namedObject(kind, desk, wanted.name);
  if (!there) throw new KmsError('not-found', `there is nothing to change: no ${kind.noun[0]} ${wanted.name}`);
  await change(kind, desk, wanted, there);
}

function taken(kind: Kind, name: string, hint: string): KmsError {
  return new KmsError('conflict', `there is a ${kind.noun[0]} ${name} already`, { hint });
}

function gone(kind: Kind, name: string): KmsError {
  return new KmsError('not-found', `the ${kind.noun[0]} ${name} is gone`, { hint: 'plan again' });
}

/** Problems that are seen without the appliance, of what is known of the configuration. */
/** Whether another object has the name: the tool found that, or the appliance, where another was faster. */
function isNameTaken(error: unknown): boolean {
  if (!(error instanceof KmsError)) return false;
  const { errors } = Object(error.body);
  return error.code === 'conflict' || ['name', 'uid', 'username'].some((field) => field in Object(errors));
}

function fieldProblems(options: KindOptions, config: ObjectValue): readonly Problem[] {
  const { kind, fields } = wantedOf(options, config);
  const isNamed = typeof config.name === 'string';
  const problems = fileProblems(kind, { ...fields, ...(isNamed && { name: config.name }) });
  return [...problems, ...markProblems(fields, 'managed_by of the provider')]
    .filter(({ path: [field] }) => isNamed || field !== 'name')
    .map(({ path, message }) => problemAt({ name, ...options.fields }, path, message));
}

/** A problem of a field, as one of its attribute. */
function problemAt(attributes: Attributes, path: readonly (string | number)[], message: string): Problem {
  const [field, ...rest] = path;
  const [each] = Object.entries(attributes).find(([, attribute]) => attribute.field === field) ?? [];
  if (each === undefined) return { path: [], message };
  return { path: [each], message: `${[each, ...rest].join('.')}: ${message}` };
}

/** Problems that are certain. A new object can be judged once all of it is known. */
async function refusals(
  options: KindOptions,
  config: ObjectValue,
  prior: Instance | null,
): Promise<readonly Problem[]> {
  const { kind, fields, fixed } = options;
  if (!prior && Object.values(config).some(hasUnknown)) return [];
  const wanted = wantedOf(options, config);
  const found = prior ? rememberedObject(prior) : undefined;
  // Without a memory of the object, the appliance judges.
  if (prior && !found) return [];
  const differences = found ? kind.differences(wanted, found) : [];
  const isLocal = await options.isLocal();
  if (kind.onlyHere !== undefined && !isLocal) return [{ path: [], message: kind.onlyHere }];
  const none = { isListed: () => false, found: () => [], wanted: () => [], leaving: new Set<string>(), kept: [] };
  const odd = options.isAnyFlag() ? [] : oddFlags(wanted, found, 'any_flag of the provider');
  const problems = kind.problems(wanted, found ?? alwaysThere(kind, wanted), differences, { isLocal, ...none });
  const named = [...odd, ...problems].map(({ path, message }) => ({
    ...problemAt(fields, path, message),
    isSolvedByNew: found !== undefined && fixed.has(String(path[0])),
  }));
  if (keepsSecrets(config) || secretsOf(options, config, prior).length === 0) return named;
  const { message, hint } = noKeeper();
  return [...named, { path: [], message, hint }];
}

/** Stands for an object of a kind of which none is made. */
function alwaysThere(kind: Kind, { name }: Wanted): Found | undefined {
  return kind.remove ? undefined : { id: '', name, fields: {} };
}

/** Labels of the secrets that the change brings. */
function secretsOf(options: KindOptions, config: ObjectValue, prior: Instance | null): readonly string[] {
  if (!options.hasSecrets) return [];
  const found = prior ? rememberedObject(prior) : undefined;
  return prior && !found ? [] : options.kind.secrets(wantedOf(options, config), found);
}

/** The object as it was when it was read or changed last. */
function rememberedObject({ memory }: Instance): Found | undefined {
  const { id, name, fields } = Object(memory);
  // Cast: the provider itself wrote it, and OpenTofu kept it.
  return typeof id === 'string' && typeof name === 'string' && isJsonObject(fields) ? (memory as Found) : undefined;
}
