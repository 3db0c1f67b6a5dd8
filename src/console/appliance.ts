// The appliance that served this page, called through its public API by those who are not logged in. Who is has the client of their
// session: see session-client.ts.
import { type CallOptions, type Client, createClient } from '../client/client.ts';
import { baseUrl } from './address.ts';

/** Without a token: the endpoints that everybody may call. */
export function appliance(accessToken?: string): Client {
  return createClient({ baseUrl, ...(accessToken !== undefined && { apiKey: accessToken }) });
}

/** Nobody should look at a page that waits for ever. */
export function patience(): CallOptions {
  return { signal: AbortSignal.timeout(30_000) };
}
