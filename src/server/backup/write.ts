// Makes the bytes of a backup from files that are held, piece by piece in constant memory.
import { setImmediate } from 'node:timers/promises';
import { sealXChaCha } from '../../crypto/aead.ts';
import { concatBytes } from '../../crypto/bytes.ts';
import { toHex, utf8 } from '../../crypto/encoding.ts';
import { runningSha256, sha256 } from '../../crypto/hash.ts';
import { KmsError } from '../../errors.ts';
import type { Seal } from '../../seal/seal.ts';
import type { Files } from '../../store/files.ts';
import type { HeldFile } from '../../store/hold.ts';
import { version } from '../../version.ts';
import { sealFile } from '../data-dir.ts';
import { systemDir } from '../stores.ts';
import { encodeHeader, endMark, nonceLength, partHead, summaryLabel, u32 } from './format.ts';
import type { Manifest, ManifestFile, ManifestStore, StoreSummary, Summary } from './manifest.ts';

/** Small, so that hashing one on the serving thread is a matter of a millisecond. */
export const pieceLength = 128 * 1024;

/** A store as it is copied. */
export interface CopiedStore {
  readonly dir: string;
  /** Hexadecimal. */
  readonly uid: string;
  readonly sequence?: number;
  readonly files: readonly HeldFile[];
  readonly summary?: StoreSummary;
}

export interface BackupInput {
  readonly files: Files;
  /** The seal in force when it is asked, which is at the end: it has all keys that the copied files need. */
  seal(): Seal;
  readonly stores: readonly CopiedStore[];
  /** Epoch milliseconds. */
  readonly at: number;
  random(length: number): Uint8Array;
}

export async function* writeBackup(input: BackupInput): AsyncGenerator<Uint8Array> {
  const { files, stores, random } = input;
  const structure = runningSha256();
  const kept = (bytes: Uint8Array): Uint8Array => {
    structure.update(bytes);
    return bytes;
  };
  const before = input.seal();
  const header = encodeHeader(before.applianceId);
  yield kept(header);
  const copied: ManifestStore[] = [];
  for (const { dir, uid, sequence, files: held } of stores) {
    const done: ManifestFile[] = [];
    for (const { name, bytes } of held) {
      yield kept(partHead(name, bytes));
      const digest = runningSha256();
      for await (const piece of pieces(files, name, bytes)) {
        digest.update(piece);
        yield piece;
      }
      done.push({ name, bytes, sha256: toHex(digest.digest()) });
    }
    copied.push({ dir, uid, ...(sequence === undefined ? {} : { sequence }), files: done });
  }
  const seal = input.seal();
  if (!stillOpens(seal, before)) {
    throw new KmsError('unavailable', 'keys of a tenant were changed while it was copied', { hint: 'try again' });
  }
  const sealBytes = seal.toBytes();
  yield kept(partHead(sealFile, sealBytes.length));
  yield sealBytes;
  const keys = seal.keysFor(systemDir);
  const manifest = utf8(
    JSON.stringify(
      manifestOf(seal, { name: sealFile, bytes: sealBytes.length, sha256: toHex(sha256(sealBytes)) }, keys.epoch, {
        at: input.at,
        stores: copied,
      }),
    ),
  );
  const summary: Summary = Object.fromEntries(
    stores.flatMap((store) => (store.summary ? [[store.dir, store.summary]] : [])),
  );
  const nonce = random(nonceLength);
  const bound = concatBytes(summaryLabel, header, manifest);
  const sealed = sealXChaCha(keys.key('backup'), nonce, utf8(JSON.stringify(summary)), bound);
  yield kept(concatBytes(new Uint8Array([endMark]), u32(manifest.length), manifest));
  yield kept(concatBytes(u32(nonceLength + sealed.length), nonce, sealed));
  yield structure.digest();
}

function manifestOf(
  seal: Seal,
  sealed: ManifestFile,
  keyEpoch: number,
  { at, stores }: { readonly at: number; readonly stores: readonly ManifestStore[] },
): Manifest {
  return {
    format: 'kms-backup',
    version: 1,
    program: version,
    createdAt: new Date(at).toISOString(),
    appliance: seal.applianceId,
    master: seal.fingerprint,
    custodians: seal.slots.map(({ kind, id }) => ({ kind, fingerprint: id })),
    keyEpoch,
    seal: sealed,
    stores,
  };
}

/** Whether `after` opens everything that `before` opened: files that were copied in between are readable with it. */
export function stillOpens(after: Seal, before: Seal): boolean {
  return before.stores.every((dir) => {
    if (!after.stores.includes(dir)) return false;
    const now = new Map(after.epochsOf(dir).map(({ epoch, retired }) => [epoch, retired]));
    return before.epochsOf(dir).every(({ epoch, retired }) => now.has(epoch) && (retired || now.get(epoch) === false));
  });
}

/** The first `bytes` bytes of a file. Throws `unavailable` when there are not as many. */
export async function* pieces(
  files: Pick<Files, 'readAt'>,
  name: string,
  bytes: number,
  from = 0,
): AsyncGenerator<Uint8Array> {
  for (let offset = from; offset < bytes; ) {
    const piece = await files.readAt(name, offset, Math.min(pieceLength, bytes - offset));
    if (piece.length === 0) {
      throw new KmsError('unavailable', `${name}: the file became shorter while it was copied`, { hint: 'try again' });
    }
    offset += piece.length;
    yield piece;
    await setImmediate();
  }
}
