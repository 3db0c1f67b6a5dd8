// The appliance that served this page, called through its public API.
import { type CallOptions, type Client, createClient } from '../client/client.ts';

/** Its address: all that stands before the console's own path. */
const baseUrl = window.location.origin + window.location.pathname.replace(/\/console(?:\/.*)?$/, '');

/** Without a token: the endpoints that everybody may call. */
export function appliance(accessToken?: string): Client {
  return createClient({ baseUrl, ...(accessToken !== undefined && { apiKey: accessToken }) });
}

/** Nobody should look at a page that waits for ever. */
export function patience(): CallOptions {
  return { signal: AbortSignal.timeout(30_000) };
}
