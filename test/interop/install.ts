// Installs each client on this machine: by its own package manager, at a fixed version, into a directory of its own
// (`KMS_INTEROP` names another). Caches of Go, pip and Maven stay in their usual places. Debian's packages belong to
// the system: they are installed if allowed, and used as they are. Concurrent installations into the same directory
// wait for each other, and an interrupted one is not mistaken for complete.
import { type ExecFileException, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { paths } from '../../build/paths.ts';
import { lastOf } from './desk.ts';

/** A client that can't be installed here. */
export class Absent extends Error {}

const place = process.env.KMS_INTEROP || join(paths.root, '.cache/interop');
const programs = fileURLToPath(new URL('programs', import.meta.url));

/** Limited to an hour: most of them take a few minutes to compile, the API server of Kubernetes more. */
function run(program: string, args: readonly string[], cwd = place, env: Record<string, string> = {}): Promise<string> {
  mkdirSync(place, { recursive: true });
  return new Promise((resolve, reject) => {
    const options = { cwd, env: { ...process.env, ...env }, timeout: 3_600_000, maxBuffer: 64 << 20 };
    execFile(program, [...args], options, (error: ExecFileException | null, stdout, stderr) => {
      if (!error) resolve(stdout);
      else
        reject(new Absent(`${program} ${args.join(' ').slice(0, 100)}: ${whyOf(stderr || stdout || error.message)}`));
    });
  });
}

/** Maven reports the cause first; others report it last. */
function whyOf(text: string): string {
  const errors = text.split('\n').filter((line) => line.includes('[ERROR] '));
  return errors.length > 0 ? errors.slice(0, 3).join(' | ') : lastOf(text);
}

/** Builds a program of our own: a compile error is our fault, and not `Absent`. */
function compile(...args: Parameters<typeof run>): Promise<string> {
  return run(...args).catch((error: Error) => {
    throw new Error(error.message);
  });
}

/** Path of a system program; undefined if it is not installed. */
export function found(name: string): string | undefined {
  const directories = `${process.env.PATH ?? ''}${delimiter}/usr/local/go/bin${delimiter}/usr/sbin${delimiter}/sbin`;
  return directories
    .split(delimiter)
    .map((directory) => join(directory, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function needed(name: string, brings: string): string {
  const path = found(name);
  if (!path) throw new Absent(`${name} was not found: ${brings}`);
  return path;
}

/**
 * Runs `work` under a lock across processes. A child process holds the lock, and ends and releases it with this
 * process, however that ends.
 */
async function alone<T>(work: () => Promise<T>): Promise<T> {
  mkdirSync(place, { recursive: true });
  const flock = needed('flock', 'Debian has util-linux');
  const holder = spawn(flock, [join(place, '.lock'), 'sh', '-c', 'echo; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(holder, 'close');
  try {
    const [begun] = await Promise.race([once(holder.stdout, 'data'), ended.then(() => [undefined])]);
    if (begun === undefined) throw new Error(`flock did not lock ${place}`);
    return await work();
  } finally {
    holder.stdin.end();
    holder.stdout.resume();
    await ended;
  }
}

/** Installs into a draft directory, which gets its name once it is complete. */
async function whole(directory: string, install: (draft: string) => Promise<unknown>): Promise<void> {
  const draft = `${directory}.new`;
  for (const each of [draft, directory]) rmSync(each, { recursive: true, force: true });
  await install(draft);
  renameSync(draft, directory);
}

const go = (): string => process.env.KMS_GO || needed('go', 'it comes with Go');

/** A program of a module that can be installed directly, such as `filippo.io/age/cmd/age`. */
export async function goProgram(command: string, version: string): Promise<string> {
  const name = command.split('/').at(-1) ?? command;
  const directory = join(place, 'go', `${name}@${version}`);
  const path = join(directory, name);
  const args = ['install', '-trimpath', `${command}@${version}`];
  await alone(async () => {
    if (!existsSync(path)) await whole(directory, (draft) => run(go(), args, place, { GOBIN: draft }));
  });
  return path;
}

/** A program of a module of which no versions are listed, so that it is built as a tool of a module made for it. */
export async function goToolProgram(module: string, command: string, version: string): Promise<string> {
  const name = command.split('/').at(-1) ?? command;
  const directory = join(place, 'go', `${name}@${version}`);
  const path = join(directory, name);
  await alone(async () => {
    if (existsSync(path)) return;
    await whole(directory, async (draft) => {
      mkdirSync(draft, { recursive: true });
      await run(go(), ['mod', 'init', 'kms/tool'], draft);
      await run(go(), ['get', '-tool', `${module}/${command}@${version}`], draft);
      await run(go(), ['build', '-trimpath', '-buildvcs=false', '-o', name, `${module}/${command}`], draft);
    });
  });
  return path;
}

/** A program of a module with `replace` directives in its go.mod, built in its unpacked source. */
export async function goModuleProgram(module: string, version: string, command: string): Promise<string> {
  const name = command.split('/').at(-1) ?? command;
  const directory = join(place, 'go', `${name}@${version}`);
  const path = join(directory, name);
  await alone(async () => {
    if (existsSync(path)) return;
    const told = await run(go(), ['mod', 'download', '-json', `${module}@${version}`]);
    const unpacked = JSON.parse(told) as { Dir: string };
    const build = ['build', '-trimpath', '-buildvcs=false', '-o'];
    await whole(directory, (draft) => run(go(), [...build, join(draft, name), command], unpacked.Dir));
  });
  return path;
}

/**
 * The directory of Kubernetes programs, such as `kube-apiserver`. Its go.mod replaces its parts by directories that its
 * module lacks: their published modules are used instead. Takes two gigabytes of Go's caches.
 */
export async function kubernetesPrograms(version: string, ...names: readonly string[]): Promise<string> {
  const directory = join(place, 'go', `kubernetes@${version}`);
  await alone(async () => {
    if (names.every((name) => existsSync(join(directory, name)))) return;
    const told = await run(go(), ['mod', 'download', '-json', `k8s.io/kubernetes@${version}`]);
    const unpacked = JSON.parse(told) as { Dir: string };
    const text = readFileSync(join(unpacked.Dir, 'go.mod'), 'utf8');
    await whole(directory, (draft) => {
      mkdirSync(draft, { recursive: true });
      const mod = join(draft, 'kubernetes.mod');
      writeFileSync(mod, text.replace(/=> \.\/staging\/src\/(\S+)/g, `=> $1 ${version.replace(/^v1/, 'v0')}`));
      writeFileSync(join(draft, 'kubernetes.sum'), readFileSync(join(unpacked.Dir, 'go.sum')));
      const flags = `-s -w -X k8s.io/component-base/version.gitVersion=${version}`;
      const build = ['build', '-mod=mod', `-modfile=${mod}`, '-trimpath', '-buildvcs=false', '-ldflags', flags];
      const commands = names.map((name) => `./cmd/${name}`);
      return run(go(), [...build, '-o', `${draft}/`, ...commands], unpacked.Dir, { GOWORK: 'off' });
    });
  });
  return directory;
}

/**
 * A program of test/interop/programs/go, or of another module beside it, built with a library. Built each time, which is
 * instant if nothing changed.
 */
export async function goLibraryProgram(name: string, module = 'go'): Promise<string> {
  const path = join(place, 'go', name);
  await alone(async () => {
    await run(go(), ['mod', 'download'], join(programs, module));
    await compile(go(), ['build', '-trimpath', '-buildvcs=false', '-o', path, `./${name}`], join(programs, module));
  });
  return path;
}

/** The version of a library that test/interop/programs/go, or another module beside it, is built with. */
export async function goVersion(library: string, module = 'go'): Promise<string> {
  return (await run(go(), ['list', '-m', '-f', '{{.Version}}', library], join(programs, module))).trim();
}

/** The version of Go, whose standard library is under test. */
export async function goItself(): Promise<string> {
  return (await run(go(), ['env', 'GOVERSION'])).trim();
}

/** The programs' directory of a virtual environment with these packages, each `NAME==VERSION`. */
export async function pythonPrograms(...packages: readonly string[]): Promise<string> {
  const environment = join(place, packages.join('+'));
  const bin = join(environment, 'bin');
  await alone(async () => {
    // Not moved into place: an environment contains its own path.
    if (existsSync(join(bin, '.complete'))) return;
    rmSync(environment, { recursive: true, force: true });
    await run(needed('python3', 'Debian has python3 and python3-venv'), ['-m', 'venv', environment]);
    await run(join(bin, 'pip'), ['--quiet', '--disable-pip-version-check', 'install', ...packages]);
    mkdirSync(join(bin, '.complete'));
  });
  return bin;
}

/** The directory of `node_modules` with these packages, each `NAME@VERSION`. */
export async function nodeModules(...packages: readonly string[]): Promise<string> {
  const directory = join(place, packages.join('+').replaceAll('/', '_'));
  const npm = needed('npm', 'it comes with Node.js');
  const install = ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix'];
  await alone(async () => {
    if (existsSync(directory)) return;
    await whole(directory, (draft) => {
      mkdirSync(draft, { recursive: true });
      return run(npm, [...install, draft, ...packages], draft);
    });
  });
  return directory;
}

/**
 * The command that runs the program of test/interop/programs/java, built with a Maven library: `java` and its
 * arguments.
 */
export async function mavenProgram(main: string): Promise<readonly [string, ...string[]]> {
  const java = needed('java', 'Debian has default-jdk-headless');
  const maven = needed('mvn', 'Debian has maven');
  const target = join(place, 'java');
  const project = [
    '--quiet',
    '--batch-mode',
    '-Dstyle.color=never',
    '-f',
    join(programs, 'java', 'pom.xml'),
    `-Dinterop.target=${target}`,
  ];
  await alone(async () => {
    await run(maven, [...project, 'process-resources', 'dependency:resolve']);
    await compile(maven, [...project, 'compile']);
  });
  return [java, '-cp', `${join(target, 'classes')}${delimiter}${join(target, 'libraries')}/*`, main];
}

/** A program of test/interop/programs in Rust, built with a library. Built each time, which is instant if nothing changed. */
export async function rustProgram(name: string): Promise<string> {
  const cargo = needed('cargo', 'it comes with Rust');
  const target = join(place, 'rust');
  await alone(async () => {
    const project = ['--quiet', '--locked', '--manifest-path', join(programs, name, 'Cargo.toml')];
    await run(cargo, ['fetch', ...project]);
    await compile(cargo, ['build', ...project, '--target-dir', target]);
  });
  return join(target, 'debug');
}

/** Programs of Debian's packages, which are installed if they are missing and this user may do so. */
export async function debianPrograms(programs: Readonly<Record<string, string>>): Promise<void> {
  const missing = (): string[] => {
    const absent = Object.entries(programs).filter(([program]) => !found(program));
    return [...new Set(absent.map(([, name]) => name))];
  };
  if (missing().length === 0) return;
  if (process.getuid?.() !== 0 || !found('apt-get')) throw new Absent(`install ${missing().join(', ')}`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  await alone(async () => {
    const packages = missing();
    if (packages.length === 0) return;
    await run('apt-get', ['update'], '/', env);
    await run('apt-get', ['install', '-y', '--no-install-recommends', ...packages], '/', env);
  });
}

export async function debianVersion(name: string): Promise<string> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own words
  return run('dpkg-query', ['-W', '-f', '${Version}', name], '/').catch(() => 'not of Debian');
}
