// The built executable as a user runs it: commands with their output, and a server that can be killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

export const executable = fileURLToPath(new URL('../../dist/kms', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A directory for each test file, removed at its end. */
export function workDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'kms-executable-'));
  after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function environment(cwd: string, more: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: cwd, XDG_CONFIG_HOME: join(cwd, 'config'), ...more };
}

/** Runs a command. `killAfter`: milliseconds after which it is killed; `stdin`: its input. */
export function kms(
  cwd: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
  killAfter?: number,
  stdin = '',
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(executable, args, { cwd, env: environment(cwd, more), stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.on('error', () => {}).end(stdin);
    const killer = killAfter === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfter);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(killer);
      resolve({ code, stdout, stderr });
    });
  });
}

export interface RunningServer {
  readonly url: string;
  /** The root API key, if the directory was new. */
  readonly apiKey: string | undefined;
  /** All its output so far, including the log. */
  output(): string;
  /** Ends it with the given signal; returns its exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

export function serve(
  cwd: string,
  args: readonly string[] = [],
  more: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const child = spawn(executable, ['serve', '--listen', '127.0.0.1:0', ...args], {
    cwd,
    env: environment(cwd, more),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  after(() => child.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  return new Promise((resolve, reject) => {
    let text = '';
    const look = (chunk: Buffer): void => {
      text += chunk;
      const url = /listening on (http\S+)(?: \(.*\))?\n/.exec(text)?.[1];
      if (url)
        resolve({
          url,
          apiKey: /kms_[0-9A-Za-z]{49}/.exec(text)?.[0],
          output: () => text,
          end: (signal) => end(child, ended, signal),
        });
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.on('close', (code) => reject(new Error(`kms serve ended with ${code}: ${text}`)));
  });
}

function end(child: ChildProcess, ended: Promise<number | null>, signal: NodeJS.Signals): Promise<number | null> {
  child.kill(signal);
  return ended;
}

/** Sends requests with an API key and, if given, a JSON body. */
export function asker(apiKey: string) {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  return (url: string, method: 'GET' | 'POST', body?: object): Promise<Response> =>
    fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}
