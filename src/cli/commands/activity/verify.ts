// `kms activity verify`: a tenant's whole chain from disk, or with --file an export and no appliance.
import { KmsError } from '../../../errors.ts';
import { openInput } from '../../byte-files.ts';
import type { Cli } from '../../cli.ts';
import { readHead } from '../../head-file.ts';
import { withLocal } from '../../local.ts';
import { printJson, printLine } from '../../output.ts';

interface Verdict {
  readonly tenant?: string;
  readonly count: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly broken?: { readonly seq: number; readonly problem: string };
  readonly since?: { readonly seq: number; readonly signedAt: string; readonly publicKey: string };
}

export async function run(cli: Cli): Promise<void> {
  const since = await readHead(cli, '--since');
  const file = cli.text('--file');
  if (file === undefined && cli.isTyped('--public-key')) {
    throw new KmsError('usage', '--public-key goes with --file', { hint: cli.seeHelp });
  }
  const body = since === undefined ? {} : { since };
  const verdict =
    file === undefined
      ? await withLocal(cli, ({ ask }) => ask<Verdict>('POST', '/local/activity/verify', body))
      : await verifyFile(cli, file, body);
  await show(cli, verdict);
}

async function verifyFile(cli: Cli, file: string, body: { readonly since?: object }): Promise<Verdict> {
  const publicKey = cli.text('--public-key');
  const { verifyExport } = await import('../../../server/verify-export.ts');
  const input = await openInput(cli, file);
  try {
    return await verifyExport(input.source, publicKey === undefined ? body : { ...body, publicKey });
  } finally {
    await input.close();
  }
}

async function show(cli: Cli, verdict: Verdict): Promise<void> {
  const { tenant, count, head, broken, since } = verdict;
  if (cli.json) await printJson(cli, { valid: broken === undefined, ...verdict });
  if (broken) {
    throw new KmsError('refused', `the activity log does not verify: ${broken.problem}`, {
      hint: advice(cli, head.seq, broken.problem),
    });
  }
  if (cli.json) return;
  const whose = tenant === undefined ? '' : ` of the tenant ${tenant}`;
  await printLine(cli, `verified: ${count} records${whose}, up to record ${head.seq} with the hash ${head.hash}`);
  if (!since) return;
  await printLine(cli, `record ${since.seq}, anchored at ${since.signedAt}, is still there; key: ${since.publicKey}`);
}

function advice(cli: Cli, verified: number, problem: string): string {
  if (verified > 0) return `records up to ${verified} are as they were written`;
  const isLater =
    /record 1 was dropped/.test(problem) && cli.text('--file') !== undefined && cli.text('--since') === undefined;
  return isLater
    ? 'an export that begins later needs --since with the head that it begins after'
    : 'no record before it verifies';
}
