// Requests whose bodies break off: the senders' fault, which log and metrics don't count as a server failure.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { tangAddresses } from '../../src/dialects/tang/limits.ts';
import { clientAddress, httpServer, listen, type RequestOrigin } from '../../src/server/http-server.ts';
import { portOf } from '../../src/server/listen.ts';
import { testAppliance } from '../support/appliance.ts';
import { until } from '../support/until.ts';

const a = await testAppliance();
const { key: ring } = (await a.call('POST', '/managed-keys', { name: 'r' })).body;
await a.call('POST', '/ks/keyrings', { name: 'r' });

async function portFor(surface: Omit<RequestOrigin, 'remoteAddress'>): Promise<number> {
  const server = httpServer(a.app.handle, {
    origin: (incoming) => ({ remoteAddress: clientAddress(incoming, false), ...surface }),
  });
  await listen(server, { port: 0, host: '127.0.0.1' });
  after(() => server.close());
  return portOf(server);
}

const network = await portFor({});
const transit = await portFor({ surface: 'vault' });
const tang = await portFor({ surface: 'tang', tangClients: tangAddresses() });

const requests: readonly (readonly [port: number, line: string])[] = [
  [network, 'POST /auth/basic/login'],
  [network, 'POST /auth/basic/login?'],
  [network, 'POST /ks/encrypt'],
  [network, 'PUT /ks/config?'],
  [network, `POST /managed-keys/${ring.name}/encrypt`],
  [transit, 'PUT /v1/auth/approle/login'],
  [transit, 'PUT /v1//auth/approle/login'],
  [transit, 'PUT /v1/nobody/auth/approle/login'],
  [transit, `PUT /v1/transit/encrypt/${ring.name}`],
  [transit, `PUT /v1/transit//sign/${ring.name}`],
  [transit, 'PUT /v1/sys/capabilities-self'],
  [tang, 'POST /rec/x'],
];

for (const [port, line] of requests) {
  for (const length of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
    test(`${line}, ${length}`, async () => {
      const before = a.log.length;
      const token = `Authorization: Bearer ${a.root.key}\r\nX-Vault-Token: ${a.root.key}`;
      const head = `${line} HTTP/1.1\r\nHost: kms.test\r\n${token}\r\nContent-Type: application/json\r\n${length}`;
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(`${head}\r\n\r\n${length.startsWith('T') ? '5\r\n{"a":' : '{"a":'}`);
        setTimeout(() => socket.destroy(), 50);
      });
      socket.on('error', () => {});
      await until('a line in the log', () => a.log.length > before);
      const [entry, ...more] = a.log.slice(before).map((text) => JSON.parse(text));
      assert.deepEqual([entry.message, entry.status, more], ['request', 400, []]);
    });
  }
}
