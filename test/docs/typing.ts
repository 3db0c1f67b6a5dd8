// Runs the commands of a page in a shell, in order, and compares their output with what the page shows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { CodeApp, sendTo } from '../support/code-app.ts';
import { TokenIssuer } from '../support/token-issuer.ts';
import { type Command, isAsShown, type Step, stepsOf } from './blocks.ts';
import { Shell } from './shell.ts';

/** Maximum number of a page's blocks that are not run; each states why. */
const mostNotRun = 3;

/** Runs a page. Blocks in the languages `elsewhere` are left to another test. */
export async function typePage(page: string, elsewhere?: readonly string[]): Promise<void> {
  const steps = stepsOf(readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8'), elsewhere);
  const notRun = steps.flatMap((step) => (step.kind === 'not-run' ? [step.reason] : []));
  assert.ok(notRun.length <= mostNotRun, `${page}: ${notRun.length} blocks are not run`);
  for (const reason of notRun) assert.ok(reason.length >= 10, reason);
  await typeSteps(page, steps);
}

/** The world that a page assumes. */
export interface Surroundings {
  /** Paths of programs by name. */
  readonly programs: Readonly<Record<string, string>>;
  readonly prepare: (shell: Shell) => Promise<void>;
}

/** Types the steps; those that need programs of others only if `around` brings them. */
export async function typeSteps(
  page: string,
  steps: readonly Step[],
  home?: string,
  around?: Surroundings,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  let shell = stack.use(await Shell.open(home));
  for (const [name, path] of Object.entries(around?.programs ?? {})) shell.link(name, path);
  await around?.prepare(shell);
  const issuers = new Map<string, TokenIssuer>();
  const apps = new Map<string, CodeApp>();
  for (const step of steps) {
    if (step.kind === 'fresh') shell = stack.use(await Shell.open());
    else if (step.kind === 'appliance') await typeOne(page, shell, initialised);
    else if (step.kind === 'stop-server') await shell.stopServers();
    else if (step.kind === 'file') shell.write(step.name, step.text);
    else if (step.kind === 'app') {
      const password = readFileSync(shell.path(`${step.user}.password`), 'utf8').trim();
      apps.set(step.user, await CodeApp.setUp(sendTo(`http://127.0.0.1:${shell.port('8080')}`), step.user, password));
    } else if (step.kind === 'code') shell.write(`${step.user}.code`, `${await apps.get(step.user)?.code()}\n`);
    else if (step.kind === 'token') await signToken(shell, step, issuers);
    else if (step.kind === 'commands' && (step.needs ?? []).every((name) => around?.programs[name] !== undefined))
      for (const command of step.commands) await typeOne(page, shell, command);
  }
}

/** Writes a token for the audience `kms`, and its issuer's keys beside it: `x.token` and `x.jwks`. */
async function signToken(
  shell: Shell,
  { name, claims }: Extract<Step, { kind: 'token' }>,
  issuers: Map<string, TokenIssuer>,
): Promise<void> {
  const iss = String(claims.iss);
  const issuer = issuers.get(iss) ?? (await TokenIssuer.make(Date.now, iss, 'ES256', iss));
  issuers.set(iss, issuer);
  // Without an end of line, which AWS's clients would send along.
  shell.write(name, await issuer.token({ ...claims }));
  shell.write(name.replace(/\.token$/, '.jwks'), JSON.stringify(issuer.jwks));
}

export const initialised: Command = { line: 0, text: 'kms init', shown: [], exitCode: 0 };

export async function typeOne(page: string, shell: Shell, { line, text, shown, exitCode }: Command): Promise<void> {
  const serves = /^(?:\w+=\S+ )*(?:dist\/)?kms (?:serve|standby --from)\b|^\.\/scripts\/start\b/.test(text);
  const isEnough = (output: string): boolean => isAsShown(output, shown, { begins: serves });
  const ended = await (serves ? shell.serve(text, isEnough) : shell.run(text));
  const where = `${page}:${line}: ${text}\n${ended.output}`;
  assert.equal(ended.exitCode, exitCode, where);
  if (shown.length > 0) assert.ok(isEnough(ended.output), where);
}
