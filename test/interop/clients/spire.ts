// SPIRE's server, whose tokens are trusted as in docs/guide-workloads.md. No agent runs: the server mints what an agent
// would hand to a program.
import { mkdirSync } from 'node:fs';
import { freePort } from '../../support/free-port.ts';
import { type Desk, expect } from '../desk.ts';
import { goToolProgram } from '../install.ts';
import { type Client, scenario } from './client.ts';

const version = 'v1.13.3';

async function startServer(desk: Desk, program: string) {
  mkdirSync(desk.path('spire'));
  const socket = desk.path('spire', 'api.sock');
  const settings = desk.write(
    'spire.conf',
    `server {
  bind_address = "127.0.0.1"
  bind_port = "${await freePort()}"
  socket_path = "${socket}"
  trust_domain = "acme.example"
  data_dir = "${desk.path('spire')}"
  jwt_issuer = "https://spire.acme.example"
}
plugins {
  DataStore "sql" { plugin_data { database_type = "sqlite3", connection_string = "${desk.path('spire', 'db')}" } }
  KeyManager "memory" { plugin_data {} }
  NodeAttestor "join_token" { plugin_data {} }
}
`,
  );
  const server = desk.start(program, ['run', '-config', settings]);
  const say = async (...args: string[]) =>
    (await desk.run(program, [...args.slice(0, 2), '-socketPath', socket, ...args.slice(2)])).stdout;
  await server.until('SPIRE serves', () => say('bundle', 'show', '-format', 'spiffe'));
  return { say, end: server.end };
}

async function tokens(desk: Desk, program: string): Promise<void> {
  const { say, end } = await startServer(desk, program);
  try {
    const keys = desk.write('spire.jwks', await say('bundle', 'show', '-format', 'spiffe'));
    await desk.kms('key', 'create', 'orders');
    await desk.kms('account', 'create', 'shop');
    const made = ['--account', 'shop', '--name', 'build', '--without-secret', '--flag', 'key.orders.datakey', '--json'];
    const { keyid } = JSON.parse(await desk.kms('apikey', 'create', ...made));
    const trust = ['--audience', 'kms', '--subject', 'spiffe://acme.example/ns/shop/sa/*', '--jwks-file', keys];
    await desk.kms('apikey', 'proof', 'add', keyid, 'jwt', '--issuer', 'spiffe://acme.example', ...trust);
    const minted = async (path: string, audience = 'kms') =>
      desk.write('token', await say('jwt', 'mint', '-spiffeID', `spiffe://acme.example${path}`, '-audience', audience));
    const login = ['apikey', 'login', 'build', '--server', desk.url, '--token-file'];
    const { stdout } = await desk.run('kms', [...login, await minted('/ns/shop/sa/orders')]);
    await desk.run('kms', ['key', 'datakey', 'orders'], { env: desk.own(stdout.trim()) });
    expect(
      await desk.kms('activity', 'search', '--keyid', keyid, '--json'),
      /spiffe:\/\/acme\.example\/ns\/shop\/sa\/orders/,
    );
    await desk.refused('kms', [...login, await minted('/ns/till/sa/orders')]);
    await desk.refused('kms', [...login, await minted('/ns/shop/sa/orders/more')]);
    await desk.refused('kms', [...login, await minted('/ns/shop/sa/orders', 'vault')]);
  } finally {
    await end();
  }
}

export const spire: Client = {
  name: 'spire',
  from: 'Go',
  onlyIfNamed: true,
  async install() {
    const program = await goToolProgram('github.com/spiffe/spire', 'cmd/spire-server', version);
    return {
      version,
      scenarios: [
        scenario('tokens of its server by its bundle; another path, another audience', (desk) => tokens(desk, program)),
      ],
    };
  },
};
