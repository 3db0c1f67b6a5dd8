// Records real clients' requests so that they can be replayed without the clients: unchanged, except that names in
// angle brackets replace secrets and values that differ between runs.
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { connect } from 'node:net';
import { packetOf } from '../../src/server/http-refusals.ts';

/** `flags`: a token with these was made; `kms`: a command changed a ring meanwhile. */
export type Step = AskedStep | { readonly token: string; readonly flags: readonly string[] } | { readonly kms: string };

interface AskedStep {
  readonly ask: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly status: number;
  /** The fields of the answer that the client reads: `errors` of refusals, otherwise by path. */
  readonly reads?: Readonly<Record<string, unknown>>;
}

export interface Recording {
  readonly client: string;
  readonly version: string;
  readonly steps: readonly Step[];
}

/** Fields that clients read, by the end of a path: a field's text, its value, or only its type. */
const looked: readonly (readonly [path: RegExp, fields: readonly string[]])[] = [
  [/\/(?:encrypt|rewrap)\/[^/]+$/, ['data.ciphertext', 'data.batch_results']],
  [/\/decrypt\/[^/]+$/, ['data.plaintext', 'data.batch_results']],
  [/\/datakey\/plaintext\/[^/]+$/, ['data.plaintext', 'data.ciphertext']],
  [/\/sign\/[^/]+(?:\/[^/]+)?$/, ['data.signature']],
  [/\/verify\/[^/]+(?:\/[^/]+)?$/, ['data.valid']],
  [/\/keys$/, ['data.keys.0']],
  [/\/keys\/[^/]+$/, ['data.name', 'data.type', 'data.latest_version', 'data.keys']],
  [/\/auth\/token\/lookup-self$/, ['data.policies', 'data.ttl', 'data.creation_ttl', 'data.renewable']],
  [/\/login$/, ['auth.client_token', 'auth.lease_duration', 'auth.renewable']],
];

function fieldAt(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => {
    return at !== null && typeof at === 'object' ? Reflect.get(at, name) : undefined;
  }, value);
}

/** The fields read from one answer. */
export function readsOf(ask: string, status: number, text: string): Readonly<Record<string, unknown>> | undefined {
  if (text === '') return undefined;
  const body: unknown = JSON.parse(text);
  if (status >= 400) return { errors: fieldAt(body, 'errors') };
  const [, path = ''] = / (?:[^?]*\/v1)?([^?]*)/.exec(ask) ?? [];
  const [, fields = []] = looked.find(([pattern]) => pattern.test(path)) ?? [];
  const reads = fields.map((field) => [field, steady(fieldAt(body, field), field)] as const);
  return Object.fromEntries(reads.filter(([, value]) => value !== undefined));
}

/** Replaces values that differ each time: seconds, public keys, names of other rings. */
function steady(value: unknown, name = ''): unknown {
  if (typeof value === 'number' && value > 1_000_000_000) return '<seconds>';
  if (['public_key', 'creation_time', 'data.keys.0'].includes(name)) return `<${typeof value}>`;
  if (Array.isArray(value)) return value.map((each) => steady(each));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, steady(each, key)]));
}

const notKept = /^(?:host|user-agent|accept-encoding|connection|content-length)$/i;
const payload = /vault:v[0-9]+:([A-Za-z0-9+/=]{16,})/g;
const plaintext = /"(?:plaintext|input)": ?"([A-Za-z0-9+/]{22,}=*)"/g;

type See = (ask: string, headers: readonly string[], sent: string, status: number, told: string) => void;

/** Proxies between clients and an appliance. */
export class Recorder {
  #names = new Map<string, string>();
  #lasting: readonly (readonly [secret: string, name: string])[] = [];
  #steps: Step[] = [];
  readonly #servers: Server[] = [];
  /** Requests that were answered with a 5xx. */
  #faults: string[] = [];

  /** The address of a proxy to `address`, whose requests are recorded. */
  async between(address: string): Promise<string> {
    return this.#proxy(address, (ask, headers, sent, status, told) => this.#keep(ask, headers, sent, status, told));
  }

  /** The address of a proxy to `address` that looks for faults only: signed requests can't be sent again. */
  async watch(address: string): Promise<string> {
    return this.#proxy(address, (ask, headers, _sent, status) => {
      const at = headers.findIndex((name) => name.toLowerCase() === 'x-amz-target');
      if (status >= 500) this.#faults.push(`${ask} ${headers[at + 1]} was answered with ${status}`);
    });
  }

  async #proxy(address: string, see: See): Promise<string> {
    const server = createServer(async (incoming, outgoing) => {
      const sent = await bytesOf(incoming);
      const { method = 'GET', url = '/', rawHeaders } = incoming;
      const onward = request(`${address}${url}`, { method, headers: rawHeaders }, async (answer) => {
        const told = await bytesOf(answer);
        see(`${method} ${url}`, rawHeaders, sent.toString(), answer.statusCode ?? 0, told.toString());
        outgoing.writeHead(answer.statusCode ?? 0, answer.rawHeaders).end(told);
      });
      onward.on('error', () => outgoing.destroy()).end(sent);
    });
    // LIST, which Node can't parse, is forwarded as it came and not recorded.
    server.on('clientError', (error, socket) => {
      const { hostname, port } = new URL(address);
      const onward = connect(Number(port), hostname, () => onward.write(packetOf(error) ?? ''));
      onward.on('error', () => socket.destroy()).pipe(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#servers.push(server);
    const at = server.address();
    return `http://127.0.0.1:${at !== null && typeof at === 'object' ? at.port : 0}`;
  }

  /** Replaces `secret` by `<name>` from now on. */
  name(secret: string, name: string): void {
    this.#names.set(secret, `<${name}>`);
  }

  tokenMade(secret: string, flags: readonly string[]): void {
    const token = `token ${this.#names.size}`;
    this.name(secret, token);
    this.#steps.push({ token, flags });
  }

  commanded(kms: string): void {
    this.#steps.push({ kms });
  }

  /** Throws if a client was answered with a 5xx: a client's mistake is never a server fault. */
  refuseFaults(): void {
    const [fault] = this.#faults.splice(0);
    if (fault !== undefined) throw new Error(fault);
    for (const step of this.#steps) {
      if ('ask' in step && step.status >= 500) throw new Error(`${step.ask} was answered with ${step.status}`);
    }
  }

  /** Returns all steps since the last call; names from before the first call stay. */
  take(): readonly Step[] {
    const steps = this.#steps;
    this.#steps = [];
    if (this.#lasting.length === 0) this.#lasting = [...this.#names];
    this.#names = new Map(this.#lasting);
    return steps;
  }

  close(): void {
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  #keep(ask: string, rawHeaders: readonly string[], sent: string, status: number, told: string): void {
    for (const [, secret = ''] of sent.matchAll(plaintext)) {
      if (!this.#names.has(secret))
        this.name(secret, `${Buffer.from(secret, 'base64').length} bytes ${this.#names.size}`);
    }
    const headers = rawHeaders.flatMap((name, n) => {
      return n % 2 === 0 && !notKept.test(name) ? [[name, this.#hide(rawHeaders[n + 1] ?? '')] as const] : [];
    });
    const body = this.#hide(sent);
    // A message that the client altered in one character: no answer contained it.
    const isAltered = body.search(payload) >= 0;
    for (const [, secret = ''] of told.matchAll(payload)) {
      if (!this.#names.has(secret)) this.name(secret, `made ${this.#names.size}`);
    }
    for (const [, secret = ''] of told.matchAll(plaintext)) {
      if (!this.#names.has(secret)) this.name(secret, `made ${this.#names.size}`);
    }
    const reads = isAltered ? undefined : readsOf(ask, status, told);
    const shown = reads && JSON.parse(this.#hide(JSON.stringify(reads)));
    this.#steps.push({
      ask,
      headers: Object.fromEntries(headers),
      ...(body !== '' && { body: isAltered ? body.replace(payload, alteredPayload) : body }),
      status,
      ...(shown && Object.keys(shown).length > 0 && { reads: shown }),
    });
  }

  #hide(text: string): string {
    for (const [secret, name] of this.#names) text = text.replaceAll(secret, name);
    return text;
  }
}

function alteredPayload(whole: string): string {
  return whole.replace(/:[^:]+$/, ':<altered>');
}

/** Sends recorded steps again, in order; names are replaced by this run's values. */
export class Replay {
  readonly #values = new Map<string, string>();

  /** Replaces `<name>` by `value` from now on. */
  set(name: string, value: string): void {
    this.#values.set(name, value);
  }

  /** Replaces names by their values. Names of bytes without a value get random ones. */
  fill(text: string): string {
    return text.replaceAll(/<([a-z0-9 ]+)>/g, (_whole, name: string) => {
      const known = this.#values.get(name);
      if (known !== undefined) return known;
      const [, length] = /^([0-9]+) bytes /.exec(name) ?? [];
      if (length === undefined && name !== 'altered') throw new Error(`expected a value of <${name}> by now`);
      const chosen = randomBytes(Number(length ?? 40)).toString('base64');
      if (length !== undefined) this.set(name, chosen);
      return chosen;
    });
  }

  /**
   * The first difference from the expected value; undefined if there is none. Names without a value take it from
   * `actual`.
   */
  difference(expected: unknown, actual: unknown, at = ''): string | undefined {
    if (typeof expected === 'string') return this.#textDifference(expected, actual, at);
    if (expected === null || typeof expected !== 'object') {
      return expected === actual ? undefined : `${at}: expected ${String(expected)}, got ${JSON.stringify(actual)}`;
    }
    if (actual === null || typeof actual !== 'object') return `${at}: expected more than ${String(actual)}`;
    const names = Object.keys(expected);
    const others = Object.keys(actual).filter((name) => !names.includes(name));
    if (others.length > 0) return `${at}: expected no ${others.join(', ')}`;
    for (const name of names) {
      const found = this.difference(Reflect.get(expected, name), Reflect.get(actual, name), `${at}.${name}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #textDifference(expected: string, actual: unknown, at: string): string | undefined {
    const [, before = '', name = ''] = /^(.*)<(made [0-9]+)>$/s.exec(expected) ?? [];
    if (typeof actual !== 'string') return `${at}: expected text, got ${JSON.stringify(actual)}`;
    if (name !== '' && !this.#values.has(name) && actual.startsWith(before)) {
      this.set(name, actual.slice(before.length));
      return undefined;
    }
    const wanted = /^<(?:seconds|string|number)>$/.test(expected) ? expected : this.fill(expected);
    return wanted === actual ? undefined : `${at}: expected ${wanted}, got ${actual}`;
  }
}

async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
