// The grammar of the command line: help, examples, suggestions for misspelt words, and wrong usage.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import test from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import type { CliOf, GrammarCommand } from '../../src/cli/command.ts';
import type { keyring } from '../../src/cli/grammar/keyring.ts';
import { GrammarOption } from '../../src/cli/grammar-option.ts';
import { version } from '../../src/version.ts';
import { callsIn, grammar, leavesOf } from './grammar-tree.ts';
import { desk } from './kms.ts';

test('tells its version', async () => {
  await using d = await desk();
  assert.deepEqual(pick(await d.kms('--version')), [0, `${version}\n`, '']);
});

test('every command has help with an example, and its code can be loaded', async () => {
  await using d = await desk();
  const leaves = leavesOf(grammar());
  assert.ok(leaves.length >= 50, String(leaves.length));
  for (const leaf of leaves) {
    const path = leaf.fullName().split(' ').slice(1);
    const { code, stdout, stderr } = await d.kms([...path, '--help']);
    assert.deepEqual([code, stderr], [0, ''], path.join(' '));
    assert.match(stdout, new RegExp(`\\$ .*kms ${path.join(' ')}`), path.join(' '));
    assert.equal(typeof (await leaf.load?.()), 'function', path.join(' '));
  }
});

/** Checked by the compiler: a command reads its declared options with their declared types, and no others. */
export function typedReads(cli: CliOf<typeof keyring.config>): readonly unknown[] {
  return [
    cli.get('<NAME>') satisfies string,
    cli.get('--max-encrypt-count') satisfies number | undefined,
    cli.globals.get('--json') satisfies boolean,
    // @ts-expect-error: no such option
    cli.get('--max-encrypt-counts'),
    // @ts-expect-error: an option of another command
    cli.isTyped('--private-key-out'),
    // @ts-expect-error: an option of every command is read from `globals`
    cli.get('--json'),
  ];
}

test('every example calls its command as the grammar has it', async () => {
  for (const name of [[], ...leavesOf(grammar()).map((leaf) => leaf.fullName().split(' ').slice(1))]) {
    const examples = name.reduce((command, word) => find(command, word), grammar()).examples;
    assert.ok(examples.length > 0, name.join(' '));
    for (const example of examples) {
      const calls = callsIn(example);
      assert.ok(calls.length > 0, example);
      for (const call of calls) {
        const root = grammar();
        const called: string[] = [];
        for (const leaf of leavesOf(root)) leaf.action(() => void called.push(leaf.fullName()));
        await root.parseAsync(call, { from: 'user' });
        if (name.length > 0) assert.deepEqual(called, [['kms', ...name].join(' ')], example);
      }
    }
  }
});

function find(command: GrammarCommand, name: string): GrammarCommand {
  const found = command.subcommands.find((each) => each.name() === name);
  assert.ok(found, name);
  return found;
}

test('no option is given unless it is typed, whatever its name', () => {
  for (const leaf of [grammar(), ...leavesOf(grammar())]) {
    for (const { long = '' } of leaf.options) {
      if (long === '--help') continue;
      assert.equal(leaf.given(long), undefined, `${leaf.fullName()} ${long}`);
      assert.equal(leaf.isTyped(long), false, `${leaf.fullName()} ${long}`);
    }
  }
});

test('every command and option that is nearly right is named', async () => {
  await using d = await desk();
  const root = grammar();
  const told = async (words: readonly string[], name: string, near: string): Promise<void> => {
    const { code, stdout, stderr } = await d.kms(words);
    // The code 2 of a plan says that there are changes.
    assert.deepEqual([code, stdout], [words[0] === 'plan' ? 1 : 2, ''], words.join(' '));
    const suggested = /; did you mean (?:one of )?(.+)\? See `kms[^`]*--help`\n$/.exec(stderr)?.[1] ?? '';
    assert.ok(suggested.split(', ').includes(name), `${near}: ${stderr}`);
  };
  const walk = async (command: GrammarCommand, path: readonly string[]): Promise<void> => {
    for (const child of command.subcommands) {
      // A misspelt command of the root is not taken for another command's argument.
      const near = `${child.name()}x`;
      await told([...path, near], child.name(), near);
      await walk(child, [...path, child.name()]);
    }
    for (const { long } of command.options) {
      if (long) await told([...path, `${long}x`], long, `${long}x`);
    }
  };
  await walk(root, []);
});

test('help shows what --help does, for whatever command', async () => {
  await using d = await desk();
  for (const path of [['keyring'], ['keyring', 'create'], ['help'], ['backup'], ['age']]) {
    const help = await d.kms(['help', ...path]);
    assert.deepEqual(pick(help), pick(await d.kms([...path, '--help'])));
    assert.equal(help.code, 0);
  }
});

test('on a terminal help fits its width, with titles in bold unless NO_COLOR is set', async () => {
  await using d = await desk();
  for (const leaf of leavesOf(grammar())) {
    const path = leaf.fullName().split(' ').slice(1);
    const { stdout } = await d.kms([...path, '--help'], { tty: { stdout: true, columns: 64 } });
    assert.ok(stdout.startsWith('\x1b[1mUsage:\x1b[22m kms '), stdout);
    const prose = stripVTControlCharacters(stdout).split('\nExamples:')[0] ?? '';
    for (const line of prose.split('\n')) assert.ok(line.length <= 64 || !line.trim().includes(' '), line);
  }
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
    assert.match((await d.kms('--help', { tty: { stdout: true, columns: 64 }, env })).stdout, /^Usage: kms /);
  }
});

const wrong: readonly (readonly [line: string, stderr: string])[] = [
  ['keyrng list', "kms: unknown command 'keyrng'; did you mean keyring? See `kms --help`\n"],
  ['help keyrng', "kms: unknown command or guide 'keyrng'; did you mean keyring? See `kms --help`\n"],
  ['help tuor', "kms: unknown command or guide 'tuor'; did you mean tour? See `kms --help`\n"],
  ['help oprator', "kms: unknown command or guide 'oprator'; did you mean operator? See `kms --help`\n"],
  ['help tuor more', "kms: unknown command or guide 'tuor'; did you mean tour? See `kms --help`\n"],
  [
    'ls',
    "kms: unknown command 'ls'; did you mean one of keyring list, key list, secret list, tang list, …? See `kms --help`\n",
  ],
  [
    'help ls',
    "kms: unknown command or guide 'ls'; did you mean one of keyring list, key list, secret list, tang list, …? See `kms --help`\n",
  ],
  ['rekey', "kms: unknown command 'rekey'; did you mean tenant rekey? See `kms --help`\n"],
  ['transit list', "kms: unknown command 'transit'; did you mean key? See `kms --help`\n"],
  ['serve --port 80', "kms: unknown option '--port'; did you mean --listen? See `kms serve --help`\n"],
  ['keyring delete r --force', "kms: unknown option '--force'; did you mean --yes? See `kms keyring delete --help`\n"],
  [
    'keyring list --token t',
    "kms: unknown option '--token'; did you mean --api-key-file? See `kms keyring list --help`\n",
  ],
  ['help keyring nonsense', "kms: unknown command 'nonsense'; see `kms keyring --help`\n"],
  ['keyring creat x', "kms: unknown command 'creat'; did you mean create? See `kms keyring --help`\n"],
  ['keyring list --jsn', "kms: unknown option '--jsn'; did you mean --json? See `kms keyring list --help`\n"],
  ['keyring create', "kms: missing required argument 'NAME'; see `kms keyring create --help`\n"],
  [
    'keyring show a b',
    "kms: too many arguments for 'show'. Expected 1 argument but got 2; see `kms keyring show --help`\n",
  ],
  ['keyring list --limit', "kms: option '--limit <N>' argument missing; see `kms keyring list --help`\n"],
  ['keyring list --data', "kms: option '--data <DIR>' argument missing; see `kms --help`\n"],
  ['apikey create', 'kms: --account is missing; see `kms apikey create --help`\n'],
  ['encrypt', 'kms: --ring is missing; see `kms encrypt --help`\n'],
  [
    'keyring config r --max-encrypt-count -1',
    'kms: --max-encrypt-count: expected a whole number, got "-1"; see `kms keyring config --help`\n',
  ],
  [
    'keyring config r --max-encrypt-count 0',
    'kms: --max-encrypt-count: expected at least 1, got 0; see `kms keyring config --help`\n',
  ],
  [
    'keyring config r --max-encrypt-count 1e3',
    'kms: --max-encrypt-count: expected a whole number, got "1e3"; see `kms keyring config --help`\n',
  ],
  [
    'keyring create r --props [1]',
    'kms: --props: expected a JSON object such as \'{"team": "blue"}\'; see `kms keyring create --help`\n',
  ],
  [
    'keyring create r --props {',
    'kms: --props: expected a JSON object such as \'{"team": "blue"}\'; see `kms keyring create --help`\n',
  ],
  [
    'apikey update k',
    'kms: nothing to change; give --flag, --name, --expires, --allow-address, --any-address, --props, --active, --account or --owner\n',
  ],
  [
    'apikey update k --op add --flag x',
    'kms: --op: expected merge, replace or delete, got "add"; see `kms apikey update --help`\n',
  ],
  [
    'apikey update k --active yes',
    'kms: --active: expected true or false, got "yes"; see `kms apikey update --help`\n',
  ],
  ['apikey list --account a --ring r', 'kms: --account and --ring exclude each other\n'],
  ['keyring list --server kms.example', 'kms: --server: expected an address such as https://kms.example\n'],
  ['keyring list --server ftp://kms.example', 'kms: --server: expected an address such as https://kms.example\n'],
  ['keyring list --api-key-file k', 'kms: --api-key-file goes with --server; see `kms keyring list --help`\n'],
  [
    'keyring list --server https://kms.example --tenant t',
    "kms: --tenant is for the local appliance; over the network the host name decides; use the tenant's own address with --server\n",
  ],
  ['apikey list --wildcard', 'kms: --wildcard goes with --ring; see `kms apikey list --help`\n'],
  ['serve --tang-allow 10.0.0.0/8', 'kms: --tang-allow goes with --tang-listen; see `kms serve --help`\n'],
  [
    'serve --smtp-url smtp://a --smtp-url-file b',
    'kms: --smtp-url and --smtp-url-file exclude each other; see `kms serve --help`\n',
  ],
  ['move --undo --wait 5s', 'kms: --wait goes with --from; see `kms move --help`\n'],
  [
    'master add-custodian passphrase --file k',
    'kms: --file goes with the custodian keyfile; see `kms master add-custodian --help`\n',
  ],
  [
    'activity search --start tomorrow',
    'kms: --start: expected milliseconds since 1970, a time such as 2026-01-02T03:04:05Z, an age such as 24h or 7d, today or yesterday, got "tomorrow"\n',
  ],
  ['activity search --start 2026-02-30', 'kms: --start: there is no day 2026-02-30\n'],
  ['asset search --end 2026-13-01T00:00:00Z', 'kms: --end: there is no day 2026-13-01\n'],
  ['restore x --to 2027-02-29T10:00:00+02:00', 'kms: --to: there is no day 2027-02-29\n'],
  ['apikey create --account a --expires 2031-04-31', 'kms: --expires: there is no day 2031-04-31\n'],
  [
    'apikey create --account a --expires 2020-01-01',
    'kms: --expires: expected a time in the future: the key would never work; see `kms apikey create --help`\n',
  ],
  ['activity search --limit 0', 'kms: --limit: expected at least 1, got 0; see `kms activity search --help`\n'],
  ...['keyring', 'key'].map(
    (noun) =>
      [
        `${noun} config r --rotate-after 1s`,
        `kms: --rotate-after: expected at least 1h, got "1s"; see \`kms ${noun} config --help\`\n`,
      ] as const,
  ),
  ...['init', 'serve'].map(
    (command) =>
      [
        `${command} --host bad/host`,
        `kms: --host: expected host names such as kms.example.org, or * for all others, got "bad/host"; see \`kms ${command} --help\`\n`,
      ] as const,
  ),
  ...['apikey update k --allow-address', 'serve --tang-listen a:1 --tang-allow', 'activity search --address'].map(
    (line) =>
      [
        `${line} foo`,
        `kms: ${line.split(' ').at(-1)}: expected an IPv4 or IPv6 address, or a block of them such as 192.0.2.0/24, got "foo"; see \`kms ${line.split(' --')[0]?.replace(' k', '')} --help\`\n`,
      ] as const,
  ),
  [
    'status --store postgres://u:p@h/d',
    'kms: --store: there is a password in it, and every list of processes shows it; take it out and change it; give it in PGPASSWORD, by --store-password-file FILE, or in KMS_STORE\n',
  ],
  ['serve --server http://x', 'kms: --server: an appliance is served where it is; see `kms serve --help`\n'],
  ['serve --tenant a', 'kms: --tenant: this is about the whole appliance; see `kms serve --help`\n'],
  [
    'serve --listen 127.0.0.1:9 --tang-listen 127.0.0.1:9',
    'kms: --listen and --tang-listen have the same address, 127.0.0.1:9; see `kms serve --help`\n',
  ],
  [
    'keyring delete r',
    'kms: this deletes the keyring r: what it encrypted cannot be decrypted until it is restored, and after 30 days never, and there is no terminal to ask at; add --yes to do it\n',
  ],
  [
    'asset delete a',
    'kms: this deletes the asset a for good: headers that carry it will no longer verify, and there is no terminal to ask at; add --yes to do it\n',
  ],
  [
    'account delete a',
    'kms: this deletes the account a and its API keys for good, and there is no terminal to ask at; add --yes to do it\n',
  ],
];

for (const [line, stderr] of wrong) {
  test(`wrong usage is exit code 2 and one line: ${line}`, async () => {
    await using d = await desk();
    const warned = await d.kms(line);
    assert.deepEqual([warned.code, warned.stdout, warned.stderr.replace(/^kms: warning:.*\n/, '')], [2, '', stderr]);
  });
}

test('a page of nothing is wrong usage, wherever there are pages', async () => {
  await using d = await desk();
  await d.json('init --json');
  const paged = leavesOf(grammar()).filter(({ options }) => options.some(({ long }) => long === '--limit'));
  assert.ok(paged.length >= 8);
  for (const leaf of paged) {
    const words = [...leaf.fullName().split(' ').slice(1), ...(leaf.registeredArguments.length > 0 ? ['x'] : [])];
    const { code, stdout, stderr } = await d.kms([...words, '--limit', '0']);
    assert.deepEqual([code, stdout], [2, ''], words.join(' '));
    assert.match(stderr, /^kms: --limit: expected at least 1, got 0; see .*\n$/);
  }
});

test('kms alone fits a small screen and names every command', async () => {
  await using d = await desk();
  const { stderr } = await d.kms([]);
  const lines = stderr.trimEnd().split('\n');
  assert.ok(lines.length < 24, stderr);
  for (const line of lines) assert.ok(line.length <= 80 && line === line.trimEnd(), line);
  const words = stderr.split(/\s+/);
  for (const command of grammar().subcommands) assert.ok(words.includes(command.name()), command.name());
});

test('help has the commands first, and the options of every command last', async () => {
  await using d = await desk();
  for (const words of [['keyring'], ['tenant']]) {
    const { stdout } = await d.kms([...words, '--help']);
    assert.match(stdout, /\nCommands:\n[\s\S]*\n\nGlobal options:\n {2}--version /);
  }
  assert.match(
    (await d.kms('--help')).stdout,
    /\n\nRun an appliance:\n[\s\S]*\n\nOptions of every command:\n {2}--version /,
  );
});

test('ls is list, and version is --version', async () => {
  await using d = await desk();
  await d.json('init --json');
  assert.deepEqual(pick(await d.kms('tenant ls')), pick(await d.kms('tenant list')));
  assert.deepEqual(pick(await d.kms('help keyring ls')), pick(await d.kms('keyring list --help')));
  assert.deepEqual(pick(await d.kms('version')), [0, `${version}\n`, '']);
  assert.deepEqual(await d.json('version --json'), { version });
});

for (const [line, question] of [
  ['key create x --type rsa2048', 'rsa-2048'],
  ['key create x --use encrpt', 'encrypt'],
  ['keyring create x --kem x2551', 'x25519'],
  ['serve --label-colour rd', 'red'],
  ['activity search --valid ture', 'true'],
  ['tenant update blue --custody clinet', 'client'],
] as const) {
  test(`a word that is nearly right is named: kms ${line}`, async () => {
    await using d = await desk();
    const { code, stderr } = await d.kms(line);
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`, got "\\w+"; did you mean ${question}\\? See \`kms [^\\n]+ --help\`\\n$`));
  });
}

test('every option with a few words names the one that was nearly typed', () => {
  let words = 0;
  for (const { options } of [grammar(), ...leavesOf(grammar())]) {
    for (const option of options) {
      if (!(option instanceof GrammarOption) || !Array.isArray(option.kind.completes)) continue;
      const { kind, long: name = '' } = option;
      const read = (word: string) => (): unknown =>
        kind.read(kind.isRepeated ? [word] : word, { name, io: { cwd: '/' }, seeHelp: '' });
      if (takesAny(read('quite-another'))) continue;
      for (const word of kind.completes ?? []) {
        assert.throws(read(`${word}x`), new RegExp(`${name}: .*; did you mean .+\\?$`), `${name} ${word}x`);
        words++;
      }
    }
  }
  assert.ok(words > 20, String(words));
});

/** Whether the words are only suggested. */
function takesAny(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    return false;
  }
}

test('a tenant that is nearly right is named, for programs too, since it takes no listing', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('tenant create blue --host blue.example --json');
  for (const [name, said] of [
    ['blu', 'there is no tenant blu; did you mean blue?'],
    ['quite-another', 'no tenant has that name; there are: default, blue; check the name or id'],
  ] as const) {
    assert.deepEqual(pick(await d.kms(`keyring list --tenant ${name}`)), [1, '', `kms: ${said}\n`]);
  }
});

test('a name that is nearly right is named, where the caller may list', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('keyring create payroll --json');
  await d.json('key create unseal --json');
  await d.json('account create billing --json');
  const grace = 'user create grace --email grace@example.org --first-name Grace --last-name Hopper --json';
  await d.json(grace);
  const { keyid } = await d.json<{ keyid: string }>('apikey create --account billing --name nightly --json');
  for (const [line, stderr] of [
    ['keyring show payrol', 'kms: there is no keyring payrol; did you mean payroll?\n'],
    ['keyring rotate paryoll', 'kms: there is no keyring paryoll; did you mean payroll?\n'],
    ['key show unsael', 'kms: there is no managed key unsael; did you mean unseal?\n'],
    ['key sign unsea', 'kms: there is no managed key unsea; did you mean unseal?\n'],
    ['account show biling', 'kms: there is no account biling; did you mean billing?\n'],
    ['apikey create --account biling', 'kms: there is no account biling; did you mean billing?\n'],
    ['user show grcae', 'kms: there is no user grcae; did you mean grace?\n'],
    ['tenant show defalt', 'kms: there is no tenant defalt; did you mean default?\n'],
    ['apikey show nightli', `kms: there is no API key nightli; did you mean ${keyid} (nightly)?\n`],
    [`apikey show ${keyid}0`.slice(0, -2), `kms: there is no API key ${keyid.slice(0, -1)}; did you mean ${keyid}?\n`],
  ] as const) {
    assert.deepEqual(pick(await d.kms(line, { tty: { stderr: true } })), [1, '', stderr], line);
  }
  assert.equal(
    (await d.kms('keyring show payrol')).stderr,
    'kms: there is no such keyring; check the name or id\n',
    'a program is told no names',
  );
  assert.equal(
    (await d.kms('account show quite-another', { tty: { stderr: true } })).stderr,
    'kms: there is no such account; check the name or id\n',
  );
});

for (const line of ['', 'keyring', 'apikey']) {
  test(`without a command it shows what there is and is exit code 2: "${line}"`, async () => {
    await using d = await desk();
    const { code, stdout, stderr } = await d.kms(line === '' ? [] : line);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^Usage: kms/);
  });
}

test('a variable of a switch says yes or no, and nothing else is taken for either', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('keyring create r --json');
  const listed = async (said: string): Promise<string> => {
    const { code, stdout, stderr } = await d.kms('keyring list', { env: { KMS_JSON: said } });
    assert.deepEqual([code, stderr], [0, ''], said);
    return stdout;
  };
  for (const yes of ['1', 'true', 'TRUE', 'yes', 'on']) assert.match(await listed(yes), /^\{/, yes);
  for (const no of ['', '0', 'false', 'No', 'off']) assert.doesNotMatch(await listed(no), /\{/, no);
  const wrong: readonly [line: string, variable: string, option: string][] = [
    ['keyring list', 'KMS_JSON', '--json'],
    ['keyring list', 'KMS_DELETED', '--deleted'],
    ['keyring delete r', 'KMS_YES', '--yes'],
    ['tenant delete other', 'KMS_YES', '--yes'],
    ['serve --listen 127.0.0.1:0', 'KMS_BEHIND_PROXY', '--behind-proxy'],
  ];
  for (const [line, variable, option] of wrong) {
    const { code, stdout, stderr } = await d.kms(line, { env: { [variable]: 'maybe' } });
    assert.deepEqual([code, stdout], [2, ''], line);
    assert.match(stderr, new RegExp(`^kms: ${option}: expected true or false in the environment, got "maybe"; .*\n$`));
  }
  assert.equal((await d.kms('keyring show r')).code, 0);
});

test('every option that takes a time or an age refuses what is neither, and says what a number probably means', () => {
  const seeHelp = '';
  const io = grammar().session.io;
  const nothing = [
    '',
    '0',
    '10 PM',
    '2026-12-31 (note)',
    '27.11.2026',
    '2026-11',
    'tomorrow',
    '5',
    '1.5h',
    '-1d',
    '٣d',
  ];
  const meant: readonly (readonly [typed: string, meant: string])[] = [
    ['1795808647', '2026-11-27T19:44:07.000Z'],
    ['1795808647000000', '2026-11-27T19:44:07.000Z'],
    ['20261127', '2026-11-27'],
    ['202611272007', '2026-11-27T20:07:00Z'],
    ['20261127200708', '2026-11-27T20:07:08Z'],
    ['20261127T200708Z', '2026-11-27T20:07:08Z'],
    ['2026-11-27T20:07:08-0500', '2026-11-27T20:07:08-05:00'],
  ];
  const seen: string[] = [];
  for (const leaf of leavesOf(grammar())) {
    for (const option of leaf.options) {
      if (!(option instanceof GrammarOption) || !/\b(?:TIME|AGE)\b/.test(option.kind.placeholder ?? '')) continue;
      const name = option.long ?? '';
      const read = (text: string) => option.kind.read(text, { name, io, seeHelp });
      for (const text of nothing)
        assert.throws(() => read(text), { code: 'usage' }, `${leaf.fullName()} ${name} ${text}`);
      for (const [typed, time] of meant) {
        const problem = { code: 'usage', ...(option.kind.about.includes('UTC') && { message: endsWith(time) }) };
        assert.throws(() => read(typed), problem, `${leaf.fullName()} ${name} ${typed}`);
      }
      if (option.kind.about.includes('UTC')) seen.push(`${leaf.fullName()} ${name}`);
    }
  }
  assert.deepEqual(seen.sort(), [
    ...['kms activity search --end', 'kms activity search --start', 'kms apikey create --expires'],
    ...['kms apikey update --expires', 'kms asset search --end', 'kms asset search --start'],
    ...['kms key config --activate-at', 'kms key config --deactivate-at', 'kms key create --activate-at'],
    ...['kms key create --deactivate-at', 'kms restore --to'],
  ]);
});

function endsWith(time: string): RegExp {
  return new RegExp(`got "[^"]+"; did you mean ${time.replaceAll('.', '\\.')}\\?$`);
}

test('a path of nothing is wrong usage, never the directory in which the command was typed', async () => {
  await using d = await desk();
  for (const line of ['init --data', 'status --data', 'init --key-file', 'serve --backup-to', 'doctor --data']) {
    const { code, stdout, stderr } = await d.kms([...line.split(' '), '']);
    assert.deepEqual([code, stdout], [2, ''], line);
    assert.match(stderr, /^kms: --[a-z-]+: expected a path, got nothing; see .*\n$/, line);
  }
  for (const [line, name] of [
    ['encrypt --ring r x -o', '--output'],
    ['decrypt -o', '--output'],
    ['activity export -o', '--output'],
    ['activity verify --file', '--file'],
    ['move --to', '--to'],
    ['encrypt --ring r', 'FILE'],
    ['decrypt', 'FILE'],
    ['inspect', 'FILE'],
    ['key encrypt r', 'FILE'],
    ['key import r --from', '--from'],
    ['key export r --plaintext -o', '--output'],
    ['backup create', 'OUT'],
    ['backup verify', 'FILE'],
    ['restore', 'FROM'],
    ['upgrade', 'FILE'],
  ] as const) {
    const { code, stdout, stderr } = await d.kms([...line.split(' '), ''], { stdin: 'x' });
    assert.deepEqual([code, stdout], [2, ''], `${line}: ${stderr}`);
    assert.match(stderr, new RegExp(`^kms: ${name}: expected a path, got nothing; see .*\n$`), line);
  }
  assert.deepEqual(readdirSync(d.path('.')), []);
});

test('nothing to talk to is exit code 3, wherever the data directory was named', async () => {
  await using d = await desk();
  const expected = (dir: string) => [
    3,
    '',
    `kms: nothing to talk to: the data directory ${dir} does not exist; make one with \`kms init\`, name another with --data DIR, or a server with --server URL\n`,
  ];
  assert.deepEqual(pick(await d.kms('keyring list')), expected(d.path('kms-data')));
  assert.deepEqual(pick(await d.kms('keyring list --data there')), expected(d.path('there')));
  assert.deepEqual(pick(await d.kms('--data there keyring list')), expected(d.path('there')));
  assert.deepEqual(pick(await d.kms('keyring list', { env: { KMS_DATA: '/env' } })), expected('/env'));
  assert.deepEqual(pick(await d.kms('keyring list --data /typed', { env: { KMS_DATA: '/env' } })), expected('/typed'));
});

test('a server that does not answer is exit code 3', async () => {
  await using d = await desk();
  const { code, stdout, stderr } = await d.kms('keyring list --server http://127.0.0.1:9', {
    env: { KMS_API_KEY: 'kms_x' },
  });
  assert.deepEqual([code, stdout], [3, '']);
  assert.match(stderr, /^kms: cannot reach http:\/\/127\.0\.0\.1:9: .+\n$/);
});

function pick({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }): unknown[] {
  return [code, stdout, stderr];
}

test('a name that is taken is told with the name and the kind of thing that has it', async () => {
  await using d = await desk();
  await d.json('init --json');
  for (const [line, noun] of [
    ['keyring create payroll', 'a keyring'],
    ['key create orders', 'a managed key'],
    ['asym create letters', 'a keyring'],
    ['account create billing', 'an account'],
    ['tenant create second --host second.example', 'a tenant'],
  ] as const) {
    const more = line.startsWith('tenant') ? '' : ' --tenant default';
    assert.equal((await d.kms(`${line}${more}`)).code, 0, line);
    const name = line.split(' ')[2];
    const keyFile = / (?:payroll|letters)/.test(line) ? ' --private-key-out other.key' : '';
    const { code, stdout, stderr } = await d.kms(`${line}${more}${keyFile}`);
    assert.deepEqual([code, stdout, stderr], [1, '', `kms: there is already ${noun} ${name}\n`]);
  }
});
