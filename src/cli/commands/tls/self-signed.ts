// `kms tls self-signed`: certificate and key for `serve`, where no authority is at hand.
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { KmsError } from '../../../errors.ts';
import type { Cli } from '../../cli.ts';
import { fileError, type NewFile, newFile } from '../../files.ts';
import { say } from '../../io.ts';
import { printThing } from '../../output.ts';

const usualDays = 397;
/** Some ten years. */
const mostDays = 3660;

export async function run(cli: Cli): Promise<void> {
  const hosts = cli.list('--host');
  if (hosts.length === 0) throw new KmsError('usage', '--host is missing', { hint: cli.seeHelp });
  const days = cli.integer('--days') ?? usualDays;
  if (days < 1 || days > mostDays) {
    throw new KmsError('usage', `--days: expected 1 to ${mostDays}, got ${days}`, { hint: cli.seeHelp });
  }
  const dir = cli.path('--out') ?? resolve(cli.io.cwd);
  const { selfSigned } = await import('../../../server/self-signed.ts');
  const { cert, key, fingerprint, notAfter } = await selfSigned(hosts, days, new Date());
  await mkdir(dir, { recursive: true }).catch((error: unknown) => {
    throw fileError('write', dir, error);
  });
  const files = { certificate: join(dir, 'cert.pem'), key: join(dir, 'key.pem') };
  const made = [await draft(files.key, key, 0o600)];
  try {
    // Everybody may have it: whoever is to trust it needs it.
    made.push(await draft(files.certificate, cert, 0o644));
    for (const file of made) await file.commit();
  } catch (error) {
    for (const file of made) await file.discard();
    throw error;
  }
  const json = { ...files, hosts, fingerprint, notAfter: notAfter.toISOString() };
  await printThing(cli, json, [
    ['certificate', files.certificate],
    ['key', files.key],
    ['hosts', hosts.join(' ')],
    ['fingerprint', fingerprint],
    ['until', notAfter.toISOString()],
  ]);
  if (cli.json) return;
  await say(cli.io, `next: \`kms serve --listen 0.0.0.0:8443 --tls-cert ${files.certificate} --tls-key ${files.key}\``);
  await say(cli.io, 'hand cert.pem to those who are to trust it: `kms --ca-file cert.pem`, `curl --cacert cert.pem`');
}

async function draft(path: string, text: string, mode: number): Promise<NewFile> {
  const file = await newFile(path, mode, 'move it away, or choose another directory with --out');
  try {
    await file.handle.chmod(mode);
    await file.handle.writeFile(text);
    return file;
  } catch (error) {
    await file.discard();
    throw fileError('write', path, error);
  }
}
