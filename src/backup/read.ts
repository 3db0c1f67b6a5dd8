// An opened backup file: its structure is read in one pass over the heads of its parts, its bytes are compared with the
// digests in another, and then it is a source to restore from, or a read-only data directory. Nothing is trusted before
// it is compared.
import { openXChaCha } from '../crypto/aead.ts';
import { concatBytes, equalBytes, fromUtf8, toHex } from '../crypto/bytes.ts';
import { runningSha256 } from '../crypto/hash.ts';
import { KmsError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';
import { longestSeal, sealFile, systemDir } from '../platform/data-dir.ts';
import { listedFiles } from '../platform/file-ports.ts';
import { foreignFile } from '../platform/foreign-files.ts';
import type { Seal } from '../seal/seal.ts';
import type { Files } from '../store/files.ts';
import {
  damaged,
  decodeHeader,
  digestLength,
  endMark,
  headerLength,
  longestManifest,
  type Manifest,
  type ManifestFile,
  mostParts,
  nonceLength,
  parseJson,
  partHeadLength,
  partMark,
  pieceLength,
  pieces,
  readManifest,
  type Summary,
  summaryLabel,
} from './format.ts';
import type { RestoreSource } from './restore-source.ts';

interface BackupPart extends ManifestFile {
  /** Offset of its bytes in the backup file. */
  readonly offset: number;
}

/** A backup whose structure verifies: each part is where the manifest says. */
interface OpenedBackup {
  /** The backup file. */
  readonly name: string;
  readonly bytes: number;
  readonly header: Uint8Array;
  readonly manifest: Manifest;
  readonly manifestBytes: Uint8Array;
  readonly parts: ReadonlyMap<string, BackupPart>;
  readonly nonce: Uint8Array;
  readonly sealed: Uint8Array;
}

type Reading = Pick<Files, 'readAt' | 'size'>;

/** Throws `corrupt` if a byte outside the parts' content is changed, missing or surplus. */
export async function openBackup(files: Reading, name: string): Promise<OpenedBackup> {
  const bytes = await files.size(name);
  const structure = runningSha256();
  let at = 0;
  const take = async (length: number, what: string): Promise<Uint8Array> => {
    const piece = await files.readAt(name, at, length);
    if (piece.length < length) throw damaged(name, `it ends at byte ${bytes}, inside ${what}`);
    structure.update(piece);
    at += length;
    return piece;
  };
  const header = await files.readAt(name, 0, headerLength);
  const appliance = decodeHeader(name, header);
  structure.update(header);
  at = headerLength;
  const found: { name: string; bytes: number; offset: number }[] = [];
  for (;;) {
    const [mark] = await take(1, 'a part');
    if (mark === endMark) break;
    if (mark !== partMark) throw damaged(name, `no part starts at byte ${at - 1}`);
    const nameLength = numberOf(await take(2, 'a part'));
    const partName = fromUtf8(await take(nameLength, 'a part')) ?? '';
    const length = numberOf(await take(partHeadLength - 3, 'a part'));
    if (found.length === mostParts) throw damaged(name, `it has more than ${mostParts} parts`);
    if (!(at + length <= bytes)) throw damaged(name, `it ends at byte ${bytes}, inside ${partName}`);
    found.push({ name: partName, bytes: length, offset: at });
    at += length;
  }
  const manifestLength = numberOf(await take(4, 'the manifest'));
  if (manifestLength > Math.min(longestManifest, bytes)) throw damaged(name, 'its manifest is too long');
  const manifestBytes = await take(manifestLength, 'the manifest');
  const sealedLength = numberOf(await take(4, 'the summary'));
  if (sealedLength > Math.min(longestManifest, bytes)) throw damaged(name, 'its summary is too long');
  const sealed = await take(sealedLength, 'the summary');
  const digest = await files.readAt(name, at, digestLength);
  if (!equalBytes(digest, structure.digest())) throw damaged(name, 'its structure does not match its digest');
  if (at + digestLength !== bytes) throw damaged(name, `${bytes - at - digestLength} bytes follow its end`);
  const manifest = readManifest(parseJson(manifestBytes));
  if (!manifest || manifest.appliance !== appliance || sealedLength < nonceLength) {
    throw damaged(name, 'its manifest is malformed');
  }
  return {
    name,
    bytes,
    header,
    manifest,
    manifestBytes,
    parts: matched(name, manifest, found),
    nonce: sealed.subarray(0, nonceLength),
    sealed: sealed.subarray(nonceLength),
  };
}

/** The parts in the order of the manifest; throws if any is missing or surplus. */
function matched(
  name: string,
  { stores, seal }: Manifest,
  found: readonly { name: string; bytes: number; offset: number }[],
): ReadonlyMap<string, BackupPart> {
  const listed = [...stores.flatMap(({ files }) => files), seal];
  const parts = listed.map((file, index) => {
    const part = found[index];
    if (part?.name !== file.name || part.bytes !== file.bytes) throw damaged(name, `${file.name} is not in its place`);
    return [file.name, { ...file, offset: part.offset }] as const;
  });
  const byName = new Map(parts);
  if (found.length !== listed.length || byName.size !== listed.length || seal.name !== sealFile) {
    throw damaged(name, 'it has parts that its manifest does not name');
  }
  return byName;
}

/** Opens the backup file at `path` and compares every byte with its digests. */
export async function openBackupFile(path: string): Promise<OpenedBackup> {
  const { files, name } = await foreignFile(path);
  const backup = await openBackup(files, name);
  await checkDigests(files, backup);
  return backup;
}

/** Compares every byte of every part with its digest. */
export async function checkDigests(files: Reading, { name, parts }: OpenedBackup): Promise<void> {
  for (const part of parts.values()) {
    const digest = runningSha256();
    for await (const piece of pieces(files, name, part.offset + part.bytes, part.offset)) digest.update(piece);
    if (toHex(digest.digest()) !== part.sha256) throw damaged(name, `${part.name} does not match its digest`);
  }
}

/** The seal file in the backup. */
export async function sealOf(files: Reading, { name, parts }: OpenedBackup): Promise<Uint8Array> {
  const part = parts.get(sealFile);
  if (part && part.bytes > longestSeal) throw damaged(name, `its seal has ${part.bytes} bytes`);
  return part ? files.readAt(name, part.offset, part.bytes) : new Uint8Array();
}

/** Proves with an opened seal that the appliance itself made the manifest, and returns the sealed summary. */
export function readSummary(backup: OpenedBackup, seal: Seal): Summary {
  const { name, header, manifest, manifestBytes, nonce, sealed } = backup;
  const bound = concatBytes(summaryLabel, header, manifestBytes);
  const plain = openXChaCha(backupKey(seal, manifest.keyEpoch, name), nonce, sealed, bound);
  const summary = plain && parseJson(plain);
  if (!isJsonObject(summary) || seal.applianceId !== manifest.appliance) {
    throw damaged(name, 'its manifest was not made by the appliance that it names');
  }
  // Cast: sealed by `writeBackup`.
  return summary as Summary;
}

function backupKey(seal: Seal, epoch: number, name: string): Uint8Array {
  try {
    return seal.keysFor(systemDir).key('backup', epoch);
  } catch (error) {
    if (error instanceof KmsError) throw damaged(name, 'its seal has no key for its manifest');
    throw error;
  }
}

/** Big-endian; a value too large for an exact number is larger than any file. */
function numberOf(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}

export async function sourceOf(files: Files, backup: OpenedBackup, seal: Seal): Promise<RestoreSource> {
  return {
    seal: await sealOf(files, backup),
    stores: filesOf(files, backup),
    summary: readSummary(backup, seal),
    origin: { kind: 'backup', madeAt: backup.manifest.createdAt },
  };
}

/** The stores, with files that are compared with their digests while they are read. */
export function filesOf(files: Files, { name, manifest, parts }: OpenedBackup): RestoreSource['stores'] {
  return manifest.stores.map((store) => ({
    ...store,
    files: store.files.flatMap((file) => {
      const part = parts.get(file.name);
      return part ? [{ name: file.name, bytes: part.bytes, read: () => proven(files, name, part) }] : [];
    }),
  }));
}

async function* proven(files: Files, backup: string, part: BackupPart): AsyncGenerator<Uint8Array> {
  const digest = runningSha256();
  for await (const piece of pieces(files, backup, part.offset + part.bytes, part.offset)) {
    digest.update(piece);
    yield piece;
  }
  if (toHex(digest.digest()) !== part.sha256) throw damaged(backup, `${part.name} does not match its digest`);
}

export function backupFiles(
  files: Pick<Files, 'readAt'>,
  { name: backup, parts }: { readonly name: string; readonly parts: ReadonlyMap<string, BackupPart> },
): Files {
  return listedFiles(parts, 'a backup is not written to', (partOf) => {
    const readAt = async (name: string, offset: number, length: number): Promise<Uint8Array> => {
      const part = partOf(name);
      const most = Math.max(0, Math.min(length, part.bytes - offset));
      return files.readAt(backup, part.offset + offset, most);
    };
    return {
      async read(name) {
        const { bytes } = partOf(name);
        const whole = new Uint8Array(bytes);
        for (let at = 0; at < bytes; at += pieceLength) whole.set(await readAt(name, at, pieceLength), at);
        return whole;
      },
      readAt,
    };
  });
}
