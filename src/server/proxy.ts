// What a reverse proxy says of the client, believed only where the operator said that there is one.
import type { IncomingMessage } from 'node:http';

/** The client's address: the last one in X-Forwarded-For, which the nearest proxy wrote. */
export function clientAddress(incoming: IncomingMessage, behindProxy: boolean): string | undefined {
  const forwarded = behindProxy ? lastOf(incoming.headers['x-forwarded-for']) : undefined;
  return forwarded ?? incoming.socket.remoteAddress;
}

/** Puts X-Forwarded-Host in the place of Host, since a request's tenant goes by that. */
export function takeForwardedHost(incoming: IncomingMessage): void {
  const host = lastOf(incoming.headers['x-forwarded-host']);
  if (host === undefined) return;
  incoming.headers.host = host;
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    if (incoming.rawHeaders[i]?.toLowerCase() === 'host') incoming.rawHeaders[i + 1] = host;
  }
}

function lastOf(header: string | string[] | undefined): string | undefined {
  const last = header?.toString().split(',').at(-1)?.trim();
  return last ? last : undefined;
}
