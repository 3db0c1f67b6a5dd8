// Self-signed certificates for HTTPS, for use without an authority.

import { join, resolve } from 'node:path';
import type { CliOf } from '../command.ts';
import { fileError, type NewFile, newFile } from '../files.ts';
import type { tls } from '../grammar/tls.ts';
import { say } from '../io.ts';
import { printThing } from '../output.ts';

const usualDays = 397;
/** About ten years. */
const mostDays = 3660;

export async function selfSigned(cli: CliOf<typeof tls.selfSigned>): Promise<void> {
  const hosts = cli.get('--host');
  const days = cli.get('--days') ?? usualDays;
  if (days < 1 || days > mostDays) {
    throw cli.wrong(`--days: expected 1 to ${mostDays}, got ${days}`);
  }
  const dir = cli.get('--out') ?? resolve(cli.io.cwd);
  const { selfSigned } = await import('../../platform/self-signed.ts');
  const { cert, key, fingerprint, notAfter } = await selfSigned(hosts, days, new Date());
  const { makeDirs } = await import('../../platform/data-dir.ts');
  await makeDirs(dir).catch((error: unknown) => {
    throw fileError('write', dir, error);
  });
  const files = { certificate: join(dir, 'cert.pem'), key: join(dir, 'key.pem') };
  const made = [await draft(files.key, key, 0o600)];
  try {
    // World-readable: every client that is to trust it needs it.
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
