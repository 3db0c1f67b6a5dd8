// Builds dist/kms, dist/client and the client's package: bundles the sources, injects them and their assets into a copy
// of the Node that runs this script, and checks that the result starts. Run by scripts/build.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type Bundles, bundle } from './bundle.ts';
import { buildClient, packClient } from './client.ts';
import { digestOfInputs } from './inputs.ts';
import { paths } from './paths.ts';
import {
  asFunction,
  profiledCache,
  profileFlags,
  profileScript,
  program,
  programCache,
  startScript,
} from './runtime/code-cache.ts';
import { flags } from './runtime/flags.ts';
import { fitExecutable, strippedNode } from './runtime/node.ts';

const say = (line: string): void => void process.stderr.write(`kms: ${line}\n`);

async function main(): Promise<void> {
  const digest = digestOfInputs();
  if (isCurrent(digest)) return;
  const started = performance.now();
  say('building dist/kms');
  mkdirSync(paths.work, { recursive: true });
  const bundles = await bundle();
  await makeExecutable(bundles, strippedNode(say));
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

async function makeExecutable(bundles: Bundles, node: string): Promise<void> {
  const assets = {
    [program]: put(program, asFunction(readFileSync(bundles.main, 'utf8'))),
    'sql-wasm.wasm': paths.wasm,
    'worker.js': bundles.worker,
    ...bundles.assets,
  };
  const draft = inject(node, put('profile.cjs', profileScript), assets, [...flags, ...profileFlags]);
  const cache = put(programCache, profiledCache(draft, flags, assets[program]));
  rmSync(draft);
  const output = inject(node, put('start.cjs', startScript), { ...assets, [programCache]: cache }, flags);
  fitExecutable(output, flags, say);
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

await main();
