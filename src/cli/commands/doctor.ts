// `kms doctor`: what is wrong with the appliance on this machine, and what to do about it. A running server examines its own stores.
import { join } from 'node:path';
import type { Examination, Finding } from '../../server/doctor/finding.ts';
import { type Cli, given } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { hasColour, write } from '../io.ts';
import { withLocal } from '../local.ts';
import { printJson, printLine } from '../output.ts';
import { keySources } from '../passphrase.ts';
import { dataDirectory, refuseRemote } from '../target.ts';
import { answers } from '../unix-fetch.ts';
import { visible } from '../visible.ts';

export async function run(cli: Cli): Promise<number> {
  refuseRemote(cli, 'doctor works on the machine of the appliance only');
  const data = dataDirectory(cli);
  const isServed = await answers(join(data, 'kms.sock')).catch(() => false);
  const served = (): Promise<Examination> => withLocal(cli, ({ ask }) => ask<Examination>('GET', '/local/doctor'));
  const { examine } = await import('../../server/doctor/doctor.ts');
  const examination = await examine({
    ...given({ data, keyFile: cli.path('--key-file'), tlsCert: cli.path('--tls-cert'), tlsKey: cli.path('--tls-key') }),
    sources: keySources(cli),
    served: isServed ? served : undefined,
  });
  const isWell = examination.findings.every(({ severity }) => severity === 'advice');
  if (cli.json) await printJson(cli, { ok: isWell, ...examination });
  else await show(cli, examination);
  return isWell ? exitCodes.done : exitCodes.failed;
}

const colours: Readonly<Record<Finding['severity'], number>> = { error: 31, warning: 33, advice: 36 };

async function show(cli: Cli, { findings, stores, activities }: Examination): Promise<void> {
  const colour = hasColour(cli.io, cli.io.stdout);
  for (const { severity, name, subject, message, advice } of findings) {
    const word = colour ? `\u001b[${colours[severity]}m${severity}\u001b[0m` : severity;
    await write(cli.io.stdout, `${word} ${name}: ${visible(`${subject}: ${message}`)}\n  ${visible(advice)}\n`);
  }
  const counts = (['error', 'warning', 'advice'] as const).map(
    (severity) => findings.filter((each) => each.severity === severity).length,
  );
  await printLine(
    cli,
    `examined: ${stores} stores, ${activities} activities; errors: ${counts[0]}, warnings: ${counts[1]}, advice: ${counts[2]}`,
  );
}
