// `kms unseal`: gives a sealed server what opens it, or one share towards it. What is typed is not echoed.
import type { SealStatus, UnsealStep } from '../../api/seal.ts';
import { KmsError } from '../../errors.ts';
import type { Cli } from '../cli.ts';
import { readSmallText } from '../files.ts';
import { say } from '../io.ts';
import { givenPassphrase } from '../passphrase.ts';
import { ask, printSealStatus, sealStatus, withServer } from '../seal-connection.ts';
import { readLines, readSecret } from '../secret-input.ts';
import { isOpenToOthers } from '../target.ts';

export async function run(cli: Cli): Promise<void> {
  await withServer(cli, async (connection) => {
    let status = await sealStatus(cli, connection);
    if (!status.sealed) {
      if (!cli.json) await say(cli.io, 'it is not sealed');
      return printSealStatus(cli, status);
    }
    if (connection.way === 'network' && isOpenToOthers(new URL(connection.baseUrl))) {
      await say(cli.io, 'warning: what you enter goes over the network unencrypted; use an https address');
    }
    for (const step of await stepsWanted(cli, status)) {
      status = await ask<SealStatus>(cli, connection, ['POST', '/system/unseal', step]);
      if (!status.sealed) break;
    }
    await printSealStatus(cli, status);
  });
}

async function stepsWanted(cli: Cli, { kinds, threshold, progress }: SealStatus): Promise<readonly UnsealStep[]> {
  if (cli.isOn('--reset')) return [{ reset: true }];
  const keyFile = cli.path('--key-file');
  if (keyFile !== undefined) return [{ key: await readSmallText(keyFile, 'the master key') }];
  const passphrase = await givenPassphrase(cli);
  if (passphrase !== undefined) return [{ passphrase }];
  const byHand = kinds.filter((kind) => kind === 'passphrase' || kind === 'shares');
  const { stdin, stderr } = cli.io;
  if (stdin.isTTY && stderr.isTTY) {
    const share = `share (${progress ?? 0} of ${threshold} given)`;
    const what = byHand.map((kind) => (kind === 'shares' ? share : 'passphrase')).join(' or ');
    const text = await readSecret(cli, what === '' ? 'recovery code (nothing = look for the key again)' : what);
    return text === '' ? [{ retry: true }] : [stepOf(text)];
  }
  const lines = await readLines(cli, byHand.includes('shares') ? 'shares' : 'passphrase');
  return lines.length === 0 ? [{ retry: true }] : lines.map(stepOf);
}

/** Shares and keys say what they are. */
function stepOf(text: string): UnsealStep {
  if (/^kms-share-/i.test(text)) return { share: text };
  if (/^kms-(recovery|master-key)-/i.test(text)) return { key: text };
  if (text.length > 1024) throw new KmsError('invalid', 'that is too long for a passphrase');
  return { passphrase: text };
}
