// The backup that is made of a data directory before a newer program changes its stores. It lies in the directory itself, from which
// `kms restore` brings back what the older program can read.
import { systemRandom } from '../../crypto/random.ts';
import { KmsError } from '../../errors.ts';
import type { Files } from '../../store/files.ts';
import type { Notice } from '../notices.ts';
import type { SealKeeper } from '../seal-keeper.ts';
import { systemDir } from '../stores.ts';
import { tenantDir } from '../tenants.ts';
import { storeAtRest } from './collect.ts';
import { openBackup } from './read.ts';
import { type CopiedStore, writeBackup } from './write.ts';

const prefix = 'before-migration-';
/** Of earlier migrations, so many stay. */
const kept = 2;

/** To be called before the first store is changed; all but the first call of one start do nothing. */
export function backupBeforeMigration(
  { files, root, seal, now }: { files: Files; root: string; seal: SealKeeper; now(): number },
  onNotice: ((notice: Notice) => void) | undefined,
): () => Promise<void> {
  let made: Promise<void> | undefined;
  const make = async (): Promise<void> => {
    const at = now();
    const name = `${prefix}${new Date(at).toISOString().replace(/[-:]|\.[0-9]+/g, '')}.kms-backup`;
    const dirs = seal.current.stores.map((dir) => (dir === systemDir ? dir : tenantDir(dir)));
    const found = await Promise.all(dirs.map((dir) => storeAtRest(files, dir)));
    const stores: CopiedStore[] = found.filter((store) => store !== undefined);
    try {
      await files.replace(name, writeBackup({ files, seal: () => seal.current, stores, at, random: systemRandom }));
      await openBackup(files, name);
    } catch (cause) {
      throw new KmsError(
        'unavailable',
        `${root}: the backup before the migration could not be made; nothing was changed`,
        {
          hint: 'make room on the disk, or go on with the older program',
          cause,
        },
      );
    }
    onNotice?.({ level: 'info', message: `${root}/${name}: a backup from before this program's first start here` });
    const older = (await files.list('.')).filter((each) => each.startsWith(prefix) && each !== name).sort();
    for (const each of older.slice(0, -kept)) await files.remove(each);
  };
  return () => {
    made ??= make();
    return made;
  };
}
