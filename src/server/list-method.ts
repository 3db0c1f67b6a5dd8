// LIST, the method by which Vault clients list: Node's parser does not know it. It stands for GET with `list=true`, so
// the parser gets that, on a connection of its own that ends with the answer.
import { Duplex } from 'node:stream';
import { systemCode } from '../errors.ts';
import { failedAt, packetOf } from './http-refusals.ts';

/** Bytes that the connection may still receive after the LIST was found: the rest of its headers. */
const mostBehind = 64 * 1024;

/** Longest request line in bytes: the same as all headers. */
const longestLine = 16 * 1024;
const versionEnd = /^HTTP\/1\.[01]\r\n$/;

/** The bytes from the LIST on at which the parser failed; undefined if it failed on something else. */
export function listingOf(error: Error): Buffer | undefined {
  const packet = packetOf(error);
  if (!packet || systemCode(error) !== 'HPE_INVALID_METHOD') return undefined;
  // The parser knows LINK, so it fails at the third letter. Requests already answered may stand before it.
  const start = failedAt(error) - 2;
  if (start < 0 || packet.toString('latin1', start, start + 5) !== 'LIST ') return undefined;
  const came = Buffer.from(packet.subarray(start));
  return came.includes('\n') && asGet(came) === undefined ? undefined : came;
}

/** The bytes with a GET as the request line; undefined if the first line is not a LIST. */
function asGet(came: Buffer): Buffer | undefined {
  const end = came.indexOf('\n') + 1;
  const [method, given = '', version = '', ...more] = came.toString('latin1', 0, Math.min(end, longestLine)).split(' ');
  if (method !== 'LIST' || more.length > 0 || !versionEnd.test(version) || given.includes('#')) return undefined;
  const question = given.indexOf('?');
  const path = question < 0 ? given : given.slice(0, question);
  const query = question < 0 ? '' : given.slice(question + 1);
  if (path === '') return undefined;
  const target = `${path}?list=true${query ? `&${query}` : ''}`;
  const head = Buffer.from(`GET ${target} ${version}Connection: close\r\n`, 'latin1');
  return Buffer.concat([head, came.subarray(end)]);
}

/** A connection that continues where another's parser failed. Node's server accepts any stream as one. */
export class Listing extends Duplex {
  readonly #under: Duplex;
  /** The bytes until the first line is complete; a client may send it in pieces. */
  #came: Buffer | undefined = Buffer.alloc(0);
  #behind = 0;

  constructor(under: Duplex, first: Buffer) {
    super();
    this.#under = under;
    under.on('error', () => this.destroy()).on('close', () => this.destroy());
    this.#take(first);
  }

  /** The client's address. */
  get remoteAddress(): string | undefined {
    const address: unknown = Reflect.get(this.#under, 'remoteAddress');
    return typeof address === 'string' ? address : undefined;
  }

  /** Takes further bytes. Undefined: they took too long. */
  more(packet: Buffer | undefined): void {
    this.#behind += packet?.length ?? 0;
    if (packet && this.#behind <= mostBehind) this.#take(packet);
    else this.destroy();
  }

  #take(bytes: Buffer): void {
    if (!this.#came) return void this.push(bytes);
    const came = Buffer.concat([this.#came, bytes]);
    this.#came = came.includes('\n') ? undefined : came;
    // If the first line turns out not to be a LIST, the parser refuses it.
    if (!this.#came) this.push(asGet(came) ?? came);
  }

  /** A method of sockets that Node's server calls after the last answer. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  override _read(): void {}

  override _write(chunk: Buffer, encoding: BufferEncoding, written: (error?: Error | null) => void): void {
    this.#under.write(chunk, encoding, written);
  }

  override _final(ended: (error?: Error | null) => void): void {
    this.#under.end(ended);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#under.destroy();
    done(error);
  }
}
