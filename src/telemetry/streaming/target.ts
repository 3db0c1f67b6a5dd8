// A target of activity as the operator writes it: a syslog server over TCP or TLS, a webhook, or a directory. Its name
// identifies it, in messages and for its saved place: scheme, host, port and path, never a query or other possible
// secrets.
import { fileURLToPath } from 'node:url';
import { KmsError } from '../../errors.ts';
import { isLoopbackHost } from '../../model/hosts.ts';
import { secretLines } from '../../model/secret-text.ts';

export type ActivityTarget = SyslogTarget | WebhookTarget | DirectoryTarget;
export type TargetKind = ActivityTarget['kind'];

export interface SyslogTarget {
  readonly kind: 'syslog';
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

export interface WebhookTarget {
  readonly kind: 'webhook';
  readonly name: string;
  /** Including the query. */
  readonly url: string;
}

export interface DirectoryTarget {
  readonly kind: 'directory';
  readonly name: string;
  /** An absolute path. */
  readonly path: string;
}

const longest = 2048;
const forms = 'syslog+tcp://host:port, syslog+tls://host:port, https://host/path, or a directory';
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])$/;

/** `pathFrom` makes a path absolute. Throws `usage`; no message repeats possible secrets. */
export function parseTarget(text: string, pathFrom: (path: string) => string): ActivityTarget {
  if (text === '' || text.length > longest) throw wrong(`expected ${forms}`);
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    const path = pathFrom(text);
    return { kind: 'directory', name: path, path };
  }
  if (!URL.canParse(text)) throw wrong(`expected ${forms}`);
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') throw wrong('a user or a password has no place in it');
  if (url.hash !== '') throw wrong('a fragment (#) has no place in it');
  if (url.protocol === 'file:') return directoryOf(url);
  if (url.protocol === 'syslog+tcp:' || url.protocol === 'syslog+tls:') return syslogOf(url);
  if (url.protocol === 'https:' || url.protocol === 'http:') return webhookOf(url);
  throw wrong(`expected ${forms}, got ${url.protocol}//`);
}

function directoryOf(url: URL): DirectoryTarget {
  if (url.host !== '' || url.search !== '') throw wrong('expected file:///directory');
  let path: string;
  try {
    path = fileURLToPath(url).replace(/(?<=.)\/+$/, '');
  } catch {
    throw wrong('expected file:///directory');
  }
  return { kind: 'directory', name: path, path };
}

function syslogOf(url: URL): SyslogTarget {
  // URL leaves the host of a non-special scheme as written.
  const host = url.hostname.toLowerCase();
  const port = Number(url.port);
  if (!hostPattern.test(host) || port < 1 || !/^\/?$/.test(url.pathname) || url.search !== '') {
    throw wrong(`expected ${url.protocol}//host:port`);
  }
  return {
    kind: 'syslog',
    name: `${url.protocol}//${host}:${port}`,
    host: host.replace(/^\[|\]$/g, ''),
    port,
    tls: url.protocol === 'syslog+tls:',
  };
}

function webhookOf(url: URL): WebhookTarget {
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    throw wrong('plain http is for this machine alone: expected https://');
  }
  return { kind: 'webhook', name: `${url.origin}${url.pathname}`, url: url.href };
}

function wrong(problem: string): KmsError {
  return new KmsError('usage', `--activity-to: ${problem}`, { hint: 'see `kms serve --help`' });
}

/** One secret per line, the newest first; all of them sign, so that secrets can be rotated. `file` names the source. */
export function parseWebhookSecrets(given: Uint8Array | string, file = 'the webhook secret'): readonly Uint8Array[] {
  const secrets = secretLines(given, file).map(keyIn);
  if (secrets.length === 0 || secrets.length > mostSecrets) throw noSecret(`expected 1 to ${mostSecrets} lines`);
  return secrets;
}

const mostSecrets = 4;
const prefix = 'whsec_';

/** Standard Webhooks: `whsec_` and the base64 of 24 to 64 bytes. */
function keyIn(line: string): Uint8Array {
  const base64 = line.slice(prefix.length);
  const bytes = Buffer.from(base64, 'base64');
  if (line.startsWith(prefix) && bytes.toString('base64') === base64 && bytes.length >= 24 && bytes.length <= 64) {
    return new Uint8Array(bytes);
  }
  throw noSecret(`expected ${prefix} and the base64 of 24 to 64 random bytes on each line`);
}

function noSecret(problem: string): KmsError {
  return new KmsError('usage', `--activity-webhook-secret-file: ${problem}`, {
    hint: 'make one with: echo "whsec_$(openssl rand -base64 32)"',
  });
}
