// `kms licenses`: whose work is in the executable, and under which licences.
import type { Cli } from '../cli.ts';
import { write } from '../io.ts';
import { printJson } from '../output.ts';

interface ThirdParty {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string;
  readonly text: string;
}

const rule = '='.repeat(80);

export async function run(cli: Cli): Promise<void> {
  const { attribution } = await import('../../server/runtime.ts');
  const { thirdParties, sbom } = await attribution();
  if (cli.isOn('--sbom')) return write(cli.io.stdout, sbom);
  // The build wrote it.
  const parts: readonly ThirdParty[] = JSON.parse(thirdParties);
  if (cli.json)
    return printJson(cli, { data: parts.map(({ name, version, license }) => ({ name, version, license })) });
  const list = parts.map(({ name, version, license }) => `  ${name} ${version}: ${license}\n`);
  const texts = parts.map(({ name, version, text }) => `\n${rule}\n${name} ${version}\n\n${text.trimEnd()}\n`);
  await write(cli.io.stdout, `kms is licensed under Apache-2.0. In it are:\n${list.join('')}${texts.join('')}`);
}
