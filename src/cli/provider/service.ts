// The calls of plugin protocol 6 (tfplugin6.proto), by which OpenTofu and Terraform plan and make what resources
// describe. It knows how changes are planned and answered; what a resource is and does is given to it.
import { fieldsOf, type MessageFields, mapEntries, message, type ReadFields } from '../../client/protobuf.ts';
import { KmsError } from '../../errors.ts';
import { sentenceOf } from '../exit.ts';
import type { Calls } from '../grpc.ts';
import { type Attributes, schemaMessage, typeOfAttributes } from './attributes.ts';
import { completed, planned } from './planning.ts';
import { type ObjectValue, objectOf, readJsonValue, readValue, unknown, type Value, writeValue } from './values.ts';

interface Described {
  readonly about: string;
  readonly attributes: Attributes;
  /** Problems of a configuration, which may have unknown values. */
  problems(config: ObjectValue): readonly Problem[];
}

export interface Problem {
  /** Names of attributes and keys, from the outermost. Empty: the whole is meant. */
  readonly path: readonly string[];
  readonly message: string;
  readonly hint?: string | undefined;
  /** Whether a new object solves it, for the attribute that the path names. */
  readonly isSolvedByNew?: boolean;
}

export interface Instance {
  readonly state: ObjectValue;
  /** JSON that OpenTofu keeps beside the state. */
  readonly memory: unknown;
}

/** The object after a change. One that failed may have made a part of it, or all. */
interface Outcome {
  /** Null: there is nothing. */
  readonly made: Instance | null;
  readonly failed?: unknown;
}

export interface ResourceType extends Described {
  /** The object as it is now, or null if it is gone. Values that only look different are kept. */
  read(state: ObjectValue): Promise<Instance | null>;
  /** Problems of a change, or of a new object, that are certain. The configuration may have unknown values. */
  refused(config: ObjectValue, prior: Instance | null): Promise<readonly Problem[]>;
  /** Names of attributes that the provider gives and that the change sets again. */
  unsettled(config: ObjectValue, prior: Instance): readonly string[];
  /** Rejects if there is certainly nothing of it. */
  create(config: ObjectValue): Promise<Outcome>;
  /** Rejects if it has changed nothing that a state keeps, and no secret came. */
  update(config: ObjectValue, prior: Instance): Promise<Outcome>;
  remove(state: ObjectValue): Promise<void>;
  /** The beginning of a state, which is then read. */
  imported(id: string): Promise<ObjectValue>;
}

export interface DataSource extends Described {
  read(config: ObjectValue): Promise<ObjectValue>;
}

export interface Provider extends Described {
  readonly resources: Readonly<Record<string, ResourceType>>;
  readonly dataSources: Readonly<Record<string, DataSource>>;
  configure(config: ObjectValue): Promise<void>;
}

/** The schema need not be asked for first. */
const capabilities = message({ 2: true });

export function providerCalls(provider: Provider): Calls {
  return {
    ...descriptionCalls(provider),
    ...validationCalls(provider),
    ...resourceCalls(provider),
    ...call('ReadDataSource', 2, async (request, of) => {
      const source = of(provider.dataSources, request.text(1));
      const config = objectOf(dynamicValue(request.bytes(2), source));
      return { 1: dynamic(await source.read(config), source) };
    }),
    // Calls in progress are short, and are finished.
    '/tfplugin6.Provider/StopProvider': async () => message({}),
  };
}

function descriptionCalls(provider: Provider): Calls {
  const { about, attributes, resources, dataSources } = provider;
  const schemas = (described: Readonly<Record<string, Described>>) =>
    mapEntries(
      Object.fromEntries(
        Object.entries(described).map(([name, { about, attributes }]) => [name, schemaMessage(about, attributes)]),
      ),
    );
  const named = (described: object) => Object.keys(described).map((name) => message({ 1: name }));
  return {
    ...call('GetMetadata', 2, async () => ({ 1: capabilities, 3: named(dataSources), 4: named(resources) })),
    ...call('GetProviderSchema', 4, async () => ({
      1: schemaMessage(about, attributes),
      2: schemas(resources),
      3: schemas(dataSources),
      6: capabilities,
    })),
    ...call('GetFunctions', 2, async () => ({})),
    ...call('GetResourceIdentitySchemas', 2, async () => ({})),
  };
}

function validationCalls(provider: Provider): Calls {
  const problems = (described: Described, bytes: Uint8Array) =>
    described.problems(objectOf(dynamicValue(bytes, described))).map(diagnostic);
  return {
    ...call('ValidateProviderConfig', 2, async (request) => ({ 2: problems(provider, request.bytes(1)) })),
    ...call('ConfigureProvider', 1, async (request) => {
      await provider.configure(objectOf(dynamicValue(request.bytes(2), provider)));
      return {};
    }),
    ...call('ValidateResourceConfig', 1, async (request, of) => ({
      1: problems(of(provider.resources, request.text(1)), request.bytes(2)),
    })),
    ...call('ValidateDataResourceConfig', 1, async (request, of) => ({
      1: problems(of(provider.dataSources, request.text(1)), request.bytes(2)),
    })),
  };
}

function resourceCalls({ resources }: Provider): Calls {
  return {
    ...call('UpgradeResourceState', 2, async (request, of) => {
      const resource = of(resources, request.text(1));
      const json = fieldsOf(request.bytes(3), what).text(1);
      return { 1: dynamic(readJsonValue(json, typeOfAttributes(resource.attributes)), resource) };
    }),
    ...call('ReadResource', 2, async (request, of) => {
      const resource = of(resources, request.text(1));
      const state = dynamicValue(request.bytes(2), resource);
      const found = state === null ? null : await resource.read(objectOf(state));
      return { 1: dynamic(found ? found.state : null, resource), 3: memoryBytes(found) };
    }),
    ...call('PlanResourceChange', 4, async (request, of) => {
      const resource = of(resources, request.text(1));
      const [prior, proposed, config] = [2, 3, 4].map((field) => dynamicValue(request.bytes(field), resource));
      const memory = request.bytes(5);
      if (!proposed) return { 1: dynamic(null, resource), 3: memory };
      const before = prior ? { state: objectOf(prior), memory: memoryOf(memory) } : null;
      const { state, replaced, problems } = await change(resource, before, objectOf(config ?? null));
      const paths = replaced.map((name) => attributePath([name]));
      return { 1: dynamic(state, resource), 2: paths, 3: memory, 4: problems.map(diagnostic) };
    }),
    ...call('ApplyResourceChange', 3, async (request, of) => {
      const resource = of(resources, request.text(1));
      const [prior, wanted, config] = [2, 3, 4].map((field) => dynamicValue(request.bytes(field), resource) ?? null);
      const before = prior ? { state: objectOf(prior), memory: memoryOf(request.bytes(5)) } : null;
      const { made, failed } = await applied(resource, before, wanted ?? null, config ?? null);
      return {
        1: dynamic(made ? made.state : null, resource),
        2: memoryBytes(made),
        3: failed === undefined ? [] : diagnostics(failed, resource.attributes),
      };
    }),
    ...call('ImportResourceState', 2, async (request, of) => {
      const type = request.text(1);
      const resource = of(resources, type);
      const state = await resource.imported(request.text(2));
      return { 1: [message({ 1: type, 2: dynamic(state, resource) })] };
    }),
    ...call('MoveResourceState', 2, async (request) => {
      const [from, to] = [request.text(2), request.text(5)];
      throw new KmsError('invalid', `a state of ${from} cannot become one of ${to}`, {
        hint: 'remove the object from the state, and import it under its new type',
      });
    }),
  };
}

interface Change {
  readonly state: ObjectValue;
  /** Names of attributes for which a new object is made. */
  readonly replaced: readonly string[];
  readonly problems: readonly Problem[];
}

async function change(resource: ResourceType, prior: Instance | null, config: ObjectValue): Promise<Change> {
  const plan = planned(resource.attributes, prior ? prior.state : null, config);
  const refused = await resource.refused(config, prior);
  const unsettled = prior ? resource.unsettled(config, prior).map((name) => [name, unknown] as const) : [];
  const state = { ...plan.state, ...Object.fromEntries(unsettled) };
  if (!prior) return { state, replaced: [], problems: refused };
  const solved = refused.filter(({ isSolvedByNew }) => isSolvedByNew);
  const replaced = new Set([...plan.replaced, ...solved.flatMap(({ path: [name = ''] }) => name)]);
  return { state, replaced: [...replaced], problems: refused.filter((problem) => !solved.includes(problem)) };
}

async function applied(resource: ResourceType, prior: Instance | null, wanted: Value, config: Value): Promise<Outcome> {
  try {
    if (wanted === null) {
      if (prior) await resource.remove(prior.state);
      return { made: null };
    }
    const given = objectOf(config);
    const outcome = await (prior ? resource.update(given, prior) : resource.create(given));
    const { made, failed } = outcome;
    if (!made || failed !== undefined) return outcome;
    return { made: { ...made, state: completed(made.state, objectOf(wanted)) } };
  } catch (failed) {
    return { made: prior, failed };
  }
}

function memoryOf(bytes: Uint8Array): unknown {
  return bytes.length > 0 ? JSON.parse(Buffer.from(bytes).toString()) : null;
}

function memoryBytes(instance: Instance | null): string | undefined {
  return instance ? JSON.stringify(instance.memory) : undefined;
}

/** Looks a type up by its name. Throws `invalid` if there is none. */
type LookUp = <T extends Described>(described: Readonly<Record<string, T>>, name: string) => T;

/** The handler of a call. An error becomes diagnostics, in the field of this number in the answer. */
function call(
  name: string,
  diagnosticsField: number,
  handle: (request: ReadFields, of: LookUp) => Promise<MessageFields>,
): Calls {
  return {
    async [`/tfplugin6.Provider/${name}`](bytes) {
      let attributes: Attributes = {};
      const of: LookUp = (all, type) => {
        const found = Object.hasOwn(all, type) ? all[type] : undefined;
        if (found === undefined) throw new KmsError('invalid', `there is no ${type} in this provider`);
        ({ attributes } = found);
        return found;
      };
      try {
        return message(await handle(fieldsOf(bytes, what), of));
      } catch (error) {
        return message({ [diagnosticsField]: diagnostics(error, attributes) });
      }
    },
  };
}

const what = 'a message of plugin protocol 6';

/** `tfplugin6.DynamicValue`; null if it is absent. */
function dynamicValue(bytes: Uint8Array, { attributes }: Described): Value {
  const value = fieldsOf(bytes, what);
  const type = typeOfAttributes(attributes);
  if (value.has(1)) return readValue(value.bytes(1), type);
  return value.has(2) ? readJsonValue(value.text(2), type) : null;
}

function dynamic(value: Value, { attributes }: Described): Uint8Array {
  return message({ 1: writeValue(value, typeOfAttributes(attributes)) });
}

const severityOfError = 1;

function diagnostic({ path, message: summary, hint }: Problem): Uint8Array {
  return message({ 1: severityOfError, 2: summary, 3: hint, 4: path.length > 0 ? attributePath(path) : undefined });
}

/** An error, about the attributes that it names as fields of the API. */
function diagnostics(error: unknown, attributes: Attributes): readonly Uint8Array[] {
  const fields = Object.entries((error instanceof KmsError && error.fields) || {});
  const named = fields.flatMap(([field, problem]) => {
    const [first] = field.split('.');
    const found = Object.entries(attributes).find(([, attribute]) => attribute.field === first);
    return found ? [diagnostic({ path: [found[0]], message: `${found[0]}: ${problem}` })] : [];
  });
  return named.length > 0 ? named : [diagnostic({ path: [], message: sentenceOf(error) })];
}

/** The first step names an attribute; the others are keys. */
function attributePath(path: readonly string[]): Uint8Array {
  return message({ 1: path.map((step, depth) => message({ [depth === 0 ? 1 : 2]: [step] })) });
}
