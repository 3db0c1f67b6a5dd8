// A snapshot file: the whole database and the newest part of the activity log, in sealed chunks.
//
//   file  = header 64 | chunk*
//   chunk = nonce 24 | ciphertext of at most 256 KiB | tag 16; all but the last are full
//   text  = manifest length u32 | manifest (JSON) | activity lines, each ended by a line feed | SQLite image
//
// The associated data of a chunk are the header, its number and whether it is the last, so that none can be changed,
// moved, left out or added.
import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, fromUtf8, utf8 } from '../crypto/bytes.ts';
import type { KmsError } from '../errors.ts';
import type { WholeFiles } from './files.ts';
import { readManifest, type SnapshotManifest } from './snapshot-manifest.ts';
import {
  corrupt,
  decodeFileHeader,
  encodeFileHeader,
  type FileHeader,
  headerLength,
  keyOf,
  nonceLength,
  type StoreKeys,
  snapshotName,
  tagLength,
} from './store-files.ts';

const chunkLength = 256 * 1024;
const sealedLength = nonceLength + chunkLength + tagLength;
const label = utf8('kms/snapshot/chunk/v1');

/** The dependencies for writing a snapshot. */
interface SnapshotContext {
  readonly files: WholeFiles;
  readonly dir: string;
  readonly keys: StoreKeys;
  random(length: number): Uint8Array;
}

interface SnapshotContent {
  readonly manifest: SnapshotManifest;
  readonly tail: readonly string[];
  /** Empty for a database without tables. */
  readonly image: Uint8Array;
}

/** Writes a snapshot, durable before this resolves; returns its size in bytes. */
export async function writeSnapshot(
  context: SnapshotContext,
  header: Omit<FileHeader, 'epoch'>,
  content: Omit<SnapshotManifest, 'version' | 'tailBytes' | 'imageBytes'>,
  tail: readonly string[],
  image: Uint8Array,
): Promise<number> {
  const { files, dir, keys } = context;
  const lines = utf8(tail.length === 0 ? '' : `${tail.join('\n')}\n`);
  const manifest: SnapshotManifest = { version: 1, ...content, tailBytes: lines.length, imageBytes: image.length };
  const json = utf8(JSON.stringify(manifest));
  const lead = new Uint8Array(4);
  new DataView(lead.buffer).setUint32(0, json.length);
  const clear = encodeFileHeader('snapshot', { ...header, epoch: keys.epoch });
  const key = keys.key('snapshot', keys.epoch);
  let size = 0;
  async function* sealed(): AsyncGenerator<Uint8Array> {
    size = clear.length;
    yield clear;
    let index = 0;
    for (const { bytes, last } of chunks([lead, json, lines, image])) {
      const nonce = context.random(nonceLength);
      const chunk = concatBytes(nonce, sealXChaCha(key, nonce, bytes, associated(clear, index++, last)));
      size += chunk.length;
      yield chunk;
    }
  }
  await files.replace(snapshotName(dir, header.generation), sealed());
  return size;
}

/** Cuts the concatenated parts into full chunks and a last one of at least a byte. */
function* chunks(parts: readonly Uint8Array[]): Generator<{ bytes: Uint8Array; last: boolean }> {
  let rest = parts.reduce((sum, part) => sum + part.length, 0);
  let chunk = new Uint8Array(Math.min(chunkLength, rest));
  let filled = 0;
  for (const part of parts) {
    for (let from = 0; from < part.length; ) {
      const piece = part.subarray(from, from + chunk.length - filled);
      chunk.set(piece, filled);
      filled += piece.length;
      from += piece.length;
      if (filled < chunk.length) continue;
      rest -= filled;
      yield { bytes: chunk, last: rest === 0 };
      chunk = new Uint8Array(Math.min(chunkLength, rest));
      filled = 0;
    }
  }
}

/** A snapshot whose header was read; each chunk is verified when it is read. */
interface OpenSnapshot {
  readonly name: string;
  readonly header: FileHeader;
  readonly size: number;
  readonly chunks: number;
  /** Length of the text in bytes. */
  readonly length: number;
  chunk(index: number): Promise<Uint8Array>;
}

async function openSnapshot(
  files: WholeFiles,
  dir: string,
  generation: number,
  keys: StoreKeys,
): Promise<OpenSnapshot> {
  const name = snapshotName(dir, generation);
  const size = await files.size(name);
  const clear = await files.readAt(name, 0, headerLength);
  const header = decodeFileHeader('snapshot', name, clear);
  if (header.generation !== generation)
    throw corrupt(name, 32, `the file is number ${header.generation}, not ${generation}`);
  const key = keyOf(keys, 'snapshot', header.epoch, name);
  const count = Math.ceil((size - headerLength) / sealedLength);
  if (count === 0) throw corrupt(name, size, 'the file ends after its header');
  const length = Math.max(0, size - headerLength - count * (nonceLength + tagLength));
  const chunk = async (index: number): Promise<Uint8Array> => {
    const offset = headerLength + index * sealedLength;
    const sealed = await files.readAt(name, offset, Math.min(sealedLength, size - offset));
    const plain = openChunk(key, sealed, associated(clear, index, index === count - 1));
    if (!plain) throw corrupt(name, offset, `chunk ${index} does not verify`);
    return plain;
  };
  return { name, header, size, chunks: count, length, chunk };
}

/** Reads and verifies a whole snapshot. */
export async function readSnapshot(
  files: WholeFiles,
  dir: string,
  generation: number,
  keys: StoreKeys,
): Promise<SnapshotContent & { header: FileHeader; size: number }> {
  const { name, header, size, chunks, length, chunk } = await openSnapshot(files, dir, generation, keys);
  // A file may be as long as its maker likes: there is memory for it once its beginning verifies.
  const first = await chunk(0);
  const text = new Uint8Array(length);
  text.set(first);
  for (let index = 1; index < chunks; index++) text.set(await chunk(index), index * chunkLength);
  return { ...parse(name, text), header, size };
}

/** Reads and verifies only a snapshot's manifest. */
export async function describeSnapshot(
  files: WholeFiles,
  dir: string,
  generation: number,
  keys: StoreKeys,
): Promise<Pick<SnapshotContent, 'manifest'> & { header: FileHeader; size: number }> {
  const { name, header, size, chunks, length, chunk } = await openSnapshot(files, dir, generation, keys);
  let text = await chunk(0);
  for (let index = 1; index < chunks && text.length < manifestEnd(text); index++) {
    text = concatBytes(text, await chunk(index));
  }
  return { manifest: parseManifest(name, text, length), header, size };
}

function openChunk(key: Uint8Array, chunk: Uint8Array, bound: Uint8Array): Uint8Array | undefined {
  if (chunk.length <= nonceLength + tagLength) return undefined;
  return openXChaCha(key, chunk.subarray(0, nonceLength), chunk.subarray(nonceLength), bound);
}

function parse(name: string, text: Uint8Array): SnapshotContent {
  const manifest = parseManifest(name, text, text.length);
  const tailStart = manifestEnd(text);
  const imageStart = tailStart + manifest.tailBytes;
  const lines = fromUtf8(text.subarray(tailStart, imageStart));
  if (lines === undefined) throw misfit(name);
  return { manifest, tail: lines === '' ? [] : lines.slice(0, -1).split('\n'), image: text.subarray(imageStart) };
}

/** The end of the manifest, given the beginning of the text. */
function manifestEnd(text: Uint8Array): number {
  return 4 + (text.length < 4 ? 0 : new DataView(text.buffer, text.byteOffset).getUint32(0));
}

/** Parses the manifest from the beginning of a text of `length` bytes. */
function parseManifest(name: string, text: Uint8Array, length: number): SnapshotManifest {
  const end = manifestEnd(text);
  const json = fromUtf8(text.subarray(4, end));
  if (!json) throw corrupt(name, headerLength, 'no manifest');
  const manifest = readManifest(json);
  if (!manifest) throw corrupt(name, headerLength, 'the manifest is none that kms writes');
  if (end + manifest.tailBytes + manifest.imageBytes !== length) throw misfit(name);
  return manifest;
}

function misfit(name: string): KmsError {
  return corrupt(name, headerLength, 'the manifest does not match the content');
}

function associated(clear: Uint8Array, index: number, last: boolean): Uint8Array {
  const place = new Uint8Array(5);
  new DataView(place.buffer).setUint32(0, index);
  place[4] = last ? 1 : 0;
  return concatBytes(label, clear, place);
}
