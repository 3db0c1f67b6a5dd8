// Builds dist/kms, dist/client and the client's package: bundles the sources, injects them and their assets into a copy
// of the Node that runs this script, and checks that the result starts. Run by scripts/build.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { type Bundles, bundle } from './bundle.ts';
import { buildClient, packClient } from './client.ts';
import { asFunction, program, rehearsal, rehearsalFlags, rehearsed, starter, tellNodesCaches } from './code-cache.ts';
import { digestOfInputs } from './inputs.ts';
import { paths } from './paths.ts';
import { dropLanguages } from './without-languages.ts';
import { dropLibatomic } from './without-libatomic.ts';

const say = (line: string): void => void process.stderr.write(`kms: ${line}\n`);

async function main(): Promise<void> {
  const digest = digestOfInputs();
  if (isCurrent(digest)) return;
  const started = performance.now();
  say('building dist/kms');
  mkdirSync(paths.work, { recursive: true });
  const bundles = await bundle();
  await makeExecutable(bundles, runtime());
  await buildClient(paths.client);
  packClient(paths.client, paths.dist);
  writeFileSync(paths.stamp, digest);
  const size = Math.round(statSync(paths.executable).size / 1e6);
  say(`built dist/kms, ${size} MB, and the client library in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

function isCurrent(digest: string): boolean {
  const outputs = [paths.executable, paths.client, paths.clientPackage, paths.stamp];
  return outputs.every((each) => existsSync(each)) && readFileSync(paths.stamp, 'utf8') === digest;
}

/**
 * A stripped copy of this Node that needs fewer system libraries, or this Node itself if the copy can't be made or
 * doesn't run.
 */
function runtime(): string {
  const copy = join(paths.work, `node-${process.version}-${process.arch}`);
  if (existsSync(copy)) return copy;
  const draft = `${copy}.${process.pid}`;
  copyFileSync(process.execPath, draft);
  chmodSync(draft, 0o755);
  spawnSync('strip', ['--strip-all', draft], { stdio: 'ignore' });
  const bytes = readFileSync(draft);
  if (dropLibatomic(bytes)) writeFileSync(draft, bytes);
  else say('note: dist/kms may need libatomic.so.1 (Debian: libatomic1) where it runs');
  if (spawnSync(draft, ['--version'], { encoding: 'utf8' }).stdout?.trim() !== process.version) {
    say('note: the runtime could be made neither smaller nor less demanding; it is used as it is');
    copyFileSync(process.execPath, draft);
  }
  renameSync(draft, copy);
  return copy;
}

const execArgv = [
  '--no-warnings',
  // No signal starts a debugger.
  '--disable-sigusr1',
  // Little survives a scavenge: a larger young generation without helper threads makes collections fewer and cheaper.
  // With 32 the process keeps 30 MB more, and as much again in buffers that are no longer needed.
  '--max-semi-space-size=16',
  '--no-parallel-scavenge',
  // V8 pretenures allocation sites whose objects once survived. Here that would keep all a request's objects alive
  // until old memory is collected, and each scavenge would take up to four times as long.
  '--no-allocation-site-pretenuring',
  // Each helper thread of the compiler and the collector costs some MB; on few cores more of them gain nothing.
  '--v8-pool-size=1',
  // SQLite's functions are optimised once they have run for a while, not at every start: that takes 35 to 70 ms of a
  // processor, and 8 MB that the compiler's thread keeps. Each call counts as much as the function is long.
  '--wasm-tiering-budget=2000000000',
  // A start allocates 20 MB that stay. Without this, V8 collects within the first 17 MB, and with 32 at the end of the
  // start, which takes 13 to 24 ms.
  '--initial-old-space-size=64',
  // Needed by src/server/idle-memory.ts.
  '--expose-gc',
];

async function makeExecutable(bundles: Bundles, executable: string): Promise<void> {
  const assets = {
    [program]: put(program, asFunction(readFileSync(bundles.main, 'utf8'))),
    'sql-wasm.wasm': paths.wasm,
    'worker.js': bundles.worker,
    ...bundles.assets,
  };
  const draft = inject(executable, put('rehearsal.cjs', rehearsal), assets, [...execArgv, ...rehearsalFlags]);
  const caches = rehearsed(draft, execArgv, assets[program]).map(([name, bytes]) => [name, put(name, bytes)]);
  rmSync(draft);
  const all = { ...assets, ...Object.fromEntries(caches) };
  const output = inject(executable, put('start.cjs', starter), all, execArgv);
  const bytes = readFileSync(output);
  if (tellNodesCaches(bytes, execArgv) === 0)
    say("note: no cache of Node's own modules is used, each start takes longer");
  const smaller = dropLanguages(bytes);
  if (!smaller) say('note: the runtime keeps all languages of its Unicode library, 25 MB that dist/kms does not need');
  writeInPieces(output, smaller ?? bytes);
  chmodSync(output, 0o755);
  const answer = spawnSync(output, ['--version'], { encoding: 'utf8' });
  if (answer.status !== 0) throw new Error(`the new executable does not start: ${answer.stderr || answer.signal}`);
  renameSync(output, paths.executable);
}

function put(name: string, content: string | Uint8Array): string {
  const file = join(paths.work, name);
  writeFileSync(file, content);
  return file;
}

/** Returns the path of a new executable that begins with the script `main` and runs with `flags`. */
function inject(
  executable: string,
  main: string,
  assets: Readonly<Record<string, string>>,
  flags: readonly string[],
): string {
  const output = `${main}-${process.pid}`;
  const sea = {
    // A relative path: this name ends up in the executable and must not reveal where it was built.
    main: relative(paths.work, main),
    mainFormat: 'commonjs',
    executable,
    output,
    disableExperimentalSEAWarning: true,
    execArgv: flags,
    // Nothing in the environment changes how the runtime behaves.
    execArgvExtension: 'none',
    assets,
  };
  const config = put('sea.json', JSON.stringify(sea, null, 2));
  execFileSync(process.execPath, ['--build-sea', config], { cwd: paths.work, stdio: ['ignore', 'ignore', 'inherit'] });
  chmodSync(output, 0o755);
  return output;
}

/**
 * Writes in small pieces. A file written at once is cached by the kernel in large units, and a process running it then
 * maps them whole: 40 MB more than it uses.
 */
function writeInPieces(path: string, bytes: Uint8Array): void {
  const piece = 64 * 1024;
  const file = openSync(path, 'w');
  try {
    for (let at = 0; at < bytes.length; at += piece) writeSync(file, bytes, at, Math.min(piece, bytes.length - at));
  } finally {
    closeSync(file);
  }
}

await main();
