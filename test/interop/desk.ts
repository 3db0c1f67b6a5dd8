// An appliance in a process of its own, as served to other software, and everything clients need to work with it:
// tokens, environments, files, and `kms` commands.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Recorder } from './recording.ts';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
}

type Env = Readonly<Record<string, string>>;

export interface Desk {
  /** Working directory, removed at the end. */
  readonly dir: string;
  /** Address of the Vault-compatible listener. */
  readonly address: string;
  /** URL of the Tang listener. */
  readonly tang: string;
  /** URL of the listener for clients of AWS KMS. */
  readonly awsAddress: string;
  /** URL of the native API. */
  readonly url: string;
  readonly root: { readonly key: string; readonly keyid: string };
  path(...parts: string[]): string;
  write(name: string, text: string | Uint8Array): string;
  /** Runs `kms` with these arguments on this appliance, with all rights. Throws unless it exits with 0. */
  kms(...args: string[]): Promise<string>;
  /** Runs a program with these arguments. Throws unless it exits with 0. */
  run(program: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
  /** Runs a program that must exit with another code than 0. */
  refused(program: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
  /** Starts a program that runs until `end`, in a process group of its own. */
  start(program: string, args: readonly string[], options?: RunOptions): Started;
  /** Makes an API key with exactly these flags. */
  token(...flags: string[]): Promise<{ readonly key: string; readonly keyid: string }>;
  /** Environment for Vault clients. */
  vault(token: string): Env;
  /** Environment for AWS's clients, with the access key of a new API key that has exactly these flags. */
  aws(...flags: string[]): Promise<Env>;
  /** Environment for `kms` and its plugins, with a directory at the front of PATH for their programs. */
  own(key: string): Env;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Started {
  output(): string;
  /** Resolves once `look` succeeds. Throws if the program ends first, or after a minute. */
  until(what: string, look: () => Promise<unknown>): Promise<void>;
  end(): Promise<void>;
}

/**
 * Opens a desk. `program` is the executable, or the command that runs it from the sources; `recorder` receives the
 * clients' requests.
 */
export async function openDesk(program: readonly [string, ...string[]], recorder?: Recorder): Promise<Desk> {
  const dir = mkdtempSync(join(tmpdir(), 'kms-interop-'));
  const path = (...parts: string[]): string => join(dir, ...parts);
  mkdirSync(path('home'));
  mkdirSync(path('bin'));
  const data = path('kms-data');
  const [command, ...before] = program;
  // Clients see nothing of the caller's environment except PATH, certificates and Go's caches.
  const base: Env = {
    PATH: `${path('bin')}${delimiter}${process.env.PATH ?? ''}${delimiter}/usr/sbin${delimiter}/sbin`,
    HOME: path('home'),
    LC_ALL: 'C.UTF-8',
    TMPDIR: tmpdir(),
  };
  writeFileSync(path('bin', 'kms'), `#!/bin/sh\nexec ${program.map((part) => `'${part}'`).join(' ')} "$@"\n`, {
    mode: 0o755,
  });
  const children = new Set<Started>();

  function run(name: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const { env = {}, cwd = dir, stdin = '' } = options;
    return new Promise((resolve, reject) => {
      const settings = { cwd, env: { ...base, ...env }, timeout: 240_000, maxBuffer: 64 << 20 };
      const child = execFile(name, [...args], settings, (error, stdout, stderr) => {
        const { code } = error ?? { code: 0 };
        if (typeof code === 'number') resolve({ code, stdout, stderr });
        else if (error) reject(new Error(`${name} ${args[0] ?? ''}: ${error.message}: ${stderr}`));
      });
      child.stdin?.on('error', () => {}).end(stdin);
    });
  }

  function start(name: string, args: readonly string[], options: RunOptions = {}): Started {
    const { env = {}, cwd = dir } = options;
    const child: ChildProcess = spawn(name, [...args], {
      cwd,
      env: { ...base, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()).once('error', () => resolve()));
    let said = '';
    const hear = (chunk: Buffer): void => {
      said += chunk;
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    child.on('error', (error) => {
      said += error.message;
    });
    const started: Started = {
      output: () => said,
      async until(what, look) {
        for (const end = Date.now() + 60_000; Date.now() < end; await delay(100)) {
          if (await look().catch(() => undefined)) return;
          if (child.exitCode !== null || child.signalCode !== null) break;
        }
        throw new Error(`never: ${what}: ${lastOf(said)}`);
      },
      async end() {
        children.delete(started);
        child.kill('SIGTERM');
        const killer = setTimeout(() => child.kill('SIGKILL'), 20_000);
        await ended;
        clearTimeout(killer);
      },
    };
    children.add(started);
    return started;
  }

  async function succeeded(name: string, args: readonly string[], options?: RunOptions): Promise<Ran> {
    const ran = await run(name, args, options);
    if (ran.code === 0) return ran;
    const words = [name.split('/').at(-1), ...args].join(' ').slice(0, 200);
    throw new Error(`${words} ended with ${ran.code}: ${lastOf(ran.stderr || ran.stdout)}`);
  }

  const close = async (): Promise<void> => {
    await Promise.all([...children].reverse().map((child) => child.end()));
    rmSync(dir, { recursive: true, force: true });
  };

  try {
    const made = JSON.parse((await succeeded(command, [...before, 'init', '--data', data, '--json'])).stdout) as {
      apiKey: { key: string; keyid: string };
    };
    const listen = ['--listen', '--vault-listen', '--aws-listen', '--tang-listen'].flatMap((each) => [
      each,
      '127.0.0.1:0',
    ]);
    const server = start(command, [...before, 'serve', '--data', data, '--log-level', 'warn', ...listen]);
    await server.until('the appliance serves', async () => /Tang: listening/.test(server.output()));
    const [, url = ''] = /kms: listening on (http\S+)/.exec(server.output()) ?? [];
    const [, transit = ''] = /Vault: listening on (http\S+)/.exec(server.output()) ?? [];
    const [, awsKms = ''] = /AWS KMS: listening on (http\S+)/.exec(server.output()) ?? [];
    const [, tang = ''] = /Tang: listening on (http\S+)/.exec(server.output()) ?? [];
    const address = recorder ? await recorder.between(transit) : transit;
    const awsAddress = recorder ? await recorder.watch(awsKms) : awsKms;
    recorder?.name(made.apiKey.key, 'root');
    recorder?.name(made.apiKey.keyid, 'root id');
    recorder?.take();
    const own = (key: string): Env => ({ KMS_SERVER: url, KMS_API_KEY: key });
    const kms = async (...args: string[]): Promise<string> => {
      if (args[0] === 'key') recorder?.commanded(args.join(' '));
      return (await succeeded(command, [...before, ...args], { env: own(made.apiKey.key) })).stdout;
    };
    let accounts = 0;
    const token: Desk['token'] = async (...flags) => {
      const account = `client-${++accounts}`;
      await kms('account', 'create', account);
      const all = flags.flatMap((flag) => ['--flag', flag]);
      const apiKey = JSON.parse(await kms('apikey', 'create', '--account', account, ...all, '--json'));
      recorder?.tokenMade(apiKey.key, flags);
      return apiKey;
    };
    return {
      dir,
      address,
      awsAddress,
      tang,
      url,
      root: made.apiKey,
      path,
      write(name, text) {
        writeFileSync(path(name), text, { mode: 0o600 });
        return path(name);
      },
      kms,
      run: succeeded,
      async refused(name, args, options) {
        const ran = await run(name, args, options);
        if (ran.code === 0) throw new Error(`${name.split('/').at(-1)} ${args.join(' ')}: expected a refusal`);
        return ran;
      },
      start,
      token,
      async aws(...flags) {
        const { keyid } = await token(...flags);
        const made = JSON.parse(await kms('apikey', 'proof', 'add', keyid, 'aws', '--json'));
        return {
          AWS_ENDPOINT_URL_KMS: awsAddress,
          AWS_ACCESS_KEY_ID: made.accessKeyId,
          AWS_SECRET_ACCESS_KEY: made.secretAccessKey,
          AWS_REGION: 'us-east-1',
        };
      },
      vault: (token) => ({ VAULT_ADDR: address, VAULT_TOKEN: token, BAO_ADDR: address, BAO_TOKEN: token }),
      own,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The end of a program's output, on one line. */
export function lastOf(text: string): string {
  return text.trim().split('\n').slice(-6).join(' | ').slice(-800);
}

export function expect(actual: string, expected: RegExp): void {
  if (!expected.test(actual)) throw new Error(`expected ${expected}, got ${lastOf(actual)}`);
}
