// How the master key and its custodians are shown.
import type { CustodianAnswer, MasterAnswer } from '../../../server/custody/master-admin.ts';
import type { Cli } from '../../cli.ts';
import { printJson, printTable, printThing } from '../../output.ts';

export async function printMaster(cli: Cli, answer: MasterAnswer): Promise<void> {
  if (cli.json) return printJson(cli, answer);
  await printThing(cli, answer, [['master key', answer.fingerprint]]);
  await printTable(cli, answer.custodians, [
    { title: 'custodian', value: ({ id }) => id, whole: true },
    { title: 'kind', value: ({ kind }) => kind },
    { title: 'what', value: about },
  ]);
}

function about({ kind, params }: CustodianAnswer): string {
  switch (kind) {
    case 'keyfile':
      return typeof params.file === 'string' ? params.file : 'beside the data directory';
    case 'shares':
      return `${params.threshold} of ${params.count}, set ${params.set}`;
    case 'passphrase':
      return `argon2id, ${Number(params.m) / 1024} MiB, ${params.t} passes`;
    case 'exec':
      return String(params.command);
    case 'recovery-kit':
      return `made ${String(params.made).slice(0, 10)}`;
    default:
      return '';
  }
}
