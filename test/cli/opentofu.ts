// Starts the provider as OpenTofu does, and calls it: the handshake over stdout, mutual TLS with a certificate like
// go-plugin's, and gRPC. Configurations, plans and states are plain objects, in which `unknown` stands for what is not
// known yet.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import {
  fromPlain,
  mapped,
  objectOf,
  readValue,
  type Type,
  Typed,
  unknown,
  type Value,
  writeValue,
} from '../../src/cli/provider/values.ts';
import { fieldsOf, type MessageFields, message, type ReadFields } from '../../src/client/protobuf.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import type { Desk, Ran, RunOptions } from './kms.ts';

/** Environment that go-plugin sets, without the certificate. */
export const pluginEnv = {
  TF_PLUGIN_MAGIC_COOKIE: 'd602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2',
  PLUGIN_PROTOCOL_VERSIONS: '5,6',
};

export type Plain = Readonly<Record<string, unknown>>;

export interface Problem {
  readonly message: string;
  /** The attribute, and keys below it. */
  readonly path: readonly string[];
}

export interface Plan {
  readonly state: Plain | null;
  readonly replaced: readonly string[];
  readonly problems: readonly Problem[];
}

interface Outcome {
  readonly state: Plain | null;
  readonly problems: readonly Problem[];
}

export interface Tofu {
  /** Fields of the handshake. */
  readonly handshake: readonly string[];
  readonly session: ClientHttp2Session;
  readonly types: Types;
  call(path: string, request?: Uint8Array): Promise<ReadFields>;
  configure(config: Plain): Promise<readonly Problem[]>;
  validate(type: string, config: Plain): Promise<readonly Problem[]>;
  plan(type: string, prior: Plain | null, config: Plain | null): Promise<Plan>;
  apply(type: string, prior: Plain | null, plan: Plain | null, config: Plain | null): Promise<Outcome>;
  /** Plans and applies, without problems. */
  make(type: string, config: Plain, prior?: Plain): Promise<Plain>;
  read(type: string, state: Plain): Promise<Outcome>;
  importOf(type: string, id: string): Promise<Outcome>;
  data(type: string, config: Plain): Promise<Outcome>;
  upgrade(type: string, state: string): Promise<Outcome>;
  /** Its stderr so far. */
  said(): string;
  readonly ended: Promise<Ran>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startTofu(d: Desk, options: RunOptions = {}): Promise<Tofu> {
  const certificate = await clientCertificate();
  const line = Promise.withResolvers<string>();
  const end = new AbortController();
  let said = '';
  const ended = d.kms([...['__terraform-provider']], {
    ...options,
    env: { ...pluginEnv, TMPDIR: d.dir, PLUGIN_CLIENT_CERT: certificate.cert, ...options.env },
    signal: end.signal,
    onStdout: (text) => line.resolve(text),
    onStderr(text) {
      said += text;
    },
  });
  const early = ended.then(({ stderr }) => Promise.reject(new Error(stderr)));
  const handshake = (await Promise.race([line.promise, early])).trim().split('|');
  early.catch(() => undefined);
  const session = sessionWith(handshake, certificate);
  const types = await typesOf(session);
  const typeOf = (type: string): Type => types.resources[type] ?? assert.fail(`no resource ${type}`);
  const provider = (name: string, request: MessageFields) =>
    call(session, `/tfplugin6.Provider/${name}`, message(request));
  const dynamic = (plain: Plain | null, type: Type) => message({ 1: writeValue(valueIn(plain, type), type) });
  const outcome = (answer: ReadFields, type: Type, stateField: number, problemsField: number): Outcome => ({
    state: stateIn(answer.bytes(stateField), type),
    problems: problemsIn(answer.all(problemsField)),
  });
  /** Memory of the provider beside each state, which OpenTofu keeps for it. */
  const kept = new WeakMap<Plain, Uint8Array>();
  const keeping = <T extends Outcome>(made: T, memory: Uint8Array): T => {
    if (made.state) kept.set(made.state, memory);
    return made;
  };
  const keptFor = (state: Plain | null) => (state ? kept.get(state) : undefined);

  const it: Tofu = {
    handshake,
    session,
    types,
    call: (path, request = message({})) => call(session, path, request),
    async configure(config) {
      const answer = await provider('ConfigureProvider', { 1: '1.10.6', 2: dynamic(config, types.provider) });
      return problemsIn(answer.all(1));
    },
    async validate(type, config) {
      const request = { 1: type, 2: dynamic(config, typeOf(type)) };
      return problemsIn((await provider('ValidateResourceConfig', request)).all(1));
    },
    async plan(name, prior, config) {
      const type = typeOf(name);
      const [before, given] = [dynamic(prior, type), dynamic(config, type)];
      const answer = await provider('PlanResourceChange', {
        1: name,
        2: before,
        3: given,
        4: given,
        5: keptFor(prior),
      });
      const replaced = answer.all(2).map((path) => pathIn(path).join('.'));
      return keeping({ ...outcome(answer, type, 1, 4), replaced }, answer.bytes(3));
    },
    async apply(name, prior, plan, config) {
      const type = typeOf(name);
      const request = {
        1: name,
        2: dynamic(prior, type),
        3: dynamic(plan, type),
        4: dynamic(config, type),
        5: keptFor(plan),
      };
      const answer = await provider('ApplyResourceChange', request);
      return keeping(outcome(answer, type, 1, 3), answer.bytes(2));
    },
    async make(name, config, prior) {
      const plan = await it.plan(name, prior ?? null, config);
      assert.deepEqual(plan.problems, []);
      const made = await it.apply(name, prior ?? null, plan.state, config);
      assert.deepEqual(made.problems, []);
      return made.state ?? assert.fail('nothing was made');
    },
    async read(name, state) {
      const type = typeOf(name);
      const answer = await provider('ReadResource', { 1: name, 2: dynamic(state, type), 3: keptFor(state) });
      return keeping(outcome(answer, type, 1, 2), answer.bytes(3));
    },
    async importOf(name, id) {
      const answer = await provider('ImportResourceState', { 1: name, 2: id });
      const [imported = new Uint8Array()] = answer.all(1);
      const found = fieldsOf(imported, 'an imported resource');
      return { state: stateIn(found.bytes(2), typeOf(name)), problems: problemsIn(answer.all(2)) };
    },
    async data(name, config) {
      const type = types.dataSources[name] ?? assert.fail(`no data source ${name}`);
      return outcome(await provider('ReadDataSource', { 1: name, 2: dynamic(config, type) }), type, 1, 2);
    },
    async upgrade(name, state) {
      const answer = await provider('UpgradeResourceState', { 1: name, 3: message({ 1: state }) });
      return outcome(answer, typeOf(name), 1, 2);
    },
    said: () => said,
    ended,
    async [Symbol.asyncDispose]() {
      session.destroy();
      end.abort('SIGTERM');
      await ended;
    },
  };
  return it;
}

/** Makes a resource that is found as it was made, and for which nothing is planned. */
export async function settled(tofu: Tofu, type: string, config: Plain): Promise<Plain> {
  const state = await tofu.make(type, config);
  assert.deepEqual(await tofu.read(type, state), { state, problems: [] });
  assert.deepEqual(await tofu.plan(type, state, config), { state, replaced: [], problems: [] });
  return state;
}

interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

/** An authority on P-521 that shows itself, like go-plugin's. */
async function clientCertificate(): Promise<ClientCertificate> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' } as const;
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await TestCertificate.authority(Date.now(), 'O=HashiCorp, CN=localhost', {
    keys,
    signing: algorithm,
    names: [{ type: 'dns', value: 'localhost' }],
    purposes: ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'],
  });
  return { cert: made.pem, key: await made.keyPem() };
}

function sessionWith([, , , path = '', , der = '']: readonly string[], own: ClientCertificate): ClientHttp2Session {
  if (der === '') return quiet(connect('http://localhost', { createConnection: () => connectSocket(path) }));
  const ca = new X509Certificate(Buffer.from(der, 'base64')).toString();
  const tls = { path, ca, servername: 'localhost', ALPNProtocols: ['h2'], ...own };
  return quiet(connect('https://localhost', { createConnection: () => connectTls(tls) }));
}

function quiet(session: ClientHttp2Session): ClientHttp2Session {
  return session.on('error', () => undefined);
}

/** Rejects with the message of a status other than 0. */
export function call(session: ClientHttp2Session, path: string, request: Uint8Array): Promise<ReadFields> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const chunks: Buffer[] = [];
    stream.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
    stream.on('error', reject);
    stream.on('close', () => reject(new Error('the stream was closed')));
    stream.on('trailers', ({ 'grpc-status': status, 'grpc-message': said }) => {
      if (status !== '0') return reject(new Error(`${status}: ${decodeURIComponent(String(said))}`));
      resolve(fieldsOf(Buffer.concat(chunks).subarray(5), 'an answer'));
    });
    const head = Buffer.alloc(5);
    head.writeUInt32BE(request.length, 1);
    stream.end(Buffer.concat([head, request]));
  });
}

interface Types {
  readonly provider: Type;
  readonly resources: Readonly<Record<string, Type>>;
  readonly dataSources: Readonly<Record<string, Type>>;
}

/** The types of all values, from the schemas that the provider answers. */
async function typesOf(session: ClientHttp2Session): Promise<Types> {
  const answer = await call(session, '/tfplugin6.Provider/GetProviderSchema', message({}));
  const named = (entries: readonly Uint8Array[]) =>
    Object.fromEntries(
      entries.map((entry) => {
        const fields = fieldsOf(entry, 'an entry');
        return [fields.text(1), typeOfSchema(fields.bytes(2))];
      }),
    );
  return {
    provider: typeOfSchema(answer.bytes(1)),
    resources: named(answer.all(2)),
    dataSources: named(answer.all(3)),
  };
}

function typeOfSchema(schema: Uint8Array): Type {
  const block = fieldsOf(fieldsOf(schema, 'a schema').bytes(2), 'a block');
  return typeOfAttributes(block.all(2));
}

function typeOfAttributes(attributes: readonly Uint8Array[]): Type {
  const typed = attributes.map((attribute) => {
    const fields = fieldsOf(attribute, 'an attribute');
    if (!fields.has(10)) return [fields.text(1), JSON.parse(fields.text(2))] as const;
    const nested = fieldsOf(fields.bytes(10), 'a nested type');
    const type = typeOfAttributes(nested.all(1));
    return [fields.text(1), nested.number(3) === 2 ? ['list', type] : type] as const;
  });
  return ['object', Object.fromEntries(typed)];
}

/** Absent attributes are null. */
function valueIn(plain: unknown, type: Type): Value {
  if (plain === unknown) return unknown;
  if (typeof plain !== 'object' || plain === null || typeof type === 'string') return fromPlain(plain, type);
  if (type[0] !== 'object') return fromPlain(plain, type);
  for (const name of Object.keys(plain)) assert.ok(Object.hasOwn(type[1], name), `there is no attribute ${name}`);
  return mapped(type[1], (of, name) => valueIn(Reflect.get(plain, name), of));
}

function stateIn(dynamic: Uint8Array, type: Type): Plain | null {
  const bytes = fieldsOf(dynamic, 'a value').bytes(1);
  const value = bytes.length === 0 ? null : readValue(bytes, type);
  return value === null ? null : mapped(objectOf(value), plainOf);
}

function plainOf(value: Value): unknown {
  if (value === unknown) return unknown;
  if (value instanceof Typed) return plainOf(value.value);
  if (Array.isArray(value)) return value.map(plainOf);
  return typeof value === 'object' && value !== null ? mapped(objectOf(value), plainOf) : value;
}

function problemsIn(diagnostics: readonly Uint8Array[]): readonly Problem[] {
  return diagnostics.map((diagnostic) => {
    const fields = fieldsOf(diagnostic, 'a diagnostic');
    assert.equal(fields.number(1), 1, 'severity');
    const detail = fields.text(3);
    const summary = fields.text(2);
    return { message: detail === '' ? summary : `${summary}; ${detail}`, path: pathIn(fields.bytes(4)) };
  });
}

function pathIn(path: Uint8Array): readonly string[] {
  return fieldsOf(path, 'a path')
    .all(1)
    .map((step) => {
      const fields = fieldsOf(step, 'a step');
      return fields.text(1) || fields.text(2);
    });
}
