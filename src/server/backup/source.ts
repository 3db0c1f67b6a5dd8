// A backup file as something to restore.
import { toHex } from '../../crypto/encoding.ts';
import { runningSha256 } from '../../crypto/hash.ts';
import type { Seal } from '../../seal/seal.ts';
import type { Files } from '../../store/files.ts';
import { damaged } from './format.ts';
import { type BackupPart, type OpenedBackup, readSummary, sealOf } from './read.ts';
import type { RestoreSource } from './restore.ts';
import { pieces } from './write.ts';

export async function sourceOf(files: Files, backup: OpenedBackup, seal: Seal): Promise<RestoreSource> {
  return {
    seal: await sealOf(files, backup),
    stores: filesOf(files, backup),
    summary: readSummary(backup, seal),
    origin: { kind: 'backup', madeAt: backup.manifest.createdAt },
  };
}

/** The stores, with files that are compared with their digests as they are read. */
export function filesOf(files: Files, { name, manifest, parts }: OpenedBackup): RestoreSource['stores'] {
  return manifest.stores.map((store) => ({
    ...store,
    files: store.files.flatMap((file) => {
      const part = parts.get(file.name);
      return part ? [{ name: file.name, read: () => proven(files, name, part) }] : [];
    }),
  }));
}

async function* proven(files: Files, backup: string, part: BackupPart): AsyncGenerator<Uint8Array> {
  const digest = runningSha256();
  for await (const piece of pieces(files, backup, part.offset + part.bytes, part.offset)) {
    digest.update(piece);
    yield piece;
  }
  if (toHex(digest.digest()) !== part.sha256) throw damaged(backup, `${part.name} does not fit its digest`);
}
