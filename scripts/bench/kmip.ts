// Gets per second at the KMIP listener over kept connections, beside a bare TLS server that answers the same bytes; and
// how long a Get takes while others open connections as fast as they can. Needs openssl.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  decodeItem,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  structure,
  structureIn,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { versionItem } from '../../src/dialects/kmip/versions.ts';
import { kms, makeAppliance } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { cpuSeconds, start, stayOn } from './process.ts';

const connections = 32;
const [create, get] = [1, 10];

/** @param seconds of each measurement. @param rounds in which each side is measured once. */
export async function measureKmip(seconds: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-kmip-'));
  const [cert, key] = [join(home, 'cert.pem'), join(home, 'key.pem')];
  const newCertificate = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  execFileSync('openssl', [...newCertificate, '-out', cert, '-keyout', key], { stdio: 'ignore' });
  const { data } = makeAppliance(join(home, 'data'));
  const own = (...args: string[]) => execFileSync(kms, ['--data', data, ...args], { stdio: 'pipe' });
  own('account', 'create', 'bench');
  own('kmip', 'client', 'create', 'bench', '--account', 'bench', '--out', join(home, 'client'));
  const listen = ['--listen', '127.0.0.1:0', '--kmip-listen', '127.0.0.1:0'];
  const tls = ['--kmip-tls-cert', cert, '--kmip-tls-key', key];
  const served = await start(0, kms, ['--data', data, 'serve', ...listen, ...tls], /KMIP: listening on kmip:(\S+)/);
  const client: ConnectionOptions = {
    ca: readFileSync(cert),
    cert: readFileSync(join(home, 'client/client.crt')),
    key: readFileSync(join(home, 'client/client.key')),
    servername: 'localhost',
  };
  const at = (address: string) => ({ ...client, host: '127.0.0.1', port: Number(new URL(`tls:${address}`).port) });
  const ours = at(served.match);
  const message = await getOfNewKey(ours);
  const answer = await once(await opened(ours, message), 'data').then(([bytes]) => Buffer.from(bytes));
  const bareServer = [join(import.meta.dirname, 'bare-tls.ts'), cert, key, answer.toString('base64')];
  const bare = await start(1, process.execPath, bareServer, /listening on tls:(\S+)/);
  const theirs = at(bare.match);

  console.log(`\nKMIP: Get, ${connections} connections, ${rounds} rounds of ${seconds} s`);
  row('', 'kms Get/s', 'CPU µs', 'bare Get/s', 'CPU µs', 'ratio');
  const rates = { ours: [] as Rate[], theirs: [] as Rate[] };
  const free = stayOn(1);
  for (let round = 0; round < rounds; round++) {
    rates.ours.push(await rateOf(ours, message, seconds, served.child.pid));
    rates.theirs.push(await rateOf(theirs, message, seconds, bare.child.pid));
  }
  const middle = (of: readonly Rate[], field: keyof Rate) => median(of.map((each) => each[field]));
  const cells = (of: readonly Rate[]) => [short(middle(of, 'perSecond')), middle(of, 'cpu').toFixed(1)];
  const cpuRatio = middle(rates.theirs, 'cpu') / middle(rates.ours, 'cpu');
  row('Get', ...cells(rates.ours), ...cells(rates.theirs), cpuRatio.toFixed(3));
  goal('KMIP: processor time of a Get', middle(rates.ours, 'cpu'), 1000, 'at most', ' µs');
  await measureStorm(ours, message, seconds * rounds);
  free();
  await served.stop();
  await bare.stop();
  rmSync(home, { recursive: true });
}

/** The message of a Get of a key that the client makes. */
async function getOfNewKey(to: ConnectionOptions): Promise<Uint8Array> {
  const attributes = [
    ['Cryptographic Algorithm', enumeration(tags.attributeValue, 3)],
    ['Cryptographic Length', integer(tags.attributeValue, 256)],
    ['Cryptographic Usage Mask', integer(tags.attributeValue, 12)],
  ] as const;
  const template = structure(
    tags.templateAttribute,
    attributes.map(([name, item]) => structure(tags.attribute, text(tags.attributeName, name), item)),
  );
  const socket = await opened(to, messageOf(create, enumeration(tags.objectType, 2), template));
  const [bytes] = await once(socket, 'data');
  socket.destroy();
  const answer = decodeItem(bytes);
  const item = answer.type === 'structure' ? structureIn(answer, tags.batchItem) : undefined;
  const id = fieldOf(structureIn(item, tags.responsePayload), tags.uniqueIdentifier, 'text');
  if (!id) throw new Error('KMIP: no key was made');
  return messageOf(get, text(tags.uniqueIdentifier, id));
}

function messageOf(operation: number, ...fields: readonly Item[]): Uint8Array {
  return encodeItem(
    structure(
      tags.requestMessage,
      structure(tags.requestHeader, versionItem(14), integer(tags.batchCount, 1)),
      structure(tags.batchItem, enumeration(tags.operation, operation), structure(tags.requestPayload, fields)),
    ),
  );
}

/** A connection on which the message was sent. */
async function opened(to: ConnectionOptions, message: Uint8Array): Promise<TLSSocket> {
  const socket = connect(to);
  await once(socket, 'secureConnect');
  socket.setNoDelay(true);
  socket.write(message);
  return socket;
}

interface Rate {
  readonly perSecond: number;
  /** Microseconds of processor time of the server for each. */
  readonly cpu: number;
}

async function rateOf(
  to: ConnectionOptions,
  message: Uint8Array,
  seconds: number,
  pid: number | undefined,
): Promise<Rate> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => opened(to, message)));
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  let done = 0;
  for (const socket of sockets) {
    // Answers are shorter than a record of TLS, and so come whole.
    socket.on('data', () => {
      done++;
      socket.write(message);
    });
  }
  const before = cpuSeconds(pid);
  const began = performance.now();
  for (const socket of sockets) socket.write(message);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const count = done;
  const took = (performance.now() - began) / 1000;
  const cpu = ((cpuSeconds(pid) - before) / count) * 1e6;
  for (const socket of sockets) socket.destroy();
  return { perSecond: count / took, cpu };
}

/** Times single Gets while eight others do nothing but shake hands. */
async function measureStorm(to: ConnectionOptions, message: Uint8Array, seconds: number): Promise<void> {
  let over = false;
  let handshakes = 0;
  const storm = Array.from({ length: 8 }, async () => {
    while (!over) {
      const socket = connect(to);
      socket.on('error', () => {});
      await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]);
      socket.destroy();
      handshakes++;
    }
  });
  const socket = await opened(to, message);
  await once(socket, 'data');
  const times: number[] = [];
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    const before = performance.now();
    socket.write(message);
    await once(socket, 'data');
    times.push(performance.now() - before);
  }
  over = true;
  await Promise.allSettled(storm);
  socket.destroy();
  console.log(`  ${short(handshakes / seconds)} handshakes a second beside it; ${times.length} Gets`);
  goal('KMIP: a Get among handshakes, median', median(times), 50, 'at most', ' ms');
}
