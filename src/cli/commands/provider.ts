// The provider of OpenTofu and Terraform, which they start under the name `terraform-provider-kms`, and its
// installation. See docs/guide-opentofu.md.
import { readlink, rename, symlink, unlink } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { KmsError, systemCode } from '../../errors.ts';
import { version } from '../../version.ts';
import type { Cli, CliOf } from '../command.ts';
import { sentenceOf } from '../exit.ts';
import { fileError } from '../files.ts';
import type { tofuProvider } from '../grammar/other-software.ts';
import { pathFrom, say } from '../io.ts';
import { printJson, printLine } from '../output.ts';
import { servePlugin } from '../provider/handshake.ts';
import { kmsProvider } from '../provider/kms-provider.ts';
import { providerCalls } from '../provider/service.ts';

/** Source address of the provider. Its host is no registry: OpenTofu finds it in a file system mirror. */
const source = 'kms.internal/kms/kms';

const fileName = 'terraform-provider-kms';

/** Machines in the words of Go. */
const machines: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

export async function install(cli: CliOf<typeof tofuProvider.install>): Promise<void> {
  const { isSingleExecutable } = await import('../../platform/program-files.ts');
  if (!isSingleExecutable()) {
    throw new KmsError('refused', 'this is not an executable of kms, but its sources', {
      hint: 'run `kms tofu-provider install` with the executable',
    });
  }
  const executable = pathFrom(cli.io, process.execPath);
  const mirror = cli.get('--dir') ?? join(cli.io.home, '.terraform.d', 'plugins');
  const directory = join(mirror, source, version, `${platform()}_${machines[arch()] ?? arch()}`);
  const path = join(directory, fileName);
  const { makeDirs } = await import('../../platform/data-dir.ts');
  await makeDirs(directory).catch((error) => {
    throw fileError('make the directory', directory, error);
  });
  await symlink(executable, path).catch(async (error) => {
    if (systemCode(error) !== 'EEXIST') throw fileError('write', path, error);
    await replaceLink(executable, path);
  });
  if (cli.json) return printJson(cli, { path, executable, source, version });
  await printLine(cli, `${path} is ${executable}`);
  await say(cli.io, `in required_providers: kms = { source = "${source}", version = "${version}" }`);
}

/** Another executable of kms may be the provider by now; anything else is not overwritten. */
async function replaceLink(executable: string, path: string): Promise<void> {
  const target = await readlink(path).catch(() => undefined);
  if (target === executable) return;
  if (target === undefined) {
    throw new KmsError('refused', `${path} exists already and is not overwritten`, { hint: 'move it away first' });
  }
  const draft = `${path}.new`;
  try {
    await unlink(draft).catch(() => undefined);
    await symlink(executable, draft);
    await rename(draft, path);
  } catch (error) {
    throw fileError('write', path, error);
  }
}

/** Serves until OpenTofu ends it. */
export async function provide(cli: Cli): Promise<void> {
  const { provider, close } = kmsProvider(cli);
  try {
    await servePlugin(cli, providerCalls(provider), (error) => void say(cli.io, sentenceOf(error)));
  } finally {
    await close();
  }
}
