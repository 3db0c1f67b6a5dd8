// Makes dist/kms: bundles the sources, puts them with their assets into a copy of the Node that runs this script, and checks that
// the result starts. Run by scripts/build.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type Bundles, bundle } from './bundle.ts';
import { digestOfInputs } from './inputs.ts';
import { paths } from './paths.ts';

const say = (line: string): void => void process.stderr.write(`kms: ${line}\n`);

async function main(): Promise<void> {
  const digest = digestOfInputs();
  if (isCurrent(digest)) return;
  const started = performance.now();
  say('building dist/kms');
  mkdirSync(paths.work, { recursive: true });
  const bundles = await bundle();
  makeExecutable(bundles, runtime());
  writeFileSync(paths.stamp, digest);
  const size = Math.round(statSync(paths.executable).size / 1e6);
  say(`built dist/kms, ${size} MB, in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

function isCurrent(digest: string): boolean {
  return existsSync(paths.executable) && existsSync(paths.stamp) && readFileSync(paths.stamp, 'utf8') === digest;
}

/** A copy of this Node without its symbol table where `strip` is there to take it out and the rest still runs, else this Node itself. */
function runtime(): string {
  const stripped = join(paths.work, `node-${process.version}-${process.arch}`);
  if (existsSync(stripped)) return stripped;
  const fresh = `${stripped}.new`;
  copyFileSync(process.execPath, fresh);
  chmodSync(fresh, 0o755);
  const runs =
    spawnSync('strip', ['--strip-all', fresh], { stdio: 'ignore' }).status === 0 &&
    spawnSync(fresh, ['--version'], { encoding: 'utf8' }).stdout?.trim() === process.version;
  if (!runs) {
    rmSync(fresh, { force: true });
    return process.execPath;
  }
  renameSync(fresh, stripped);
  return stripped;
}

function makeExecutable(bundles: Bundles, executable: string): void {
  const output = join(paths.work, `kms-${process.pid}`);
  const config = join(paths.work, 'sea.json');
  const sea = {
    main: bundles.main,
    mainFormat: 'commonjs',
    executable,
    output,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    execArgv: ['--no-warnings'],
    // Nothing in the environment changes how the runtime behaves.
    execArgvExtension: 'none',
    assets: { 'sql-wasm.wasm': paths.wasm, 'worker.js': bundles.worker },
  };
  writeFileSync(config, JSON.stringify(sea, null, 2));
  execFileSync(process.execPath, ['--build-sea', config], { stdio: ['ignore', 'ignore', 'inherit'] });
  chmodSync(output, 0o755);
  const answer = spawnSync(output, ['--version'], { encoding: 'utf8' });
  if (answer.status !== 0) throw new Error(`the new executable does not start: ${answer.stderr || answer.signal}`);
  renameSync(output, paths.executable);
}

await main();
