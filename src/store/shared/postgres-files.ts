// Files in a PostgreSQL, each stored in rows of 256 KiB and replaced as a whole in one transaction.
import { KmsError } from '../../errors.ts';
import type { WholeFiles } from '../files.ts';
import type { PostgresConnections, Query } from './postgres-connections.ts';

const chunkLength = 256 * 1024;

export class PostgresFiles implements WholeFiles {
  readonly #connections: PostgresConnections;

  constructor(connections: PostgresConnections) {
    this.#connections = connections;
  }

  list(dir: string): Promise<string[]> {
    const text = 'SELECT name FROM kms_file WHERE dir = $1 AND chunk = 0 ORDER BY name';
    return this.#connections.reading(async (client) => (await client.query(text, [dir])).rows.map(({ name }) => name));
  }

  async exists(name: string): Promise<boolean> {
    return (await this.#size(name)) !== undefined;
  }

  async size(name: string): Promise<number> {
    return (await this.#size(name)) ?? missing(name);
  }

  #size(name: string): Promise<number | undefined> {
    const text =
      'SELECT chunk, length(bytes) AS n FROM kms_file WHERE dir = $1 AND name = $2 ORDER BY chunk DESC LIMIT 1';
    return this.#connections.reading(async (client) => {
      const [last] = (await client.query(text, partsOf(name))).rows;
      return last && last.chunk * chunkLength + last.n;
    });
  }

  async read(name: string, most: number): Promise<Uint8Array> {
    const bytes = await this.readAt(name, 0, most + 1);
    if (bytes.length <= most) return bytes;
    throw new KmsError('corrupt', `${name}: expected at most ${most} bytes in the database, found more`, {
      hint: 'it is longer than any such file of kms: find out who wrote it; nothing was changed',
    });
  }

  readAt(name: string, offset: number, length: number): Promise<Uint8Array> {
    const first = Math.floor(offset / chunkLength);
    const last = Math.min(2 ** 31 - 1, Math.floor((offset + length - 1) / chunkLength));
    const text = 'SELECT bytes FROM kms_file WHERE dir = $1 AND name = $2 AND chunk BETWEEN $3 AND $4 ORDER BY chunk';
    return this.#connections.reading(async (client) => {
      const { rows } = await client.query(text, [...partsOf(name), first, last]);
      if (rows.length === 0 && offset === 0) return missing(name);
      const bytes = new Uint8Array(Buffer.concat(rows.map((row) => row.bytes)));
      return bytes.subarray(offset - first * chunkLength, offset - first * chunkLength + length);
    });
  }

  replace(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    return this.#connections.writing((client) => putFile(client, name, bytes));
  }

  remove(name: string): Promise<void> {
    return this.#connections.writing(async (client) => {
      const { rowCount } = await client.query('DELETE FROM kms_file WHERE dir = $1 AND name = $2', partsOf(name));
      if (rowCount === 0) missing(name);
    });
  }
}

/** Replaces a file; must run in a transaction. */
export async function putFile(
  client: Query,
  name: string,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
): Promise<void> {
  const parts = partsOf(name);
  await client.query('DELETE FROM kms_file WHERE dir = $1 AND name = $2', parts);
  let chunk = 0;
  for await (const piece of chunksOf(bytes)) {
    const text = 'INSERT INTO kms_file (dir, name, chunk, bytes) VALUES ($1, $2, $3, $4)';
    await client.query(text, [...parts, chunk++, piece]);
  }
}

/** At least one chunk; all but the last are full. */
async function* chunksOf(bytes: Uint8Array | AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let filled: Buffer = Buffer.alloc(0);
  for await (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) {
    filled = Buffer.concat([filled, piece]);
    for (; filled.length > chunkLength; filled = filled.subarray(chunkLength)) yield filled.subarray(0, chunkLength);
  }
  yield filled;
}

function missing(name: string): never {
  throw Object.assign(new Error(`ENOENT: ${name}`), { code: 'ENOENT' });
}

/** The directory and the name. */
export function partsOf(name: string): [string, string] {
  const at = name.lastIndexOf('/');
  return [name.slice(0, at), name.slice(at + 1)];
}
