// Completions while a line is typed: from the grammar, from a running server, from profiles; and the scripts that
// install them in shells.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { completesOption } from '../../src/cli/completion/line.ts';
import { scriptFor } from '../../src/cli/completion/scripts.ts';
import { shells } from '../../src/cli/grammar/option-sets.ts';
import { grammar, leavesOf } from './grammar-tree.ts';
import { type Desk, desk, type RunOptions } from './kms.ts';
import { servedDesk } from './served.ts';

/** The first line, and the candidates without their descriptions. */
async function offered(d: Desk, line: readonly string[], options?: RunOptions): Promise<[string, ...string[]]> {
  const { code, stdout, stderr } = await d.kms(['__complete', '--', ...line], options);
  assert.deepEqual([code, stderr], [0, ''], line.join(' '));
  const [mode = '', ...candidates] = stdout.trimEnd().split('\n');
  return [mode, ...candidates.map((each) => each.split('\t')[0] ?? '')];
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

const byGrammar: readonly (readonly [line: readonly string[], offers: readonly string[]])[] = [
  [['keyr'], ['words', 'keyring']],
  [['he'], ['words', 'help']],
  [
    ['help', 'keyr'],
    ['words', 'keyring'],
  ],
  [
    ['help', 'keyring', 'cr'],
    ['words', 'create'],
  ],
  [['help', 'keyring', 'create', ''], ['words']],
  [['help', 'nonsense', ''], ['words']],
  [
    ['keyring', 'r'],
    ['words', 'rotate', 'restore'],
  ],
  [
    ['keyring', 'nonsense', 'r'],
    ['words', 'rotate', 'restore'],
  ],
  [['keyring', 'list', 'r'], ['words']],
  [['keyring', 'create', 'r'], ['words']],
  [
    ['--json', 'keyring', 'list', '--c'],
    ['words', '--cursor', '--ca-file', '--client-cert', '--client-key'],
  ],
  [
    ['keyring', 'list', '--cursor', 'x', '--c'],
    ['words', '--ca-file', '--client-cert', '--client-key'],
  ],
  [['keyring', 'list', '--limit', '--c'], ['words']],
  [
    ['apikey', 'create', '--flag', 'x', '--fl'],
    ['words', '--flag'],
  ],
  [
    ['serve', '--log-level', ''],
    ['words', ...logLevels],
  ],
  [
    ['serve', '--log-level=e'],
    ['words', '--log-level=error'],
  ],
  [
    ['init', '--custodian', 'p'],
    ['words', 'passphrase'],
  ],
  [
    ['master', 'add-custodian', 's'],
    ['words', 'shares'],
  ],
  [
    ['apikey', 'update', 'id', '--op', ''],
    ['words', 'merge', 'replace', 'delete'],
  ],
  [
    ['apikey', 'update', 'id', '--active', 't'],
    ['words', 'true'],
  ],
  [
    ['completion', ''],
    ['words', 'bash', 'zsh', 'fish'],
  ],
  [
    ['activity', 'search', '--action', 'session'],
    ['words', 'session.refresh', 'session.end', 'session.watch', 'session.read'],
  ],
  [
    ['apikey', 'create', '--flag', 'activity'],
    ['words', 'activity.read'],
  ],
  [['encrypt', ''], ['files']],
  [['encrypt', '-o', 'x'], ['files']],
  [['encrypt', '--output=x'], ['files']],
  [['encrypt', '--', '-'], ['files']],
  [['--data', ''], ['directories']],
  [['tls', 'self-signed', '--out='], ['directories']],
  [['keyring', 'list', '--nonsense='], ['words']],
  [['keyring', 'list', '--yes', '--', '--'], ['words']],
  [['encrypt', '--no-such'], ['words']],
  [['__'], ['words']],
  [[], ['words', ...grammar().subcommands.map((command) => command.name())]],
];

for (const [line, offers] of byGrammar) {
  test(`the grammar alone completes: ${line.join(' ')}`, async () => {
    await using d = await desk();
    assert.deepEqual(await offered(d, line), offers);
  });
}

test('every command and every option that is there is offered', async () => {
  await using d = await desk();
  for (const leaf of leavesOf(grammar())) {
    const path = leaf.fullName().split(' ').slice(1);
    assert.ok((await offered(d, path)).includes(leaf.name()), path.join(' '));
    const options = await offered(d, [...path, '--']);
    for (const { long } of leaf.options) assert.ok(long && options.includes(long), `${path.join(' ')} ${long}`);
  }
});

/** Placeholders that accept any text; the grammar says how the others are completed. */
const free =
  /^(ADDRESS|AGE|ALIAS|ARG|BASE_URL|BYTES|CIDR|CLAIM|COMMAND|CRON|CURSOR|HOST:PORT|HOST\[:PORT\]|ID|ID\|NAME|JSON|K|KEY|KEYID|PROOF|REGION|RULE|LEVEL|N|NAME|NAME=VALUE|SVG|TEXT|TIME|TIME\|AGE|TOPIC|UID|URL|USERNAME|VALUE=FLAG,FLAG|WHERE|WORDS|once\|AGE|unix:\/\/\/PATH)$/;

test('each placeholder is known, or meant to be free', () => {
  for (const leaf of leavesOf(grammar())) {
    for (const option of [...leaf.options, ...leaf.root.options]) {
      const [, placeholder] = /[<[](.+)[>\]]/.exec(option.flags) ?? [];
      if (placeholder && completesOption(option) === undefined) assert.match(placeholder, free, leaf.fullName());
    }
    for (const [at, argument] of leaf.registeredArguments.entries()) {
      if (leaf.completesArgument(at) === undefined) assert.match(argument.name(), free, leaf.fullName());
    }
  }
});

test('a running server is asked for names, through its socket or a profile', async () => {
  await using d = await servedDesk();
  for (const name of ['payroll', 'Payments', 'other']) await d.json(['keyring', 'create', name, '--json']);
  await d.json('account create svc:billing --json');
  await d.json(['account', 'create', 'two words', '--json']);
  await d.json('user create ada --email ada@example.org --first-name Ada --last-name L --json');
  const key = await d.json<{ keyid: string }>('apikey create --account svc:billing --json');
  await d.kms(['profile', 'add', 'far', '--server', d.url], { stdin: d.appliance.root.key });
  await d.kms(['profile', 'add', 'near', '--server', d.url]);
  const elsewhere = { cwd: d.path('config') };
  for (const [line, offers] of [
    [['keyring', 'show', 'pay'], ['payroll']],
    [
      ['keyring', 'delete', ''],
      ['payroll', 'Payments', 'other'],
    ],
    [['encrypt', '--ring', 'P'], ['Payments']],
    [['encrypt', '--ring=o'], ['--ring=other']],
    [['account', 'show', 'svc:b'], ['svc:billing']],
    [['account', 'show', 'two'], ['two words']],
    [['apikey', 'list', '--account', 'svc'], ['svc:billing']],
    [['apikey', 'show', key.keyid], [key.keyid]],
    [['user', 'show', ''], ['ada']],
    [
      ['keyring', 'list', '--profile', ''],
      ['far', 'near'],
    ],
    [
      ['apikey', 'create', '--flag', 'keyring.other.r'],
      ['keyring.other.read', 'keyring.other.rotate'],
    ],
  ] as const) {
    assert.deepEqual(await offered(d, line), ['words', ...offers], line.join(' '));
    assert.deepEqual(await offered(d, ['--profile', 'far', ...line], elsewhere), ['words', ...offers], line.join(' '));
  }
  const ring = ['keyring', 'show', ''];
  assert.deepEqual(await offered(d, ring, elsewhere), ['words']);
  assert.deepEqual(await offered(d, ['--data', d.path('kms-data'), ...ring], elsewhere), [
    'words',
    'payroll',
    'Payments',
    'other',
  ]);
  assert.deepEqual(await offered(d, ['--profile', 'near', ...ring]), ['words'], 'a profile without a key');
  const env = { KMS_API_KEY: d.appliance.root.key };
  assert.equal((await offered(d, ['--server', d.url, ...ring], { ...elsewhere, env })).length, 4);
  assert.deepEqual(await offered(d, ['--server', d.url, ...ring], { env: { KMS_API_KEY: 'wrong' } }), ['words']);
  await chmod(d.path('config', 'kms', 'profiles', 'far.json'), 0o644);
  assert.deepEqual(await offered(d, ['--profile', 'far', ...ring]), ['words'], 'a profile that others can read');
});

test('names that could play tricks are not offered', async () => {
  await using d = await servedDesk();
  await d.json(['account', 'create', 'a\u001b[2Jb', '--json']);
  await d.json(['account', 'create', 'ab', '--notes', 'x\ny\tz', '--json']);
  const { stdout } = await d.kms(['__complete', '--', 'account', 'show', 'a']);
  assert.equal(stdout, 'words\nadmin\t\nab\tx\\x0ay\\x09z\n');
});

test('without a server nothing is offered, nothing is said, and the data directory is left alone', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('keyring create payroll --json');
  const before = await readdir(d.path('kms-data'), { recursive: true });
  for (const line of [
    ['keyring', 'show', ''],
    ['tenant', 'show', ''],
    ['master', 'remove-custodian', ''],
  ]) {
    assert.deepEqual(await offered(d, line), ['words']);
  }
  assert.deepEqual(await readdir(d.path('kms-data'), { recursive: true }), before);
  await using empty = await desk();
  assert.deepEqual(await offered(empty, ['keyring', 'show', '']), ['words']);
  assert.deepEqual(await readdir(empty.dir), []);
});

test('a server that accepts and never answers is not waited for', { timeout: 60_000 }, async () => {
  await using d = await desk();
  await mkdir(d.path('kms-data'));
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(d.path('kms-data', 'kms.sock'), resolve));
  assert.deepEqual(await offered(d, ['keyring', 'show', '']), ['words']);
  assert.deepEqual(await offered(d, ['tenant', 'show', '']), ['words']);
  server.close();
});

test('a shell that is not known is wrong usage', async () => {
  await using d = await desk();
  const { code, stdout, stderr } = await d.kms('completion bsh');
  assert.deepEqual(
    [code, stdout, stderr],
    [2, '', 'kms: SHELL: expected bash, zsh or fish, got "bsh"; did you mean bash? See `kms completion --help`\n'],
  );
});

for (const shell of shells) {
  test(`the script for ${shell} is one that ${shell} can read`, async () => {
    await using d = await desk();
    const { code, stdout, stderr } = await d.kms(`completion ${shell}`);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /__complete -- /);
    assert.doesNotMatch(stdout, /@\{/);
    await writeFile(d.path('script'), stdout);
    const checked = spawnSync(shell, ['-n', d.path('script')], { encoding: 'utf8' });
    // Zsh and fish are not on every machine.
    if (shell === 'bash' || checked.error === undefined) assert.deepEqual([checked.status, checked.stderr], [0, '']);
  });
}

/** Lines as bash splits them into words, with the cursor at the end, and the replies that replace the last word. */
const inBash: readonly (readonly [line: string, words: readonly string[], replies: readonly string[]])[] = [
  ['kms keyr', ['kms', 'keyr'], ['keyring']],
  ['kms  encrypt --ring pay', ['kms', 'encrypt', '--ring', 'pay'], ['payroll']],
  ['kms encrypt --ring=pay', ['kms', 'encrypt', '--ring', '=', 'pay'], ['payroll']],
  ['kms encrypt --ring=', ['kms', 'encrypt', '--ring', '='], ['payroll']],
  ['kms account show svc:b', ['kms', 'account', 'show', 'svc', ':', 'b'], ['billing']],
  ['kms account show svc:', ['kms', 'account', 'show', 'svc', ':'], ['billing']],
  ['kms account show tw', ['kms', 'account', 'show', 'tw'], ['two\\ words']],
  ['kms account show "tw', ['kms', 'account', 'show', '"tw'], ['two words']],
  ['kms account show ', ['kms', 'account', 'show', ''], ['admin', 'svc:billing', 'two\\ words']],
  ['kms serve --log-level ', ['kms', 'serve', '--log-level', ''], logLevels],
  ['kms encrypt -o x', ['kms', 'encrypt', '-o', 'x'], ['[-o default]']],
  ['kms --data x', ['kms', '--data', 'x'], ['[-o dirnames]']],
  ['kms nonsense', ['kms', 'nonsense'], []],
];

test('bash completes with it', async (t) => {
  await using d = await servedDesk();
  await d.json('keyring create payroll --json');
  await d.json('account create svc:billing --json');
  await d.json(['account', 'create', 'two words', '--json']);
  await mkdir(d.path('bin'));
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  await writeFile(d.path('bin', 'kms'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, { mode: 0o755 });
  await writeFile(d.path('script'), (await d.kms('completion bash')).stdout);
  const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
  for (const [line, words, replies] of inBash) {
    await t.test(line, async () => {
      const commands = `
        source ./script
        complete -p kms > /dev/null
        COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
        compopt() { printf '[%s]\\n' "$*"; }
        COMP_LINE=${quote(line)} COMP_POINT=${line.length} COMP_WORDS=(${words.map(quote).join(' ')}) COMP_CWORD=${words.length - 1}
        _kms kms
        for reply in "\${COMPREPLY[@]}"; do printf '%s\\n' "$reply"; done`;
      const env = { PATH: `${d.path('bin')}:${process.env.PATH}`, XDG_CONFIG_HOME: d.path('config'), HOME: d.dir };
      const ran = await asBash(commands, d.dir, env);
      assert.deepEqual([ran.stderr, ran.stdout.split('\n').filter((each) => each !== '')], ['', replies]);
    });
  }
});

/** Names chosen by others that a shell would execute if it read them unquoted. */
const hostile = [
  'a$(touch hacked)',
  'a`touch hacked`',
  "a';touch hacked;'",
  'a";touch hacked;"',
  'a\\$(touch hacked)',
  "a\\'$(touch hacked)",
  'a;touch hacked',
  'a>hacked',
  'a!!',
  'aé$(touch hacked)',
  'a\\',
  'a:$(touch hacked)',
  'a b*?[c]{d,e}~',
];

/** Beginnings of the word, and the quote that ends it. */
const typedBefore = [
  ['a', ''],
  ['"a', '"'],
  ["'a", "'"],
  ['a"', '"'],
  ["a'", "'"],
  ['$"a', '"'],
  ["$'a", "'"],
  ['x"y"a', ''],
  ['\\"a', ''],
  ['--uid="a', '"'],
] as const;

test('a name that bash would obey is quoted as its place needs it, or not offered', async () => {
  await using d = await desk();
  await mkdir(d.path('bin'));
  // Offers the one name when completing, otherwise saves its arguments.
  const kms =
    '#!/bin/bash\nif [[ $1 == __complete ]]; then printf "words\\n%s\\tabout\\n" "$OFFERED"; else printf "%s\\0" "$@"; fi\n';
  await writeFile(d.path('bin', 'kms'), kms, { mode: 0o755 });
  await writeFile(d.path('script'), scriptFor('bash'));
  const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
  const env = { PATH: `${d.path('bin')}:${process.env.PATH}`, HOME: d.dir, LC_ALL: 'C.UTF-8' };
  for (const name of hostile) {
    for (const [word, end] of typedBefore) {
      const line = `kms ${word}`;
      // Readline puts the reply after an open quote, otherwise in place of the word; then the line is run.
      const kept = end === '' ? '' : word.slice(0, Math.max(word.lastIndexOf('"'), word.lastIndexOf("'")) + 1);
      const ran = await asBash(
        `
        source ./script
        COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:' COMP_LINE=${quote(line)} COMP_POINT=${line.length}
        COMP_WORDS=(kms ${quote(word)}) COMP_CWORD=1
        _kms kms
        for reply in "\${COMPREPLY[@]}"; do eval "kms "${quote(kept)}"$reply"${quote(end)}; done`,
        d.dir,
        { ...env, OFFERED: name },
      );
      assert.equal(ran.stderr, '', `${name} after ${word}`);
      if (ran.stdout !== '') assert.ok(ran.stdout.endsWith(`${name}\0`), `${name} after ${word}: ${ran.stdout}`);
      else assert.ok(word.includes("$'") || (end === '"' && name.includes('!')), `${name} after ${word}`);
      assert.deepEqual(await readdir(d.dir), ['bin', 'script'], `${name} after ${word}`);
    }
  }
});

test('a name that begins as an option does is not offered in the place of a name', async () => {
  await using d = await servedDesk();
  await d.json(['account', 'create', '--json', '--', '--yes']);
  assert.deepEqual(await offered(d, ['account', 'delete', '']), ['words', 'admin']);
});

/** Asynchronous, since the server runs in this process. */
function asBash(
  commands: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    execFile('bash', ['--norc', '--noprofile', '-c', commands], { cwd, env }, (error, stdout, stderr) => {
      if (error) reject(error);
      else resolve({ stdout, stderr });
    });
  });
}
