// Parsing the URL of a shared store, what is refused in it, and where its password and certificates come from.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { postgresConfig, type StoreSource, storeName } from '../../src/platform/store-url.ts';
import { authority } from '../support/certificates.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-store-url-'));
after(() => rmSync(base, { recursive: true, force: true }));

function file(name: string, text: string, mode = 0o600): string {
  const path = join(base, name);
  writeFileSync(path, text, { mode });
  return path;
}

const config = (url: string, { env = {}, ...more }: Partial<Omit<StoreSource, 'env'>> & { env?: object } = {}) =>
  postgresConfig({ url, isListed: true, env: (name) => new Map(Object.entries(env)).get(name), ...more });

test('hosts, ports, users, databases and whether TLS is spoken', async () => {
  const me = userInfo().username;
  const table: [string, string, string, string][] = [
    ['postgres://kms@db.example.org/store', 'db.example.org:5432 tls', 'kms', 'store'],
    ['postgresql://kms@db.example.org', 'db.example.org:5432 tls', 'kms', 'kms'],
    ['postgres://db', 'db:5432 tls', me, me],
    ['postgres://k%40s@db:5433/a%2Fb', 'db:5433 tls', 'k@s', 'a/b'],
    ['postgres://kms@one,two:6000,[::1]:6001/x', 'one:5432 tls, two:6000 tls, ::1:6001', 'kms', 'x'],
    ['postgres://kms@one,two/x?target_session_attrs=read-write', 'one:5432 tls, two:5432 tls', 'kms', 'x'],
    ['postgres://kms@[2001:db8::1]/x', '2001:db8::1:5432 tls', 'kms', 'x'],
    ['postgres://kms@localhost/x', 'localhost:5432', 'kms', 'x'],
    ['postgres://kms@127.0.0.1/x?sslmode=disable', '127.0.0.1:5432', 'kms', 'x'],
    ['postgres://kms@localhost/x?sslmode=verify-full', 'localhost:5432 tls', 'kms', 'x'],
    ['postgres:///x', '/var/run/postgresql:5432', me, 'x'],
    ['postgres://kms@/x?host=/run/pg', '/run/pg:5432', 'kms', 'x'],
    ['postgres://kms@/x?host=%2Frun%2Fpg&port=5433', '/run/pg:5433', 'kms', 'x'],
    ['postgres://kms@%2Frun%2Fpg/x', '/run/pg:5432', 'kms', 'x'],
    ['postgres:///x?host=/run/pg,db&port=1,2', '/run/pg:1, db:2 tls', me, 'x'],
    ['postgres:///x?host=/run/pg&sslmode=verify-full', '/run/pg:5432', me, 'x'],
  ];
  for (const [url, places, user, database] of table) {
    const found = await config(url);
    const text = found.hosts.map(({ host, port, tls }) => `${host}:${port}${tls ? ' tls' : ''}`).join(', ');
    assert.deepEqual([text, found.user, found.database], [places, user, database], url);
  }
  const { user, database } = await config('postgres://db', { env: { PGUSER: 'other' } });
  assert.deepEqual([user, database], ['other', 'other']);
});

test('what is wrong with an address is said, and nothing of it repeated', async () => {
  const secret = 'xyzzy';
  const table: [string, string, RegExp][] = [
    ['kms-data', 'usage', /expected an address/],
    ['mysql://u@h/d', 'usage', /expected an address/],
    [`postgres://u:${secret}@x@h/d`, 'usage', /expected an address/],
    [`postgres://u:p/${secret}@h/d`, 'usage', /expected an address/],
    [`postgres://u:p?${secret}@h/d`, 'usage', /port|parameter/],
    [`postgres://u:p#${secret}@h/d`, 'usage', /expected an address/],
    [`postgres://u:%${secret}@h/d`, 'usage', /% is not followed/],
    [`postgres://u:${secret}/d`, 'usage', /port/],
    ['postgres://u@h:0/d', 'usage', /port/],
    ['postgres://u@h:65536/d', 'usage', /port/],
    ['postgres://u@h h/d', 'usage', /host/],
    ['postgres://u@h/d?host=g', 'usage', /twice/],
    ['postgres://u@h/d?port=1', 'usage', /port/],
    ['postgres:///d?host=a,b,c&port=1,2', 'usage', /differ in number/],
    ['postgres://u@h/d?sslcrl=x', 'usage', /unknown parameter/],
    ['postgres://u@h/d?sslmode=disable&sslmode=verify-full', 'usage', /twice/],
    ['postgres://u@h/d?target_session_attrs=any', 'usage', /read-write/],
    ['postgres://u@h/d?sslcert=x', 'usage', /belong together/],
    ['postgres://u@h/d?sslmode=disable', 'refused', /in clear/],
    ['postgres://u@localhost,h/d?sslmode=disable', 'refused', /to h in clear/],
    ['postgres://u@h/d?sslmode=require', 'refused', /anybody who answers/],
    ['postgres://u@localhost/d?sslmode=prefer', 'refused', /anybody who answers/],
    [`postgres://u:${secret}@h/d`, 'usage', /list of processes/],
    [`postgres://u@h/d?password=${secret}`, 'usage', /list of processes/],
  ];
  for (const [url, code, pattern] of table) {
    await assert.rejects(config(url), (error: unknown) => {
      assert.ok(error instanceof Error && 'code' in error && 'hint' in error, url);
      assert.equal(error.code, code, url);
      assert.match(error.message, pattern, url);
      assert.ok(!`${error.message} ${error.hint} ${error.stack}`.includes(secret), url);
      return true;
    });
  }
});

test('where the password comes from, the nearest first', async () => {
  const passwordFile = file('password', 'from the file\n');
  const passFile = file(
    'pgpass',
    '# *:*:*:*:no\nother:*:*:*:no\ndb:5432:*:k\\:s:p\\\\a\\:ss\nlocalhost:*:store:kms:near\n',
  );
  const asked = async (url: string, more: Parameters<typeof config>[1]) => {
    const { hosts, password } = await config(url, more);
    return hosts[0] && password?.(hosts[0]);
  };
  const env = { PGPASSWORD: 'from the environment', PGPASSFILE: passFile };
  const url = 'postgres://kms:from%20the%20URL@db/store';
  assert.equal(await asked(url, { isListed: false, env, passwordFile }), 'from the file');
  assert.equal(await asked(url, { isListed: false, env }), 'from the URL');
  assert.equal(await asked('postgres://kms@db/store', { env }), 'from the environment');
  const only = { env: { PGPASSFILE: passFile } };
  assert.equal(await asked('postgres://k%3As@db/store', only), 'p\\a:ss');
  assert.equal(await asked('postgres://kms@/store?host=/run/pg', only), 'near');
  assert.equal(await asked('postgres://kms@localhost/other', only), undefined);
  assert.equal(await asked('postgres://kms@db/store', only), undefined);
  // The file is read again each time, so that a new password counts without a restart.
  const { hosts, password } = await config('postgres://kms@db/store', { passwordFile });
  file('password', 'the next one\r\n');
  assert.equal(hosts[0] && (await password?.(hosts[0])), 'the next one');
});

test('files that others can read, that are missing or hold something else are refused', async () => {
  const { cert, sign } = await authority('a');
  const own = await sign({ names: ['kms'] });
  const root = file('root.pem', cert);
  const [certFile, keyFile] = [file('kms.crt', own.cert), file('kms.key', own.key)];
  const url = `postgres://kms@db/store?sslrootcert=${root}&sslcert=${certFile}&sslkey=`;
  const good = await config(`${url}${keyFile}`);
  const [first, again] = [await good.tls?.(), await good.tls?.()];
  assert.ok(first?.secureContext && first.secureContext === again?.secureContext, 'made once');
  const other = await sign({ names: ['kms'] });
  const wrong: [string, Parameters<typeof config>[1], RegExp][] = [
    [`${url}${file('open.key', own.key, 0o644)}`, {}, /other users can read it/],
    [`${url}${file('other.key', other.key)}`, {}, /no private key that belongs/],
    [`${url}${join(base, 'none')}`, {}, /none: there is no such file/],
    [`postgres://kms@db/store?sslrootcert=${join(base, 'none')}`, {}, /none: there is no such file/],
    ['postgres://kms@db', { passwordFile: file('open', 'x', 0o644) }, /holds a password/],
    ['postgres://kms@db', { passwordFile: file('empty', '\n') }, /the file is empty/],
    ['postgres://kms@db', { passwordFile: join(base, 'none') }, /none: there is no such file/],
    ['postgres://kms@db', { env: { PGPASSFILE: file('open.pgpass', 'x', 0o644) } }, /holds passwords/],
  ];
  for (const [address, more, pattern] of wrong) {
    await assert.rejects(config(address, more), (error: unknown) => {
      assert.ok(error instanceof Error && 'code' in error);
      assert.equal(error.code, 'refused');
      assert.match(error.message, pattern);
      return true;
    });
  }
});

test('the name of a store has no password in it', () => {
  const table = [
    ['postgres://kms:secret@db:5433,[::1]/store?sslrootcert=/x', 'postgres://kms@db:5433,[::1]/store'],
    ['postgres://db/?password=secret', 'postgres://db'],
    ['postgres:///s%40x', 'postgres:///s%40x?host=/var/run/postgresql'],
    ['postgres://k:x@/?host=/run/pg,db&port=1,2', 'postgres://k@/?host=/run/pg,db&port=1,2'],
  ];
  for (const [url = '', name] of table) assert.equal(storeName(url), name);
});
