// The plugin protocol of age (c2sp.org/age-plugin), version 1 of both state machines, over a pair of byte streams.
// Callbacks get the keys from an appliance; nothing here does.
import { concatBytes, fromUtf8, toHex, utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import type { Kem } from '../model/kems.ts';
import {
  type AgeIdentity,
  type AgeRecipient,
  type AgeStanza,
  type DataKey,
  fromAgeBase64,
  type HeardStanza,
  isForRing,
  type KmsStanza,
  openFileKey,
  parseIdentity,
  parseRecipient,
  readKmsStanza,
  sealFileKey,
  toAgeBase64,
} from './age-keys.ts';
import type { ByteSource } from './byte-streams.ts';

interface PluginOptions {
  /** Bytes from age. */
  readonly source: ByteSource;
  /** Sends bytes to age. */
  readonly write: (bytes: Uint8Array) => Promise<void>;
  /** Gets a key of the ring to encrypt with. */
  readonly encryptKey: (recipient: AgeRecipient | AgeIdentity) => Promise<DataKey>;
  /** Gets the key that belongs to this header. */
  readonly decryptKey: (identity: AgeIdentity, header: string) => Promise<Uint8Array>;
  /** Formats an error in one line, for the person who runs age. */
  readonly explain: (error: unknown) => string;
  /** Default: the platform's secure generator. */
  readonly random?: (length: number) => Uint8Array;
}

type Work = Required<PluginOptions>;

const machines = { 'recipient-v1': wrapAll, 'identity-v1': unwrapAll };

/**
 * Runs the named state machine to its end. Errors about a recipient, identity or stanza are reported to age; protocol
 * violations are thrown as `invalid`.
 */
export async function speakAge(name: string, options: PluginOptions): Promise<void> {
  const machine = name === 'recipient-v1' || name === 'identity-v1' ? machines[name] : undefined;
  if (machine === undefined) {
    throw new KmsError('invalid', `expected the state machine recipient-v1 or identity-v1, got "${name}"`, {
      hint: 'use a newer version of kms',
    });
  }
  const { random = systemRandom } = options;
  await machine(new Conversation(options, random), { ...options, random });
}

/** A recipient or identity that age added, as text, with its index among those of its kind. */
interface Added {
  readonly kind: 'recipient' | 'identity';
  readonly index: number;
  /** Undefined if its body was not valid base64. */
  readonly text: string | undefined;
}

async function wrapAll(age: Conversation, { encryptKey, explain, random }: Work): Promise<void> {
  const added: Added[] = [];
  const fileKeys: Uint8Array[] = [];
  let wantsLabels = false;
  let failed = false;
  for await (const stanza of age.untilDone()) {
    const { type, body } = stanza;
    if (type === 'add-recipient') added.push(addition('recipient', added, stanza));
    if (type === 'add-identity') added.push(addition('identity', added, stanza));
    if (type === 'wrap-file-key' && body !== undefined) fileKeys.push(body);
    if (type === 'wrap-file-key' && body === undefined) failed = true;
    if (type === 'extension-labels') wantsLabels = true;
  }
  if (failed) await age.tell('error', ['internal'], utf8(explain(noBase64('the file key'))));
  const stanzas: [file: number, stanza: AgeStanza][] = [];
  const kems = new Set<Kem>();
  for (const { kind, index, text } of added) {
    try {
      if (text === undefined) throw noBase64(`what came with the ${kind}`);
      const recipient = kind === 'recipient' ? parseRecipient(text) : parseIdentity(text);
      kems.add(recipient.kem);
      if (wantsLabels && kems.size > 1) throw mixed(recipient);
      for (const [file, fileKey] of fileKeys.entries()) {
        // After a failure age gets no stanzas.
        if (failed) break;
        const dataKey = await encryptKey(recipient);
        stanzas.push([file, await sealFileKey(fileKey, recipient.ringId, dataKey, random)]);
        dataKey.key.fill(0);
      }
    } catch (error) {
      failed = true;
      await age.tell('error', [kind, String(index)], utf8(explain(error)));
    }
  }
  if (!failed) {
    // Same rule as age's own recipients: a file that resists quantum computers must have no recipient that does not.
    if (wantsLabels) await age.tell('labels', kems.has('mlkem768-x25519') ? ['postquantum'] : []);
    await age.grease();
    for (const [file, { type, args, body }] of stanzas) {
      await age.tell('recipient-stanza', [String(file), type, ...args], body);
    }
  }
  await age.done();
}

/** The set of labels must be the same for all recipients. */
function mixed({ ring, kem }: AgeRecipient): KmsError {
  return new KmsError(
    'invalid',
    `the keyring ${ring} is wrapped by ${kem}, others beside it are not: a file is as strong as the weakest of them`,
    { hint: 'encrypt to keyrings of one kind; `kms keyring upgrade` makes those of x25519 hybrid' },
  );
}

interface Sealed {
  readonly index: number;
  readonly stanza: KmsStanza;
}

/** Stanzas of type `kms` of one file, and the malformed ones. */
interface File {
  readonly sealed: Sealed[];
  readonly malformed: [index: number, error: unknown][];
  count: number;
}

async function unwrapAll(age: Conversation, options: Work): Promise<void> {
  const added: Added[] = [];
  const files: File[] = [];
  for await (const stanza of age.untilDone()) {
    if (stanza.type === 'add-identity') added.push(addition('identity', added, stanza));
    if (stanza.type === 'recipient-stanza') addStanza(files, stanza);
  }
  const identities: AgeIdentity[] = [];
  for (const { index, text } of added) {
    try {
      if (text === undefined) throw noBase64('what came with the identity');
      identities.push(parseIdentity(text));
    } catch (error) {
      await age.tell('error', ['identity', String(index)], utf8(options.explain(error)));
    }
  }
  // A single invalid identity stops unwrapping altogether.
  if (identities.length === added.length) {
    await age.grease();
    for (const [index, file] of files.entries()) await unwrap(age, index, file, identities, options);
  }
  await age.done();
}

async function unwrap(
  age: Conversation,
  file: number,
  { sealed, malformed }: File,
  identities: readonly AgeIdentity[],
  { decryptKey, explain }: Work,
): Promise<void> {
  const failures = [...malformed];
  const fileKey = malformed.length === 0 ? await opened(sealed, identities, decryptKey, failures) : undefined;
  if (fileKey !== undefined) return age.tell('file-key', [String(file)], fileKey);
  for (const [index, error] of failures) {
    await age.tell('error', ['stanza', String(file), String(index)], utf8(explain(error)));
  }
}

/** The file key from the first identity that can open it; errors of the ones tried before go to `failures`. */
async function opened(
  sealed: readonly Sealed[],
  identities: readonly AgeIdentity[],
  decryptKey: PluginOptions['decryptKey'],
  failures: [index: number, error: unknown][],
): Promise<Uint8Array | undefined> {
  for (const { index, stanza } of sealed) {
    for (const identity of identities.filter(({ ringId }) => isForRing(stanza, ringId))) {
      try {
        const key = await decryptKey(identity, stanza.header);
        const fileKey = await openFileKey(stanza, identity.ringId, key);
        key.fill(0);
        return fileKey;
      } catch (error) {
        failures.push([index, error]);
      }
    }
  }
  return undefined;
}

function addition(kind: Added['kind'], added: readonly Added[], { args: [text = ''], body }: HeardStanza): Added {
  const index = added.filter((each) => each.kind === kind).length;
  return { kind, index, text: body === undefined ? undefined : text };
}

function noBase64(what: string): KmsError {
  return new KmsError('invalid', `age plugin: expected ${what} in base64 without padding`);
}

/** `args` begin with the file's number, followed by the stanza as in that file. */
function addStanza(files: File[], { args: [number = '', type = '', ...args], body }: HeardStanza): void {
  const index = /^(?:0|[1-9]\d{0,8})$/.test(number) ? Number(number) : -1;
  if (type === '' || index < Math.max(0, files.length - 1) || index > files.length) {
    throw new Broken('expected the stanzas of the files in their order');
  }
  if (index === files.length) files.push({ sealed: [], malformed: [], count: 0 });
  const file = files[index];
  if (file === undefined) return;
  const place = file.count++;
  try {
    const stanza = readKmsStanza({ type, args, body });
    if (stanza !== undefined) file.sealed.push({ index: place, stanza });
  } catch (error) {
    file.malformed.push([place, error]);
  }
}

/** Protocol violation by age, or the end of its input. */
class Broken extends KmsError {
  constructor(message: string) {
    super('invalid', `age plugin: ${message}`, { hint: 'this is a plugin, which age starts itself: see docs/age.md' });
  }
}

const columns = 64;
/** Limits in bytes for a line and for everything that age sends in a run: far more than real files need. */
const longestLine = 1 << 16;
const longestTalk = 1 << 24;

/** One side of the conversation: stanzas in, stanzas out, each answered. */
class Conversation {
  readonly #lines: AsyncGenerator<string, undefined, undefined>;
  readonly #write: PluginOptions['write'];
  readonly #random: (length: number) => Uint8Array;

  constructor({ source, write }: PluginOptions, random: (length: number) => Uint8Array) {
    this.#lines = linesOf(source);
    this.#write = write;
    this.#random = random;
  }

  /** Stanzas from age until `done`. */
  async *untilDone(): AsyncGenerator<HeardStanza, void, void> {
    for (;;) {
      const stanza = await this.#read();
      if (stanza.type === 'done') return;
      yield stanza;
    }
  }

  /** Sends a stanza and expects `ok`. */
  async tell(type: string, args: readonly string[] = [], body?: Uint8Array): Promise<void> {
    const reply = await this.#ask(type, args, body);
    if (reply !== 'ok') throw new Broken(`expected ok to ${type}, got ${reply}`);
  }

  /** Sometimes sends an unknown stanza, so that implementations keep tolerating them (GREASE). */
  async grease(): Promise<void> {
    const [chance = 0, ...name] = this.#random(9);
    if (chance % 3 === 0) return;
    const reply = await this.#ask(`grease-${toHex(Uint8Array.from(name))}`, [], this.#random(chance % 80));
    if (reply !== 'unsupported') throw new Broken(`expected unsupported to grease, got ${reply}`);
  }

  async done(): Promise<void> {
    await this.#write(stanzaBytes('done'));
  }

  async #ask(type: string, args: readonly string[], body?: Uint8Array): Promise<string> {
    await this.#write(stanzaBytes(type, args, body));
    return (await this.#read()).type;
  }

  /** Invalid base64 in a body concerns that stanza alone: its end is found anyway. */
  async #read(): Promise<HeardStanza> {
    const first = await this.#line();
    if (!/^->(?: [\x21-\x7e]+)+$/.test(first)) throw new Broken('expected a stanza, which begins with "->"');
    const [type = '', ...args] = first.slice(3).split(' ');
    let text = '';
    for (let line = first; ; ) {
      line = await this.#line();
      if (line.length > columns) throw new Broken(`expected lines of ${columns} characters at most`);
      if (line.startsWith('->')) throw new Broken(`expected a stanza to end with a line shorter than ${columns}`);
      text += line;
      if (line.length < columns) break;
    }
    return { type, args, body: fromAgeBase64(text) };
  }

  async #line(): Promise<string> {
    const { value } = await this.#lines.next();
    if (value === undefined) throw new Broken('the input ended before it was done');
    return value;
  }
}

function stanzaBytes(type: string, args: readonly string[] = [], body: Uint8Array = new Uint8Array()): Uint8Array {
  const text = toAgeBase64(body);
  const lines = [`-> ${[type, ...args].join(' ')}`];
  // The last line is always shorter than the others, possibly empty.
  for (let at = 0; at <= text.length; at += columns) lines.push(text.slice(at, at + columns));
  return utf8(`${lines.join('\n')}\n`);
}

/** Lines of the source without their line ends. Bytes after the last line end are dropped. */
async function* linesOf(source: ByteSource): AsyncGenerator<string, undefined, undefined> {
  let rest: Uint8Array = new Uint8Array();
  let length = 0;
  for await (const piece of source) {
    length += piece.length;
    if (length > longestTalk) throw new Broken(`expected ${longestTalk} bytes at most`);
    rest = rest.length === 0 ? piece : concatBytes(rest, piece);
    let start = 0;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10, start)) {
      const line = fromUtf8(rest.subarray(start, end));
      if (line === undefined || line.length > longestLine) throw new Broken('expected lines of text');
      yield line;
      start = end + 1;
    }
    rest = rest.subarray(start);
    if (rest.length > longestLine) throw new Broken('expected lines of text');
  }
  return undefined;
}
