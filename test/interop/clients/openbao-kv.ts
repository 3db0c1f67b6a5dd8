// Secrets of the KV engine with OpenBao's command line, by a token that has flags for them alone.
import { type Desk, expect } from '../desk.ts';

export async function secrets(desk: Desk, bao: string): Promise<void> {
  const rights = ['import', 'export', 'read', 'config', 'delete'].map((right) => `key.app.db.${right}`);
  const { key } = await desk.token('key.list', ...rights);
  const env = desk.vault(key);
  const say = async (...args: string[]): Promise<string> => (await desk.run(bao, ['kv', ...args], { env })).stdout;
  const refused = async (...args: string[]): Promise<string> =>
    (await desk.refused(bao, ['kv', ...args], { env })).stderr;
  expect(await say('put', '-cas=0', 'secret/app/db', 'key=one'), /^version +1$/m);
  expect(await refused('put', '-cas=0', 'secret/app/db', 'key=two'), /did not match the current version/);
  expect(await say('put', '-mount=secret', 'app/db', 'key=two'), /^version +2$/m);
  expect(await say('patch', 'secret/app/db', 'more=three'), /^version +3$/m);
  expect(await say('get', '-field=key', 'secret/app/db'), /^two$/);
  expect(await say('get', '-field=key', '-version=1', 'secret/app/db'), /^one$/);
  expect(await say('list', 'secret/app'), /^db$/m);
  expect(await say('rollback', '-version=1', 'secret/app/db'), /^version +4$/m);
  await say('delete', 'secret/app/db');
  await say('delete', '-versions=1,2', 'secret/app/db');
  expect(await say('get', 'secret/app/db'), /deletion_time +2/);
  await say('undelete', '-versions=4', 'secret/app/db');
  expect(await say('get', '-field=key', 'secret/app/db'), /^one$/);
  await say('destroy', '-versions=1', 'secret/app/db');
  await say('metadata', 'put', '-max-versions=5', '-custom-metadata=owner=db', 'secret/app/db');
  const metadata = await say('metadata', 'get', 'secret/app/db');
  expect(metadata, /current_version +4/);
  expect(metadata, /map\[owner:db\]/);
  expect(metadata, /destroyed +true/);
  expect(await refused('put', 'secret/app.db', 'key=x'), /permission denied/);
  await say('metadata', 'delete', 'secret/app/db');
  expect(await refused('get', 'secret/app/db'), /No value found/);
  expect((await desk.run(bao, ['secrets', 'list'], { env })).stdout, /^secret\/ +kv /m);
}
