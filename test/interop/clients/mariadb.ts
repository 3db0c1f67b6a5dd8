// MariaDB, whose plugin reads the keys of encrypted tables from the KV engine.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Desk, expect } from '../desk.ts';
import { debianPrograms, debianVersion } from '../install.ts';
import { type Client, scenario } from './client.ts';

export const mariadb: Client = {
  name: 'mariadb',
  from: 'Debian',
  async install() {
    await debianPrograms({ mariadbd: 'mariadb-server', 'mariadb-install-db': 'mariadb-server' });
    await debianPlugin();
    return {
      version: await debianVersion('mariadb-plugin-hashicorp-key-management'),
      scenarios: [
        scenario('hashicorp_key_management: an encrypted table, a new version of its key, the token revoked', tables),
      ],
    };
  },
};

const plugin = '/usr/lib/mysql/plugin/hashicorp_key_management.so';

/** It has no program of its own. */
async function debianPlugin(): Promise<void> {
  if (!existsSync(plugin)) await debianPrograms({ [plugin]: 'mariadb-plugin-hashicorp-key-management' });
}

async function tables(desk: Desk): Promise<void> {
  await desk.kms('key', 'create', 'tables', '--type', 'secret', '--alias', 'kv-mariadb/1');
  const { key, keyid } = await desk.token('key.tables.export');
  const data = desk.path('mariadb');
  mkdirSync(data);
  const socket = desk.path('mariadb.sock');
  const config = desk.write(
    'mariadb.cnf',
    `[mariadbd]
datadir = ${data}
socket = ${socket}
pid-file = ${desk.path('mariadb.pid')}
user = root
skip-networking
skip-grant-tables
plugin-load-add = hashicorp_key_management.so
hashicorp-key-management-vault-url = ${desk.address}/v1/kv-mariadb
hashicorp-key-management-token = ${key}
innodb-encrypt-tables = force
`,
  );
  await desk.run('mariadb-install-db', ['--no-defaults', '--user=root', `--datadir=${data}`]);
  const ask = (sql: string) => desk.run('mariadb', ['--no-defaults', `--socket=${socket}`, '-N', '-e', sql]);
  const start = async () => {
    const server = desk.start('mariadbd', [`--defaults-file=${config}`]);
    await server.until('MariaDB answers', () => ask('SELECT 1'));
    return server;
  };
  const wordIn = async (): Promise<string> => (await ask('SELECT word FROM shop.t')).stdout;
  let server = await start();
  try {
    await ask(`CREATE DATABASE shop; CREATE TABLE shop.t (word TEXT); INSERT INTO shop.t VALUES ('hunter2-hunter2')`);
    await server.end();
    if (readFileSync(join(data, 'shop', 't.ibd')).includes('hunter2')) throw new Error('the table is not encrypted');
    await desk.kms('key', 'rotate', 'tables');
    server = await start();
    expect(await wordIn(), /^hunter2-hunter2$/m);
    const versions = (
      await ask('SELECT MAX(CURRENT_KEY_VERSION) FROM information_schema.innodb_tablespaces_encryption')
    ).stdout;
    expect(versions, /^2$/m);
    await server.end();
    await desk.kms('apikey', 'revoke', keyid, '--yes');
    await desk.refused('mariadbd', [`--defaults-file=${config}`]);
  } finally {
    await server.end();
  }
}
