// Directories where the command line keeps private keys and pinned public keys: those of two tenants or two appliances
// never collide.
import assert from 'node:assert/strict';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { type Desk, desk } from './kms.ts';
import { serving } from './serving.ts';

interface House extends Desk {
  /** The appliance's id. */
  readonly id: string;
  /** Tenant ids by name. */
  readonly tenants: Readonly<Record<string, string>>;
  readonly keys: Readonly<Record<string, string>>;
  readonly rings: string;
  /** All files below the directory of keys, relative to it. */
  files(kind?: string): Promise<string[]>;
  done(line: string, tenant?: string, stdin?: string): Promise<string>;
}

/** An appliance with the tenants `default` and `blue`. */
async function house(data = 'kms-data', place?: Desk): Promise<House> {
  const d = place ?? (await desk());
  const root = await d.json<{ apiKey: { key: string } }>(`init --json --data ${data}`);
  const blue = await d.json<{ apiKey: { key: string } }>(`tenant create blue --host localhost --json --data ${data}`);
  const { applianceId: id } = await d.json<{ applianceId: string }>(`status --json --data ${data}`);
  const list = await d.json<{ data: { name: string; id: string }[] }>(`tenant list --json --data ${data}`);
  return {
    ...d,
    id,
    tenants: Object.fromEntries(list.data.map(({ name, id }) => [name, id])),
    keys: { default: root.apiKey.key, blue: blue.apiKey.key },
    rings: d.path('config', 'kms', 'rings'),
    async files(kind = 'rings') {
      const directory = d.path('config', 'kms', kind);
      const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
      const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
      return files.map((path) => path.slice(directory.length + 1)).sort();
    },
    async done(line, tenant = 'default', stdin = '') {
      const { code, stdout, stderr } = await d.kms(`${line} --tenant ${tenant} --data ${data}`, { stdin });
      assert.equal(code, 0, `${line} of ${tenant}: ${stderr}`);
      return line.startsWith('decrypt') ? stdout : stderr;
    },
  };
}

for (const order of [
  ['default', 'blue'],
  ['blue', 'default'],
] as const) {
  test(`rings of one name of two tenants, made by ${order.join(' and then ')}`, async () => {
    await using d = await house();
    const [first, second] = order;
    for (const kind of ['rings', 'asym'] as const) {
      const create = kind === 'rings' ? 'keyring create Payroll --kem x25519' : 'asym create Payroll';
      for (const tenant of order) {
        const kept = d.path('config', 'kms', kind, d.id, ...(tenant === second ? [d.tenants[second] ?? ''] : []));
        const said = await d.done(create, tenant);
        assert.equal(said.split(';')[0], `kms: the private key is in ${kept}/payroll.key`);
        assert.equal((await stat(kept)).mode & 0o777, 0o700);
        assert.equal((await stat(join(kept, 'payroll.key'))).mode & 0o777, 0o600);
      }
      assert.equal((await d.files(kind)).length, 2);
    }
    // Each tenant encrypts and decrypts with its own pair, with the private key and to the public key.
    for (const tenant of order) {
      await d.done(`encrypt --ring payroll -o ${tenant}.1`, tenant, `${tenant} 1`);
      const said = await d.done(`encrypt --ring payroll --recipient -o ${tenant}.2`, tenant, `${tenant} 2`);
      assert.ok(said.includes(`${d.rings}/${d.id}/${d.tenants[tenant]}/payroll.pub`), said);
      assert.equal(await d.done(`encrypt --ring payroll --recipient -o ${tenant}.3`, tenant, `${tenant} 3`), '');
    }
    for (const tenant of order) {
      for (const n of [1, 2, 3]) assert.equal(await d.done(`decrypt ${tenant}.${n}`, tenant), `${tenant} ${n}`);
    }
    // An upgrade finds that tenant's file, and leaves the other's alone.
    const [own, other] = [join(d.id, 'payroll.key'), join(d.id, d.tenants[second] ?? '', 'payroll.key')];
    const read = (path: string) => readFile(join(d.rings, path), 'utf8');
    const before = [await read(own), await read(other)];
    for (const [tenant, path, changed] of [
      [second, other, 1],
      [first, own, 0],
    ] as const) {
      await d.done('keyring upgrade payroll', tenant);
      assert.equal((await read(path)).split('BEGIN PRIVATE KEY').length - 1, 2);
      assert.ok((await read(path)).startsWith(before[changed] ?? assert.fail()));
      await d.done(`encrypt --ring payroll --recipient -o ${tenant}.4`, tenant, `${tenant} 4`);
      for (const n of [1, 2, 3, 4]) assert.equal(await d.done(`decrypt ${tenant}.${n}`, tenant), `${tenant} ${n}`);
    }
    assert.equal((await read(own)).split('BEGIN').length, 3);
    // A third ring of that name has no free path: it is not made, and nothing changes.
    const all = await Promise.all((await d.files()).map(read));
    await d.done('keyring delete payroll --yes', second);
    const third = await d.kms(`keyring create payroll --tenant ${second}`);
    assert.deepEqual([third.code, third.stdout], [1, '']);
    assert.ok(third.stderr.startsWith(`kms: ${d.rings}/${other} exists already and is not overwritten; `));
    assert.deepEqual(await Promise.all((await d.files()).map(read)), all);
    // An unreadable file does not keep the other from being read.
    await writeFile(join(d.rings, own), 'nonsense');
    const restored = await d.json<{ data: { id: string }[] }>(`keyring list --deleted --json --tenant ${second}`);
    await d.done(`keyring restore ${restored.data[0]?.id}`, second);
    assert.equal(await d.done(`decrypt ${second}.1`, second), `${second} 1`);
  });
}

test('a ring whose name is taken leaves the record of that request alone, and the kept key', async () => {
  await using d = await desk();
  await d.json('init --json');
  for (const noun of ['keyring', 'asym'] as const) {
    await d.json(`${noun} create payroll --json`);
    const before = await d.json<{ data: unknown[] }>('activity search --all --json');
    const { code, stdout, stderr } = await d.kms(`${noun} create payroll`);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^kms: there is already /);
    const { data } = await d.json<{ data: { action: string; status: number }[] }>('activity search --all --json');
    assert.deepEqual(
      data.slice(0, data.length - before.data.length).map(({ action, status }) => [action, status]),
      [
        [`${noun}.create`, 400],
        ['activity.read', 200],
      ],
    );
  }
  const files = await readdir(d.path('config', 'kms'), { recursive: true });
  assert.equal(files.filter((name) => /payroll/.test(name)).length, 2, String(files));
});

test('what an earlier build kept is read on, whichever tenant comes first', async () => {
  await using d = await house();
  await d.done('keyring create payroll');
  await d.done('encrypt --ring payroll -o default.1', 'default', 'one');
  await d.done('encrypt --ring payroll --recipient -o default.2', 'default', 'two');
  // The public key at its earlier path; the private key is still at the first.
  const earlier = join(d.rings, d.id, 'payroll.pub');
  const own = join(d.rings, d.id, d.tenants.default ?? '', 'payroll.pub');
  await rename(own, earlier);
  await rm(dirname(own), { recursive: true });
  const key = await readFile(join(d.rings, d.id, 'payroll.key'), 'utf8');
  await d.done('keyring create payroll', 'blue');
  const blue = (name: string) =>
    d.kms(`encrypt --ring payroll --recipient --tenant blue -o ${name}`, { stdin: 'blue' });
  const early = await blue('blue.1');
  assert.equal(early.code, 1);
  assert.ok(
    early.stderr.endsWith(
      `if the keyring's owner says that its key pair was changed, or if this one is another tenant's, remove ${earlier}\n`,
    ),
    early.stderr,
  );
  // Once its own tenant has used it, its owner is known.
  assert.equal(await d.done('encrypt --ring payroll --recipient -o default.3', 'default', 'three'), '');
  assert.equal(await readFile(own, 'utf8'), await readFile(earlier, 'utf8'));
  const late = await blue('blue.2');
  assert.equal(late.code, 0, late.stderr);
  assert.match(late.stderr, /is remembered in/);
  assert.equal(await d.done('decrypt blue.2', 'blue'), 'blue');
  for (const [name, text] of [
    ['default.1', 'one'],
    ['default.2', 'two'],
    ['default.3', 'three'],
  ] as const) {
    assert.equal(await d.done(`decrypt ${name}`), text);
  }
  assert.equal(await readFile(join(d.rings, d.id, 'payroll.key'), 'utf8'), key);
  assert.equal((await d.files()).length, 5);
});

test('an upgrade goes on remembering where an earlier build did, and never for another tenant', async () => {
  await using d = await house();
  for (const tenant of ['default', 'blue']) await d.done('keyring create payroll --kem x25519', tenant);
  await d.done('encrypt --ring payroll --recipient -o a', 'default', 'a');
  const earlier = join(d.rings, d.id, 'payroll.pub');
  await rename(join(d.rings, d.id, d.tenants.default ?? '', 'payroll.pub'), earlier);
  const before = await readFile(earlier, 'utf8');
  await d.done('keyring upgrade payroll', 'blue');
  assert.equal(await readFile(earlier, 'utf8'), before, "it is not blue's");
  await d.done('keyring upgrade payroll', 'default');
  assert.notEqual(await readFile(earlier, 'utf8'), before);
  assert.equal(await d.done('encrypt --ring payroll --recipient -o b', 'default', 'b'), '');
  await d.done('encrypt --ring payroll --recipient -o c', 'blue', 'c');
});

test('over the network, by the names that tenants have, two at once keep both keys', async () => {
  await using d = await house();
  const server = await serving(d);
  try {
    const { port } = new URL(server.url);
    const at = { default: `http://127.0.0.1:${port}`, blue: `http://localhost:${port}` };
    const over = (tenant: 'default' | 'blue', line: string, stdin = '') =>
      d.kms(`${line} --server ${at[tenant]}`, { env: { KMS_API_KEY: d.keys[tenant] ?? '' }, stdin });
    const both = ['default', 'blue'] as const;
    for (let round = 0; round < 3; round++) {
      const name = `ring-${round}`;
      const made = await Promise.all(both.map((tenant) => over(tenant, `keyring create ${name}`)));
      for (const { code, stderr } of made) assert.equal(code, 0, stderr);
      for (const tenant of both) {
        for (const how of ['', ' --recipient']) {
          const file = `${tenant}-${name}${how.trim()}`;
          const { code, stderr } = await over(tenant, `encrypt --ring ${name}${how} -o ${file}`, tenant);
          assert.equal(code, 0, stderr);
          assert.equal((await over(tenant, `decrypt ${file}`)).stdout, tenant);
        }
      }
    }
    assert.equal((await d.files()).length, 3 * 4);
    assert.equal((await d.files('addresses')).length, 3 * 2);
  } finally {
    await server.stop();
  }
});

test('two appliances with two tenants each, and a ring of one name in all four', async () => {
  await using d = await desk();
  const houses = [await house('one', d), await house('two', d)];
  for (const [n, { done }] of houses.entries()) {
    for (const tenant of ['default', 'blue']) {
      await done('keyring create payroll', tenant);
      await done(`encrypt --ring payroll --recipient -o ${n}.${tenant}`, tenant, `${n} ${tenant}`);
    }
  }
  for (const [n, { done }] of houses.entries()) {
    for (const tenant of ['default', 'blue']) {
      assert.equal(await done(`decrypt ${n}.${tenant}`, tenant), `${n} ${tenant}`);
    }
  }
  const [one, two] = houses;
  assert.deepEqual(
    await one?.files(),
    [one, two]
      .flatMap((each) => [
        `${each?.id}/payroll.key`,
        `${each?.id}/${each?.tenants.blue}/payroll.key`,
        `${each?.id}/${each?.tenants.blue}/payroll.pub`,
        `${each?.id}/${each?.tenants.default}/payroll.pub`,
      ])
      .sort(),
  );
});

test("no key of one tenant is wrapped to another tenant's pair, though both are kept here", async () => {
  await using d = await house();
  // The first tenant's key at the shared path, the other's at its own.
  for (const tenant of ['default', 'blue']) {
    await d.done('keyring create pay --kem x25519', tenant);
    await d.done(`encrypt --ring pay -o ${tenant}.old`, tenant, 'old');
    await d.done('keyring upgrade pay', tenant);
  }
  const { ring } = await d.json<{ ring: { publicKey: string } }>('keyring show pay --json --tenant default');
  await writeFile(d.path('default.pub'), ring.publicKey);
  await d.done('keyring upgrade pay --public-key default.pub', 'blue');
  const keys = () => d.json<object>('keyring keys pay --json --tenant blue');
  const before = await keys();
  const own = join(d.rings, d.id, d.tenants.blue ?? '', 'pay.key');
  const other = join(d.rings, d.id, 'pay.key');
  for (const line of ['', ' --rewrap']) {
    const refused = await d.kms(`keyring upgrade pay --tenant blue${line}`);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.ok(
      refused.stderr.startsWith(
        `kms: the keyring pay had the pair in ${own} before and has another now (its private key is in ${other}, which opens none of its earlier keys): that would be a rollback, and nothing was changed; `,
      ),
      refused.stderr,
    );
  }
  assert.deepEqual(await keys(), before);
  // The tenant's own pair is put back on request, and then alone opens the tenant's keys.
  const back = await d.kms('keyring upgrade pay --rewrap --tenant blue --put-back');
  assert.match(back.stdout, /^rewrapped {4}1\nleft {9}1$/m);
  assert.equal(await d.done('decrypt blue.old', 'blue'), 'old');
});

test('where a file has the private key and opens no earlier key, or none has it, the pair is left and that is said', async () => {
  await using d = await house();
  await d.done('keyring create pay --kem x25519 --private-key-out elsewhere.pem');
  await d.done('keyring create other', 'blue');
  const kept = join(d.rings, d.id, 'other.key');
  const { ring } = await d.json<{ ring: { publicKey: string } }>('keyring show other --json --tenant blue');
  await writeFile(d.path('other.pub'), ring.publicKey);
  await d.done('keyring upgrade pay --public-key other.pub');
  const keys = await d.json<object>('keyring keys pay --json --tenant default');
  const left = 'kms: pay is hybrid already and was left as it is: the private key of its pair is';
  assert.equal(await d.done('keyring upgrade pay'), `${left} not here\n`);
  await rename(kept, join(d.rings, d.id, 'pay.key'));
  assert.equal(
    await d.done('keyring upgrade pay'),
    `${left} in ${d.rings}/${d.id}/pay.key, which opens none of its earlier keys\n`,
  );
  const refused = await d.kms('keyring upgrade pay --rewrap --tenant default');
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, /no private key in that file opens an earlier key of the keyring pay: nothing was/);
  assert.deepEqual(await d.json('keyring keys pay --json --tenant default'), keys);
});

test('who leaves several tenants is told to name one, whatever is kept here', async () => {
  await using d = await house();
  for (const tenant of ['default', 'blue']) {
    await d.done('keyring create both', tenant);
    await d.done(`encrypt --ring both --recipient -o both.${tenant}`, tenant, tenant);
  }
  await d.done('keyring create one', 'blue');
  await rm(join(d.rings, d.id, 'both.key'));
  await d.done('encrypt --ring both -o blue.kms', 'blue', 'blue');
  const files = await d.files();
  const lines = [
    'encrypt --ring both -o new.kms',
    'encrypt --ring one -o new.kms',
    'encrypt --ring both --recipient -o new.kms',
    'decrypt blue.kms -o new',
    'decrypt both.blue -o new',
    'keyring create both',
    'asym create both',
    'keyring upgrade both',
    'keyring show both',
    'age recipient both',
  ];
  const refused = async (line: string) => {
    const { code, stdout, stderr } = await d.kms(line);
    assert.deepEqual([line, code, stdout], [line, 2, '']);
    assert.match(
      stderr,
      /^kms: name a tenant with --tenant, one of: default, blue; `kms tenant use NAME` [^\n]+\n$/,
      line,
    );
  };
  for (const line of lines) await refused(line);
  const server = await serving(d);
  try {
    for (const line of [...lines, `kubernetes-plugin --ring both --listen unix://${d.path('k.sock')}`]) {
      await refused(line);
    }
  } finally {
    await server.stop();
  }
  assert.deepEqual(await d.files(), files);
});
