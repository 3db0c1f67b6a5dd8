// Connections to a real PostgreSQL: passwords, certificates, unreachable servers and standbys; and error messages that
// give advice and reveal nothing.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Client } from 'pg';
import { postgresConfig } from '../../src/platform/store-url.ts';
import { EngineError } from '../../src/store/shared/engine.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { authority } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';

const programs = postgresPrograms();

if (!programs) {
  test('connections to PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const base = mkdtempSync(join(tmpdir(), 'kms-connections-'));
  const file = (name: string, text: string): string => {
    const path = join(base, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const yesterday = new Date(Date.now() - 86_400_000);
  const [good, other] = [await authority('good'), await authority('other')];
  const server = await good.sign({ names: ['localhost', '127.0.0.1'] });
  const root = file('good.pem', good.cert);
  const postgres = new Postgres(programs, {
    port: await freePort(),
    settings: ['ssl=on', 'ssl_ca_file=ca.crt', 'password_encryption=scram-sha-256'],
    files: {
      'server.crt': server.cert,
      'server.key': server.key,
      'ca.crt': good.cert,
      'pg_hba.conf': [
        'local all kms trust',
        'hostssl all shown 127.0.0.1/32 cert',
        'hostssl all secure 127.0.0.1/32 scram-sha-256',
        'host all secret 127.0.0.1/32 scram-sha-256',
      ].join('\n'),
    },
  });
  after(() => {
    postgres.end();
    rmSync(base, { recursive: true, force: true });
  });
  const admin = async (text: string): Promise<void> => {
    const client = new Client(postgres.config);
    await client.connect();
    await client.query(text);
    await client.end();
  };
  for (const name of ['secret', 'secure', 'shown']) {
    await admin(`CREATE ROLE ${name} LOGIN PASSWORD 'planted word'`);
    await admin(`CREATE DATABASE ${name} OWNER ${name}`);
  }

  const { port } = postgres;
  const reach = async (url: string, env: Readonly<Record<string, string>> = {}): Promise<void> => {
    const engine = await openPostgres(await postgresConfig({ url, isListed: true, env: (name) => env[name] }));
    try {
      await engine.files.list('x');
    } finally {
      await engine.close();
    }
  };
  const fails = (url: string, env: Readonly<Record<string, string>>, reason: RegExp, hint: RegExp, fault?: string) =>
    assert.rejects(reach(url, env), (error: unknown) => {
      assert.ok(error instanceof EngineError, String(error));
      assert.match(error.message, reason);
      assert.match(error.hint ?? '', hint);
      assert.equal(error.fault, fault ?? 'unreachable');
      assert.equal(error.code, 'unavailable');
      assert.doesNotMatch(`${error.message} ${error.hint} ${JSON.stringify(error)} ${error.stack}`, /planted|guess/);
      return true;
    });
  const password = { PGPASSWORD: 'planted word' };

  test('a password, right, wrong, missing, and changed while it is served', async () => {
    const url = `postgres://secret@127.0.0.1:${port}/secret`;
    await reach(url, password);
    await fails(
      url,
      { PGPASSWORD: 'guess' },
      /reached: the password is wrong$/,
      new RegExp(`^127.0.0.1:${port}: set PGP`),
    );
    await fails(url, {}, /it asks for a password, and none is given$/, /--store-password-file/);
    const passwordFile = file('password', 'planted word\n');
    const config = await postgresConfig({ url, isListed: true, passwordFile, env: () => undefined });
    const engine = await openPostgres(config);
    await admin(`ALTER ROLE secret PASSWORD 'planted anew'`);
    await admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'secret'`);
    await assert.rejects(async () => {
      for (let tries = 2; tries > 0; tries--) await engine.files.list('x');
    }, /the password is wrong|cannot be reached/);
    file('password', 'planted anew\n');
    await engine.files.list('x');
    await engine.close();
    await admin(`ALTER ROLE secret PASSWORD 'planted word'`);
  });

  test('no such user, no such database, nobody there', async () => {
    await fails(`postgres://nobody@127.0.0.1:${port}/secret`, password, /does not let this user in/, /pg_hba\.conf/);
    await fails(`postgres://secret@127.0.0.1:${port}/none`, password, /no such database/, /CREATE DATABASE/);
    await fails(`postgres://secure@127.0.0.1:${port}/secure`, password, /does not let this user in/, /pg_hba\.conf/);
    const nobody = await freePort();
    await fails(`postgres://u@localhost:${nobody}/x`, {}, /nothing listens there/, /listen_addresses/);
    await fails(`postgres:///x?host=${base}`, {}, /there is no such socket/, /unix_socket_directories/);
    await fails('postgres://u@kms.invalid/x', {}, /name of its host is not known/, /resolves/);
  });

  test('a user who may not make the tables is told so', async () => {
    await admin('CREATE DATABASE foreign_one');
    await admin('REVOKE ALL ON DATABASE foreign_one FROM PUBLIC; GRANT CONNECT ON DATABASE foreign_one TO secret');
    const url = `postgres://secret@127.0.0.1:${port}/foreign_one`;
    await fails(url, password, /reached: the user lacks a right$/, /owner of the database/);
  });

  test('a certificate that is trusted, another authority, another host, an expired one', async () => {
    const url = (host: string, ca = root) =>
      `postgres://secure@${host}:${port}/secure?sslmode=verify-full&sslrootcert=${ca}`;
    await reach(url('127.0.0.1'), password);
    await reach(url('localhost'), password);
    await fails(url('127.0.0.1', file('other.pem', other.cert)), password, /not from an authority/, /sslrootcert/);
    const named = await good.sign({ names: ['db.example.org'] });
    const old = await good.sign({ names: ['localhost'], notAfter: yesterday });
    for (const [{ cert, key }, reason, hint] of [
      [named, /for another host/, /name that the certificate has/],
      [old, /certificate has expired/, /new one/],
    ] as const) {
      postgres.write('server.crt', cert);
      postgres.write('server.key', key);
      postgres.stop();
      postgres.start();
      await fails(url('localhost'), password, reason, hint);
    }
    postgres.write('server.crt', server.cert);
    postgres.write('server.key', server.key);
    postgres.stop();
    postgres.start();
    await reach(url('localhost'), password);
  });

  test('a certificate of its own in place of a password', async () => {
    const shown = async (name: string, of: typeof good, notAfter?: Date): Promise<string> => {
      const { cert, key } = await of.sign({ names: [name], ...(notAfter && { notAfter }) });
      const files = `sslcert=${file(`${name}.crt`, cert)}&sslkey=${file(`${name}.key`, key)}`;
      return `postgres://shown@localhost:${port}/shown?sslmode=verify-full&sslrootcert=${root}&${files}`;
    };
    await reach(await shown('shown', good));
    await fails(await shown('another', good), {}, /does not let this user in/, /log/);
    await fails(await shown('shown', other), {}, /breaks off the/, /log/);
    await fails(await shown('shown', good, yesterday), {}, /breaks off the/, /log/);
  });

  test('a server without TLS is not spoken to in clear', async () => {
    const plain = new Postgres(programs, { port: await freePort() });
    try {
      await fails(
        `postgres://kms@localhost:${plain.port}/postgres?sslmode=verify-full&sslrootcert=${root}`,
        {},
        /server does not do TLS/,
        /ssl = on/,
      );
    } finally {
      plain.end();
    }
  });

  test('of several places the one that takes writes is used, and all are told of where none does', async () => {
    const standby = new Postgres(programs, { port: await freePort(), files: { 'standby.signal': '' } });
    try {
      await admin('SELECT 1');
      const at = (places: string) => `postgres://kms@/postgres?host=${places}`;
      const [first, second] = [`${base},${standby.dir},${postgres.dir}`, `1,${standby.port},${port}`];
      const config = await postgresConfig({ url: `${at(first)}&port=${second}`, isListed: true, env: () => undefined });
      const engine = await openPostgres(config);
      await engine.files.replace('d/x', new Uint8Array([1]));
      await engine.close();
      await fails(
        `${at(`${base},${standby.dir}`)}&port=1,${standby.port}`,
        {},
        /takes no writes: there is no such socket; it is a standby$/,
        new RegExp(`^${base}/.s.PGSQL.1: see .*; ${standby.dir}/.s.PGSQL.${standby.port}: it serves once`),
        'read-only',
      );
    } finally {
      standby.end();
    }
  });
}
