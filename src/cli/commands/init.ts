// `kms init`: makes an appliance and shows its first API key, which is shown nowhere else.
import { askLine } from '../ask.ts';
import { type Cli, given } from '../cli.ts';
import { custodianRequest } from '../custodian-options.ts';
import { printFirstKey } from '../first-key.ts';
import { say } from '../io.ts';
import { codeOf, kitFiles, showKit } from '../kit-output.ts';
import { dataDirectory, refuseRemote } from '../target.ts';

export async function run(cli: Cli): Promise<void> {
  refuseRemote(cli, 'an appliance is made where it is to run');
  const data = dataDirectory(cli);
  const keyFile = cli.path('--key-file');
  const kind = cli.text('--custodian') ?? impliedKind(cli);
  const file = keyFile ?? `${data}.master.key`;
  const custodian = kind === undefined ? undefined : await custodianRequest(cli, kind, '--custodian', { file });
  const { initAppliance, refuseUnlessNew } = await import('../../server/init.ts');
  await refuseUnlessNew(data);
  const kitFile = cli.path('--recovery-kit');
  const recoveryKit = kitFile !== undefined || (await wantsKit(cli));
  const files = await kitFiles(kitFile, undefined);
  try {
    const hosts = cli.list('--host');
    const env = (name: string): string | undefined => cli.io.env[name];
    const made = await initAppliance(given({ data, keyFile, hosts, custodian, recoveryKit, env }));
    await printFirstKey(cli, made);
    if (made.recoveryKit === undefined) return await sayNext(cli);
    await files.commit(made.recoveryKit, codeOf(made.recoveryKit));
    if (kitFile === undefined) await showKit(cli, made.recoveryKit);
    else await say(cli.io, `the recovery kit is in ${kitFile}: print it, keep it in a safe, remove the file`);
    await sayNext(cli);
  } catch (error) {
    await files.discard();
    throw error;
  }
}

/** Without --custodian the appliance decides; options of one imply it. */
function impliedKind(cli: Cli): string | undefined {
  if (cli.isTyped('--shares') || cli.isTyped('--threshold')) return 'shares';
  return cli.isTyped('--exec') || cli.isTyped('--exec-arg') ? 'exec' : undefined;
}

async function wantsKit(cli: Cli): Promise<boolean> {
  const { stdin, stdout, stderr, signal } = cli.io;
  if (cli.json || !stdin.isTTY || !stdout.isTTY || !stderr.isTTY) return false;
  const question = 'Make a recovery kit, a sheet that opens everything with a backup alone? [y/N] ';
  return /^y(es)?$/i.test(await askLine({ input: stdin, output: stderr, terminal: false }, question, signal));
}

async function sayNext(cli: Cli): Promise<void> {
  if (!cli.json)
    await say(cli.io, 'next: `kms serve`, then `kms user set-up-link` for the console, and `kms keyring create NAME`');
}
