// The state of the developer guide before its chapters on other languages: a served appliance, a ring with its private
// key, an API key in a file, and an encrypted file.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { type ServedDesk, servedDesk } from '../cli/served.ts';

const guide = readFileSync(new URL('../../docs/guide-developer.md', import.meta.url), 'utf8');

export interface GuideDesk extends ServedDesk {
  /** Output of a program, which must succeed. */
  run(command: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string>;
}

export async function guideDesk(): Promise<GuideDesk> {
  const desk = await servedDesk();
  for (const command of [
    'keyring create payroll --kem x25519 --private-key-out payroll.pem',
    'account create payroll-app',
    'apikey create --account payroll-app --flag keyring.payroll.encrypt --flag keyring.payroll.decrypt --secret-out payroll.apikey',
  ]) {
    const { code, stderr } = await desk.kms(command);
    assert.equal(code, 0, stderr);
  }
  await writeFile(desk.path('salaries.txt'), '42 people, 42 salaries\n');
  assert.equal(
    (await desk.kms('encrypt --ring payroll --private-key payroll.pem -o salaries.kms salaries.txt')).code,
    0,
  );
  return {
    ...desk,
    async run(command, args, env = {}) {
      const all = { PATH: process.env.PATH, HOME: desk.dir, ...env };
      const { stdout, stderr } = await promisify(execFile)(command, [...args], { cwd: desk.dir, env: all });
      return stdout + stderr;
    },
  };
}

/** The only program of the guide in that language, for an appliance at this address. */
export function programOf(language: string, url: string): string {
  const found = [...guide.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))];
  assert.equal(found.length, 1);
  return (found[0]?.[1] ?? '').replaceAll('http://127.0.0.1:8080', url);
}

/** The words of the guide's command with this beginning. */
export function commandOf(beginning: string): readonly string[] {
  const line = guide.split('\n').find((each) => each.startsWith(`$ ${beginning}`)) ?? assert.fail(beginning);
  return line.slice(2).split(' ');
}
