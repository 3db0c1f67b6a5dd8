// Client certificates as proofs of API keys, on the command line: one that there is, an authority and a name, or one
// that the appliance issues into a directory.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { InputOf } from '../../client/client.ts';
import { type CliOf, given } from '../command.ts';
import { fileError, type NewFile, newFile, readSmallText } from '../files.ts';
import type { proof } from '../grammar/proof.ts';
import { pathFrom } from '../io.ts';

type AddCli = CliOf<typeof proof.add>;

export const ofCertificates = ['--san', '--file', '--issue', '--out', '--days'] as const;

/** Fields of a proof by certificates. Throws `usage` unless it is one of the three ways. */
export async function certificateFrom(cli: AddCli): Promise<Partial<InputOf<'addProof'>>> {
  const file = cli.get('--file');
  const ca = cli.get('--ca');
  const issue = cli.get('--issue');
  if ([file !== undefined, ca !== undefined, issue].filter(Boolean).length !== 1) {
    throw cli.wrong('expected --file CERT, --ca FILE with --san NAME, or --issue with --out DIR');
  }
  if (ca !== undefined && cli.get('--san') === undefined)
    throw cli.wrong('--san is missing: the name in the certificates');
  if (ca === undefined && cli.isTyped('--san')) throw cli.wrong('--san goes with --ca');
  if (issue && cli.get('--out') === undefined) throw cli.wrong('--out is missing: the directory for the certificate');
  const idle = (['--out', '--days'] as const).find((option) => !issue && cli.isTyped(option));
  if (idle !== undefined) throw cli.wrong(`${idle} goes with --issue`);
  const read = (path: string, what: string) => readSmallText(pathFrom(cli.io, path), what);
  return given({
    certificate: file === undefined ? undefined : await read(file, 'the certificate'),
    ca: ca === undefined ? undefined : await read(ca, 'the authority'),
    san: cli.get('--san'),
    issue: issue || undefined,
    days: cli.get('--days'),
  });
}

interface Issued {
  readonly certificate?: string;
  readonly privateKey?: string;
  readonly caCertificate?: string;
}

interface IssuedFiles {
  keep(issued: Issued): Promise<void>;
  discard(): Promise<void>;
}

/** New files for an issued certificate, before it is issued: a key that cannot be saved is useless. */
export async function filesFor(cli: AddCli, out: string): Promise<IssuedFiles> {
  const directory = pathFrom(cli.io, out);
  await mkdir(directory, { recursive: true, mode: 0o700 }).catch((error) => {
    throw fileError('write', directory, error);
  });
  const files: NewFile[] = [];
  const discard = async (): Promise<void> => {
    for (const each of files) await each.discard();
  };
  try {
    for (const [name, mode] of [
      ['client.crt', 0o644],
      ['client.key', 0o600],
      ['ca.crt', 0o644],
    ] as const) {
      files.push(await newFile(join(directory, name), mode));
    }
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    discard,
    async keep({ certificate = '', privateKey = '', caCertificate = '' }) {
      const texts = [certificate, privateKey, caCertificate];
      for (const [n, each] of files.entries()) {
        await each.handle.writeFile(texts[n] ?? '');
        await each.commit();
      }
    },
  };
}
