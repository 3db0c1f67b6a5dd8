// `kms recovery-kit`: makes a custodian on paper, which with a backup and the executable alone opens everything.
import type { MasterAnswer } from '../../server/custody/master-admin.ts';
import type { ApplianceStatus } from '../../server/status.ts';
import type { Cli } from '../cli.ts';
import { say } from '../io.ts';
import { codeOf, kitFiles, showKit } from '../kit-output.ts';
import { withLocal } from '../local.ts';
import { printJson } from '../output.ts';

export async function run(cli: Cli): Promise<void> {
  const out = cli.path('--output');
  const svg = cli.path('--svg');
  await withLocal(cli, async ({ ask }) => {
    const { newCustodian } = await import('../../server/custody/new-custodian.ts');
    const { sentSlot } = await import('../../server/custody/master-admin.ts');
    const { recoveryKitText } = await import('../../server/custody/recovery-kit.ts');
    const { applianceId } = await ask<ApplianceStatus>('GET', '/local/status');
    const { slot, recoveryCode = '' } = await newCustodian({ kind: 'recovery-kit' });
    const day = new Date().toISOString().slice(0, 10);
    const text = recoveryKitText({ applianceId, id: slot.id, day, code: recoveryCode });
    const files = await kitFiles(out, svg);
    try {
      await ask<MasterAnswer>('POST', '/local/master/custodians', sentSlot(slot));
      await files.commit(text, codeOf(text));
    } catch (error) {
      await files.discard();
      throw error;
    }
    const { id, kind, params } = slot;
    if (cli.json)
      await printJson(cli, { custodian: { id, kind, params }, ...(out === undefined && { recoveryKit: text }) });
    else if (out === undefined) await showKit(cli, text);
    if (out !== undefined)
      await say(cli.io, `the recovery kit is in ${out}: print it, keep it in a safe, remove the file`);
    if (svg !== undefined) await say(cli.io, `the QR code of the recovery kit is in ${svg}; it opens everything, too`);
  });
}
