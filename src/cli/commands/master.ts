// Commands for the master key and its custodians, including the recovery kit. The secret of a new custodian is made
// here and never sent to the server.

import { join } from 'node:path';
import type { CustodianAnswer, MasterAnswer } from '../../api/local/master.ts';
import { KmsError } from '../../errors.ts';
import type { Cli, CliOf } from '../command.ts';
import { confirm, localDetails } from '../confirm.ts';
import { type Local, withLocal } from '../connect.ts';
import { codeOf, custodianRequest, kitFiles, sayHowToKeep, secretFields, secretPairs, showKit } from '../custodians.ts';
import type { kit, master } from '../grammar/master.ts';
import { say } from '../io.ts';
import { printJson, printTable, printThing, whyNotShown } from '../output.ts';
import { dataDirectory } from '../target.ts';

export async function list(cli: CliOf<typeof master.list>): Promise<void> {
  await withLocal(cli, async ({ ask }) => printMaster(cli, await ask('getMaster')));
}

/** Only the seal file is rewritten; requests do not wait. */
export async function rotate(cli: CliOf<typeof master.rotate>): Promise<void> {
  await withLocal(cli, async ({ ask }) => {
    await printMaster(cli, await ask('rotateMaster'));
    await say(cli.io, 'copies of the old seal file, such as in backups, still open with the custodians that they had');
  });
}

export async function addCustodian(cli: CliOf<typeof master.addCustodian>): Promise<void> {
  const data = await dataDirectory(cli);
  if (cli.get('<KIND>') !== 'keyfile') cli.refuseWithout('the custodian keyfile', ['--file']);
  const file = cli.get('--file') ?? join(data, '..', 'kms-additional.master.key');
  const request = await custodianRequest(cli, cli.get('<KIND>'), 'KIND', { file, make: true });
  const { newCustodian } = await import('../../custody/new-custodian.ts');
  const { sentSlot } = await import('../../appliance/master-handlers.ts');
  await withLocal(cli, async ({ ask }) => {
    const made = await newCustodian(request);
    const { custodian, keyFile } = made;
    const { id, kind, params } = custodian;
    await made.keep();
    const answer = await ask('addCustodian', { body: sentSlot(custodian, await ask('getMaster')) });
    const secrets = secretFields(made);
    const shown = printThing(cli, { ...answer, custodian: { id, kind, params }, ...secrets }, [
      ['master key', answer.fingerprint],
      ['custodian', id],
      ['kind', kind],
      ['key file', keyFile?.place],
      ...secretPairs(made),
    ]);
    await (Object.keys(secrets).length === 0 ? shown : keptOrEnded(ask, id, shown));
    await sayHowToKeep(cli, made);
    if (kind === 'exec') await say(cli.io, 'the command is run at each start: keep it where nobody else can change it');
  });
}

/**
 * Waits until a new custodian's secret is saved, and removes the custodian if that fails: otherwise it would count as
 * able to open the appliance although its secret is lost.
 */
async function keptOrEnded(ask: Local['ask'], id: string, keeping: Promise<void>): Promise<void> {
  try {
    await keeping;
  } catch (cause) {
    const ended = await ask('removeCustodian', { params: { id } }).then(
      () => true,
      () => false,
    );
    if (ended) throw new KmsError('refused', `${whyNotShown(cause)}; no custodian was added`, { cause });
    const left = `the custodian ${id} was added, but its secret is lost`;
    const hint = `kms master remove-custodian ${id}`;
    throw new KmsError('refused', `${whyNotShown(cause)}; ${left}`, { hint, cause });
  }
}

export async function removeCustodian(cli: CliOf<typeof master.removeCustodian>): Promise<void> {
  const id = cli.get('<ID>');
  const details = () =>
    localDetails(cli, async ({ ask }) => {
      const { custodians } = await ask('getMaster');
      const custodian = custodians.find((each) => each.id === id);
      if (custodian) return [[`It is a ${custodian.kind}`, about(custodian)].filter(Boolean).join(': ').concat('.')];
      throw new KmsError('not-found', `there is no custodian ${id}`, { hint: '`kms master list` lists them' });
    });
  await confirm(cli, `ends the custodian ${id}: it can no longer open the appliance`, { of: 'this machine', details });
  await withLocal(cli, async ({ ask }) => {
    await printMaster(cli, await ask('removeCustodian', { params: { id } }));
    await say(
      cli.io,
      'it can still open old copies of the seal file; if it is in the wrong hands, run: kms master rotate',
    );
  });
}

async function printMaster(cli: Cli, answer: MasterAnswer): Promise<void> {
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
    case 'env':
    case 'credential':
      return '';
  }
}

export async function recoveryKit(cli: CliOf<typeof kit.recoveryKit>): Promise<void> {
  const out = cli.get('--output');
  const svg = cli.get('--svg');
  await withLocal(cli, async ({ ask }) => {
    const { newCustodian } = await import('../../custody/new-custodian.ts');
    const { sentSlot } = await import('../../appliance/master-handlers.ts');
    const { recoveryKitText } = await import('../../custody/new-custodian.ts');
    const status = await ask('applianceStatus');
    if (status.sealed) throw new KmsError('sealed', 'the appliance is sealed');
    const { applianceId } = status;
    const { custodian, recoveryCode = '' } = await newCustodian({ kind: 'recovery-kit' });
    const { id, kind, params } = custodian;
    const day = new Date().toISOString().slice(0, 10);
    const managedKeys = status.tenants.map(({ name, counts }) => ({ tenant: name, count: counts.managedKeys }));
    const text = recoveryKitText({ applianceId, id, day, code: recoveryCode, managedKeys });
    const files = await kitFiles(out, svg);
    try {
      const answer = await ask('addCustodian', { body: sentSlot(custodian, await ask('getMaster')) });
      const keep = async (): Promise<void> => {
        await files.commit(text, codeOf(text));
        const shown = { ...answer, custodian: { id, kind, params }, ...(out === undefined && { recoveryKit: text }) };
        if (cli.json) await printJson(cli, shown);
        else if (out === undefined) await showKit(cli, text);
      };
      await keptOrEnded(ask, id, keep());
    } catch (error) {
      await files.discard();
      throw error;
    }
    if (out !== undefined)
      await say(cli.io, `the recovery kit is in ${out}: print it, keep it in a safe, remove the file`);
    if (svg !== undefined) await say(cli.io, `the QR code of the recovery kit is in ${svg}; it opens everything, too`);
  });
}
