// Import rules: the layers, the packages that belong to one layer each, the files that read the environment, and no
// cycles. Also the maximum width of comments.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, type Import, importsOf, sources, textOf } from './imports.ts';

/** Folders that an appliance consists of besides its operations; `appliance` puts them together. */
const machinery = ['upgrade', 'doctor', 'cluster', 'telemetry', 'backup', 'storage', 'custody', 'platform'];
/** Folders that those and `appliance` may import: the operations and everything below them. */
const operations = ['core', 'api', 'model', 'store', 'seal', 'crypto', 'errors.ts', 'version.ts'];

/** Folders that each folder of src may import besides itself. */
const layers: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['cli', 'errors.ts'],
  'errors.ts': ['system-words.ts'],
  'system-words.ts': [],
  'version.ts': [],
  model: ['errors.ts'],
  crypto: ['errors.ts'],
  seal: ['model', 'crypto', 'errors.ts'],
  store: ['model', 'crypto', 'errors.ts'],
  core: ['model', 'store', 'seal', 'crypto', 'errors.ts'],
  api: ['model'],
  description: ['api', 'model'],
  http: ['core', 'api', 'model', 'errors.ts'],
  dialects: ['http', 'core', 'api', 'model', 'crypto', 'errors.ts', 'version.ts'],
  client: ['api', 'model', 'crypto', 'errors.ts'],
  cli: ['client', 'api', 'model', 'errors.ts', 'version.ts'],
  platform: ['store', 'seal', 'api', 'model', 'crypto', 'errors.ts'],
  custody: ['platform', 'core', 'store', 'seal', 'api', 'model', 'crypto', 'errors.ts'],
  storage: ['custody', 'platform', 'http', 'core', 'store', 'seal', 'api', 'model', 'crypto', 'errors.ts'],
  backup: ['storage', 'custody', 'platform', 'client', 'http', ...operations],
  telemetry: ['backup', 'storage', 'platform', 'http', ...operations],
  cluster: ['backup', 'storage', 'custody', 'platform', 'http', ...operations],
  doctor: ['cluster', 'telemetry', 'backup', 'storage', 'custody', 'platform', 'client', ...operations],
  upgrade: ['platform', 'store', 'seal', 'model', 'crypto', 'errors.ts'],
  appliance: [...machinery, 'dialects', 'http', 'client', ...operations],
  server: ['appliance', ...machinery, 'dialects', 'http', 'model', 'errors.ts'],
  console: ['client', 'api', 'model', 'errors.ts', 'version.ts'],
};

/** Folders that may import a package; an unlisted package may be imported nowhere. */
const packages: Readonly<Record<string, readonly string[]>> = {
  '@noble/ciphers': ['crypto'],
  '@noble/curves': ['crypto'],
  '@noble/hashes': ['crypto'],
  '@noble/post-quantum': ['crypto'],
  '@scure/base': ['crypto'],
  'sql.js': ['store'],
  // Loaded if a shared database is configured.
  pg: ['store'],
  hono: ['http'],
  // HTML from templates; a part of Hono that knows no server.
  'hono/html': ['description'],
  // Runs in the browser; likewise.
  'hono/jsx/dom': ['console'],
  '@dagrejs/dagre': ['console'],
  '@hono/node-server': ['server'],
  commander: ['cli'],
  zod: ['api', 'description', 'http'],
  pino: ['server'],
  nodemailer: ['appliance'],
  oauth4webapi: ['appliance'],
  // Loaded with the first login by a signed token.
  jose: ['appliance'],
  '@peculiar/x509': ['platform'],
  '@simplewebauthn/server': ['crypto'],
  '@simplewebauthn/browser': ['console'],
  'reflect-metadata': ['platform'],
  uqr: ['cli', 'console'],
  // Loaded where a configuration file is named.
  yaml: ['cli'],
  // Values of OpenTofu.
  '@msgpack/msgpack': ['cli'],
  croner: ['backup'],
  'prom-client': ['telemetry'],
};

/** Intended exceptions from the table: types from another layer, and code that is loaded on demand. */
function isMeant({ from, to, typeOnly }: Import, code: string): boolean {
  // A CLI command that works without a server loads it in process.
  if (from.startsWith('src/cli/') && ['server', 'appliance', ...machinery].includes(folderOf(to)))
    return typeOnly || isLazy(code, to);
  // Key material is passed to the store as an object whose type belongs to the seal.
  if (from.startsWith('src/store/') && to === 'src/seal/tenant-keys.ts') return typeOnly;
  // The wire contract declares the input and output types of operations once.
  if (from.startsWith('src/core/') && to.startsWith('src/api/')) return typeOnly;
  // Routes and dialects refer to the store and the tenant's keys only by type.
  if (/^src\/(http|dialects)\//.test(from) && /^src\/(store|seal)\//.test(to)) return typeOnly;
  return false;
}

function isLazy(code: string, to: string): boolean {
  const name = to.slice(to.lastIndexOf('/') + 1).replaceAll('.', '\\.');
  return new RegExp(`import\\(\\s*['"][^'"]*/${name}['"]`).test(code);
}

const folderOf = (path: string): string => path.split('/')[1] ?? path;
const all = sources().flatMap((source) => importsOf(source));

test('the scanner sees each kind of import', () => {
  const code = `import a from './a.ts';\nimport type { B } from '../b.ts';\nexport * from "./c.ts";\nimport './d.ts';\nimport {\n  e,\n} from 'e/f';\nconst x = await import('./g.ts');`;
  assert.deepEqual(
    importsOf('src/x/y.ts', code).map(({ to, typeOnly }) => [to, typeOnly]),
    [
      ['src/x/a.ts', false],
      ['src/b.ts', true],
      ['src/x/c.ts', false],
      ['src/x/d.ts', false],
      ['e/f', false],
      ['src/x/g.ts', false],
    ],
  );
});

test('no line of a comment is longer than 120 columns, as no line of code is', () => {
  const long = sources().flatMap((source) =>
    textOf(source)
      .split('\n')
      .flatMap((line, n) => (line.length > 120 && /^\s*(?:\/\/|\/?\*)/.test(line) ? [`${source}:${n + 1}`] : [])),
  );
  assert.deepEqual(long, []);
});

test('no file has the name of a folder beside it', () => {
  const folders = new Set(sources().map((source) => source.slice(0, source.lastIndexOf('/'))));
  const twice = sources().filter((source) => folders.has(source.replace(/\.tsx?$/, '')));
  assert.deepEqual(twice, []);
});

test('every folder is in the table', () => {
  for (const source of sources()) assert.ok(folderOf(source) in layers, `${source} is in no known layer`);
});

test('the table has no circle: each folder is below those that may import it', () => {
  const below = (folder: string, above: readonly string[]): void => {
    assert.ok(!above.includes(folder), [...above, folder].join(' -> '));
    for (const each of layers[folder] ?? []) below(each, [...above, folder]);
  };
  for (const folder of Object.keys(layers)) below(folder, []);
});

test('imports between the folders run as the table says', () => {
  const wrong = all.filter((each) => {
    if (!each.to.startsWith('src/')) return false;
    const [from, to] = [folderOf(each.from), folderOf(each.to)];
    return from !== to && !layers[from]?.includes(to) && !isMeant(each, codeOf(each.from));
  });
  assert.deepEqual(
    wrong.map(({ from, to }) => `${from} -> ${to}`),
    [],
  );
});

test('packages are imported where they belong', () => {
  const wrong = all.filter(({ from, to }) => {
    if (to.startsWith('src/') || to.startsWith('node:')) return false;
    const name = to
      .split('/')
      .slice(0, to.startsWith('@') ? 2 : 1)
      .join('/');
    return !(packages[to] ?? packages[name])?.includes(folderOf(from));
  });
  assert.deepEqual(
    wrong.map(({ from, to }) => `${from} -> ${to}`),
    [],
  );
});

test('the client, the wire contract and the rules know no Node', () => {
  const wrong = all.filter(
    ({ from, to }) =>
      to.startsWith('node:') &&
      ['client', 'api', 'model', 'core', 'crypto', 'description', 'console'].includes(folderOf(from)),
  );
  assert.deepEqual(
    wrong.map(({ from, to }) => `${from} -> ${to}`),
    [],
  );
});

test('the environment is read in one file per edge, and nothing but the edge exits', () => {
  for (const source of sources()) {
    const code = codeOf(source);
    // The snippets are programs of others, as texts.
    if (/process\.env\b/.test(code) && source !== 'src/console/snippets/snippet-texts.ts')
      assert.match(source, /^src\/(cli\/process-io|platform\/environment)\.ts$/, `${source} reads the environment`);
    if (/process\.exit\b/.test(code))
      assert.match(source, /^src\/(main|cli\/process-io)\.ts$/, `${source} ends the process`);
  }
});

/** Files of src that open others by path, and the directories where they do, in which only this user writes. */
const ownFiles: Readonly<Record<string, string>> = {
  'src/platform/file-system.ts': 'the new data directory',
  'src/cluster/held-directory.ts': 'the data directory',
  'src/appliance/init.ts': 'the data directory',
  'src/cluster/move.ts': 'the data directory, and the one beside it that goes over to a database',
  'src/cluster/move-shipped.ts': 'the directory beside the data directory in which a standby follows',
  'src/cluster/shared-node.ts': 'the directory of a node',
  'src/backup/restore-command.ts': 'the new data directory',
  'src/backup/standby.ts': 'the new data directory, and the copies in it',
  'src/doctor/doctor.ts': 'the data directory, and a private copy',
  'src/doctor/served.ts': 'a private copy',
  'src/doctor/stores.ts': 'the data directory, and a private copy',
  'src/appliance/worker.ts': 'the data directory',
  'src/upgrade/journal.ts': 'the data directory',
};
/** Files of src that work in directories where others may write: they must not use paths. */
const foreign = /^src\/(?:backup|telemetry\/streaming)\/|^src\/upgrade\/release\.ts$/;

test('where others may write nothing is reached by its path', () => {
  for (const source of sources()) {
    const code = codeOf(source);
    if (/\bnodeFiles\(/.test(code) && source !== 'src/platform/node-files.ts') assert.ok(ownFiles[source], source);
    const isOpen = /from 'node:fs(?:\/promises)?'/.test(code);
    if (foreign.test(source) && isOpen) assert.ok(ownFiles[source], `${source} reaches files by their paths`);
  }
  for (const source of Object.keys(ownFiles)) assert.match(codeOf(source), /\bnodeFiles\(/, source);
});

const edgesOf = (each: (item: Import) => boolean): ReadonlyMap<string, readonly string[]> => {
  const edges = new Map<string, string[]>();
  for (const item of all) {
    if (item.to.startsWith('src/') && each(item)) edges.set(item.from, [...(edges.get(item.from) ?? []), item.to]);
  }
  return edges;
};

test('no module depends on itself, types counted', () => {
  const edges = edgesOf(({ from, to }) => !isLazy(codeOf(from), to));
  const done = new Set<string>();
  const walk = (module: string, path: readonly string[]): void => {
    assert.ok(!path.includes(module), `cycle: ${[...path.slice(path.indexOf(module)), module].join(' -> ')}`);
    if (done.has(module)) return;
    for (const next of edges.get(module) ?? []) walk(next, [...path, module]);
    done.add(module);
  };
  for (const module of edges.keys()) walk(module, []);
});

test('no chain of modules that need each other to start is long', () => {
  const edges = edgesOf(({ from, to, typeOnly }) => !typeOnly && !isLazy(codeOf(from), to));
  const longest = new Map<string, readonly string[]>();
  const chain = (module: string): readonly string[] => {
    const known = longest.get(module);
    if (known) return known;
    const next = (edges.get(module) ?? []).map(chain).sort((a, b) => b.length - a.length);
    const found = [module, ...(next[0] ?? [])];
    longest.set(module, found);
    return found;
  };
  for (const module of edges.keys()) assert.ok(chain(module).length < 20, chain(module).join(' -> '));
});
