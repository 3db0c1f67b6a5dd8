// Archives with fixed metadata, so that the same files give the same bytes: tar (POSIX ustar), ar as Debian packages
// use it, and gzip. Every entry belongs to root and has the same time.
import { gzipSync } from 'node:zlib';

/** An entry of an archive: a file, or a directory if `bytes` is absent. */
export interface Entry {
  /** No leading or trailing slash. */
  readonly path: string;
  readonly mode: number;
  readonly bytes?: Uint8Array;
}

const block = 512;

/** Packs the entries. `time` is in seconds since 1970; `prefix` is prepended to each path. */
export function tar(entries: readonly Entry[], time: number, prefix = ''): Buffer {
  const parts = entries.flatMap(({ path, mode, bytes }) => {
    const name = `${prefix}${path}${bytes ? '' : '/'}`;
    const content = bytes ?? Buffer.alloc(0);
    const padding = Buffer.alloc((block - (content.length % block)) % block);
    return [header(name, mode, content.length, time, bytes ? '0' : '5'), content, padding];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

function header(name: string, mode: number, size: number, time: number, type: '0' | '5'): Buffer {
  if (Buffer.byteLength(name) > 100) throw new Error(`${name}: longer than the 100 bytes that a name may have`);
  const bytes = Buffer.alloc(block);
  const number = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  bytes.write(name, 0);
  bytes.write(number(mode, 8), 100);
  bytes.write(number(0, 8), 108);
  bytes.write(number(0, 8), 116);
  bytes.write(number(size, 12), 124);
  bytes.write(number(time, 12), 136);
  bytes.write('        ', 148);
  bytes.write(type, 156);
  bytes.write('ustar\x0000', 257);
  bytes.write('root', 265);
  bytes.write('root', 297);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return bytes;
}

export function ar(members: readonly (readonly [name: string, bytes: Uint8Array])[], time: number): Buffer {
  const parts = members.flatMap(([name, bytes]) => {
    const fields = [name.padEnd(16), String(time).padEnd(12), '0'.padEnd(6), '0'.padEnd(6), '100644'.padEnd(8)];
    const head = Buffer.from(`${fields.join('')}${String(bytes.length).padEnd(10)}\`\n`);
    return [head, bytes, Buffer.from(bytes.length % 2 === 1 ? '\n' : '')];
  });
  return Buffer.concat([Buffer.from('!<arch>\n'), ...parts]);
}

/** Compresses without a name or a time in the header. */
export function gzip(bytes: Uint8Array): Buffer {
  return gzipSync(bytes, { level: 9 });
}
