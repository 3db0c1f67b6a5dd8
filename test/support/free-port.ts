// A free port for a program that must be given one. It lies below the range of ephemeral ports (32768 to 60999 on
// Linux), since one of those may be taken again before the program gets to it.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

const given = new Set<number>();

/** On 127.0.0.1; never the same one twice. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    if (given.has(port)) continue;
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    given.add(port);
    server.close();
    await once(server, 'close');
    return port;
  }
}
