// Resources and data sources for the kinds of objects that configuration as code knows: found, compared, made, changed
// and removed as `kms apply` does it.
import { KmsError } from '../../errors.ts';
import { sameJson } from '../../model/json.ts';
import type { Difference, Found, Kind, Wanted, Workplace } from '../as-code/kind.ts';
import { type Attribute, type Attributes, fieldOf, valueOfField } from './attributes.ts';
import { keepsSecrets, noKeeper, secretAttributes, secretKeeper } from './kept-secrets.ts';
import type { DataSource, Problem, ResourceType } from './service.ts';
import { hasUnknown, mapped, type ObjectValue } from './values.ts';

export interface KindOptions {
  readonly kind: Kind;
  readonly about: string;
  /** Attributes for the kind's fields. */
  readonly fields: Attributes;
  /** Whether making one may bring secrets. */
  readonly hasSecrets: boolean;
  /** A problem of a field, or of `name`, that is seen without the appliance. */
  fieldProblem(field: string, value: unknown): string | undefined;
  /** The appliance. Secrets that making an object brings go to `deliver`. */
  open(deliver: Workplace['deliver']): Promise<Workplace>;
}

const id: Attribute = { about: 'its id', field: '', type: 'string', origin: 'computed' };
const name: Attribute = { about: 'its name', field: 'name', type: 'string', origin: 'required' };

export function resourceOf(options: KindOptions): ResourceType {
  const { kind, about, fields, hasSecrets, open } = options;
  const attributes = { id, name: { ...name, replaces: true as const }, ...fields, ...(hasSecrets && secretAttributes) };

  /** Values of `before` stay as they are unless the object differs from them. */
  function stateOf(found: Found, before: ObjectValue): ObjectValue {
    const changed = new Set(differencesOf(kind, wantedOf(options, before), found).map(({ field }) => field));
    const isNamed = typeof before.name === 'string' && kind.nameKey(before.name) === kind.nameKey(found.name);
    return {
      ...mapped(attributes, (_, each) => before[each] ?? null),
      ...mapped(fields, (attribute, each) => {
        const value = before[each] ?? null;
        const isKept = value !== null && !changed.has(attribute.field) && !hasUnknown(value);
        return isKept ? value : valueOfField(attribute, found.fields[attribute.field]);
      }),
      id: found.id,
      name: isNamed ? (before.name ?? null) : found.name,
    };
  }

  /** Found by its name, or, if it has another name by now, by its id. */
  async function found(desk: Workplace, { id, name }: ObjectValue): Promise<Found | undefined> {
    const named = await kind.find?.(desk, String(name));
    const found = named?.id === id ? named : (await kind.list(desk)).find((each) => each.id === id);
    return found && detailed(kind, desk, found);
  }

  return {
    about,
    attributes,
    problems: (config) => fieldProblems(options, config),
    async read(state) {
      const object = await found(await open(refuse), state);
      return object ? stateOf(object, state) : null;
    },
    refused: (config, prior) => refusals(options, config, prior),
    unsettled: (config, prior) => (secretsOf(options, config, prior).length > 0 ? ['secrets', 'wrapped_secrets'] : []),
    async create(config) {
      const keeper = secretKeeper(config, async () => (await open(refuse)).client);
      const desk = await open(keeper.deliver);
      const wanted = wantedOf(options, config);
      await mustBeNew(kind, desk, wanted);
      await kind.create(desk, wanted);
      const made = await namedObject(kind, desk, wanted.name);
      if (!made) throw new KmsError('internal', `the new ${kind.noun[0]} ${wanted.name} is not there`);
      return { ...stateOf(made, config), ...(hasSecrets && keeper.values({})) };
    },
    async remains(config) {
      const desk = await open(refuse);
      const made = await namedObject(kind, desk, String(config.name));
      return made?.managedBy === desk.managedBy ? stateOf(made, config) : null;
    },
    async update(config, prior) {
      const keeper = secretKeeper(config, async () => (await open(refuse)).client);
      const desk = await open(keeper.deliver);
      const object = await found(desk, prior);
      if (!object) throw gone(kind, String(prior.name));
      const wanted = wantedOf(options, config);
      const differences = differencesOf(kind, wanted, object);
      if (differences.length > 0) await kind.update(desk, wanted, object, differences);
      const changed = await found(desk, prior);
      if (!changed) throw gone(kind, String(prior.name));
      return { ...stateOf(changed, config), ...(hasSecrets && keeper.values(prior)) };
    },
    async remove(state) {
      const desk = await open(refuse);
      const object = await found(desk, state);
      if (!object || !kind.remove) return;
      const reason = await kind.keptBecause?.(desk, object, new Set());
      if (reason !== undefined) throw new KmsError('refused', `the ${kind.noun[0]} ${object.name} is kept: ${reason}`);
      await kind.remove(desk, object);
    },
    async imported(given) {
      const desk = await open(refuse);
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
      const desk = await open(refuse);
      const object = await namedObject(kind, desk, String(config.name));
      if (!object) throw new KmsError('not-found', `there is no ${kind.noun[0]} ${config.name}`);
      const values = mapped(shown, (attribute) => valueOfField(attribute, object.fields[attribute.field]));
      return { id: object.id, name: config.name ?? null, ...values };
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

function differencesOf(kind: Kind, wanted: Wanted, found: Found): readonly Difference[] {
  if (kind.differences) return kind.differences(wanted, found);
  return Object.entries(kind.canonical(wanted.fields)).flatMap(([field, after]) =>
    sameJson(found.fields[field], after) ? [] : [{ field, before: found.fields[field], after }],
  );
}

async function namedObject(kind: Kind, desk: Workplace, name: string, id?: string): Promise<Found | undefined> {
  const isMeant = (each: Found) => each.id === id || kind.nameKey(each.name) === kind.nameKey(name);
  const found = (await kind.find?.(desk, name)) ?? (await kind.list(desk)).find(isMeant);
  return found && detailed(kind, desk, found);
}

async function detailed(kind: Kind, desk: Workplace, found: Found): Promise<Found> {
  return (await kind.detail?.(desk, found, 'all')) ?? found;
}

/** Throws `conflict` if there is such an object. One that an earlier run left unfinished is removed. */
async function mustBeNew(kind: Kind, desk: Workplace, { name }: Wanted): Promise<void> {
  const there = await namedObject(kind, desk, name);
  if (there?.isUnfinished && there.managedBy === desk.managedBy) return kind.remove?.(desk, there);
  if (!there) return;
  throw new KmsError('conflict', `there is a ${kind.noun[0]} ${name} already`, {
    hint: `import it (\`tofu import ADDRESS ${there.id}\`), or choose another name`,
  });
}

function gone(kind: Kind, name: string): KmsError {
  return new KmsError('not-found', `the ${kind.noun[0]} ${name} is gone`, { hint: 'plan again' });
}

/** For calls that make nothing. */
async function refuse(): Promise<never> {
  throw noKeeper();
}

function fieldProblems({ fields, fieldProblem }: KindOptions, config: ObjectValue): readonly Problem[] {
  return Object.entries({ name, ...fields }).flatMap(([each, attribute]) => {
    const value = config[each] ?? null;
    if (value === null || hasUnknown(value)) return [];
    const problem = fieldProblem(attribute.field, fieldOf(attribute, value));
    return problem === undefined ? [] : [{ path: [each], message: `${each}: ${problem}` }];
  });
}

/** Problems that are certain. A new object can be judged once all of it is known. */
function refusals(options: KindOptions, config: ObjectValue, prior: ObjectValue | null): readonly Problem[] {
  const { kind, fields } = options;
  if (!prior && Object.values(config).some(hasUnknown)) return [];
  const problems = (kind.problems?.(...changeOf(options, config, prior)) ?? []).map(({ path: [field], message }) => {
    const [each = ''] = Object.entries(fields).find(([, attribute]) => attribute.field === field) ?? [];
    return { path: each === '' ? [] : [each], message };
  });
  if (keepsSecrets(config) || secretsOf(options, config, prior).length === 0) return problems;
  const { message, hint } = noKeeper();
  return [...problems, { path: [], message, hint }];
}

function changeOf(
  options: KindOptions,
  config: ObjectValue,
  prior: ObjectValue | null,
): [Wanted, Found | undefined, readonly Difference[]] {
  const wanted = wantedOf(options, config);
  const found = prior ? priorObject(options, prior) : undefined;
  return [wanted, found, found ? differencesOf(options.kind, wanted, found) : []];
}

/** Labels of the secrets that the change brings. */
function secretsOf(options: KindOptions, config: ObjectValue, prior: ObjectValue | null): readonly string[] {
  return options.hasSecrets ? options.kind.secrets(...changeOf(options, config, prior)) : [];
}

/** The object as the state has it. */
function priorObject(options: KindOptions, prior: ObjectValue): Found {
  const { name, fields } = wantedOf(options, prior);
  const { id } = prior;
  return { id: String(id), name, fields: options.kind.canonical(fields) };
}
