// `kms backup verify`: whether a backup restores.
import type { Cli } from '../../cli.ts';
import { copyKeys } from '../../copy-keys.ts';
import { pathFrom, say } from '../../io.ts';
import { printThing } from '../../output.ts';
import { byteCount } from '../../transfer.ts';

export async function run(cli: Cli): Promise<void> {
  const { verifyBackup } = await import('../../../server/backup/verify.ts');
  const path = pathFrom(cli.io, cli.arg(0));
  const { manifest, bytes, proof } = await verifyBackup(path, copyKeys(cli));
  await printThing(cli, { valid: true, restores: proof !== undefined, bytes, ...proof, manifest }, [
    ['backup', proof ? 'restores' : 'digests fit'],
    ['made at', manifest.createdAt],
    ['appliance', manifest.appliance],
    ['size', byteCount(bytes)],
    ['needs one of', manifest.custodians.map(({ kind, fingerprint }) => `${kind} ${fingerprint}`).join(', ')],
    ['stores', manifest.stores.length],
    ['transactions', proof?.transactions],
    ['activities', proof?.activities],
  ]);
  if (!proof) {
    await say(cli.io, 'warning: without the master key only digests were compared; give it with --key-file');
  }
}
