// Hosts in requests and settings: a DNS name, or an address. Each is compared in one canonical form: names in lower
// case, in ASCII and without the root's dot, addresses as in RFC 5952, IPv6 in brackets.
import { addressBytes, plainAddress } from './addresses.ts';

/** Maximum length of a name in characters (RFC 1035 §2.3.4). */
const longestName = 253;
/** An address may be followed by a zone. */
const longestHost = longestName + 64;

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
/** A host whose last label looks like this must be an address: some programs read `127.1` and `0x7f000001` as one. */
const number = /^(?:[0-9]+|0x[0-9a-f]*)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII as a whole
const ascii = /^[\x00-\x7f]*$/;
/** Characters that a URL parser would drop, or not take as part of the host. */
const notInNames = /[\s\p{Cc}/?#@:[\]%\\<>^|]/u;

/** Canonical form of a host; undefined if it is malformed. An IPv6 address must be in brackets. */
export function canonicalHost(text: string): string | undefined {
  if (text.length > longestHost) return undefined;
  if (!text.startsWith('[')) return nameHost(text.toLowerCase());
  const inside = text.slice(1, -1);
  return text.endsWith(']') && inside.includes(':') ? addressHost(inside) : undefined;
}

function addressHost(text: string): string | undefined {
  const address = plainAddress(text);
  return address?.includes(':') ? `[${address}]` : address;
}

function nameHost(text: string): string | undefined {
  const name = asciiName(text.endsWith('.') ? text.slice(0, -1) : text);
  if (name === undefined || name.length > longestName) return undefined;
  const labels = name.split('.');
  if (number.test(labels.at(-1) ?? '')) return plainAddress(name);
  return labels.every((each) => label.test(each)) ? name : undefined;
}

/** Non-ASCII names in the form that clients send (RFC 5891). */
function asciiName(name: string): string | undefined {
  if (ascii.test(name)) return name;
  const url = `http://${name}`;
  return !notInNames.test(name) && URL.canParse(url) ? new URL(url).hostname : undefined;
}

/** A mail address with its domain in canonical form; any other text is returned unchanged. */
export function sameDomain(address: string): string {
  const at = address.lastIndexOf('@');
  const domain = at < 0 ? undefined : canonicalHost(address.slice(at + 1));
  return domain === undefined ? address : `${address.slice(0, at)}@${domain}`;
}

/** A host with an optional port, as in the `Host` header. */
export interface Authority {
  readonly host: string;
  /** Host and port in canonical form. */
  readonly text: string;
}

const mostRemembered = 256;
const remembered = new Map<string, Authority | undefined>();

/** Undefined if it is malformed. The port after the colon may be empty (RFC 9110 §7.2, RFC 3986 §3.2.3). */
export function readAuthority(text: string): Authority | undefined {
  if (text.length > longestHost + 6) return undefined;
  const known = remembered.get(text);
  if (known || remembered.has(text)) return known;
  const made = parseAuthority(text);
  if (remembered.size >= mostRemembered) remembered.clear();
  remembered.set(text, made);
  return made;
}

function parseAuthority(text: string): Authority | undefined {
  const colon = text.indexOf(':', text.lastIndexOf(']') + 1);
  const name = colon < 0 ? text : text.slice(0, colon);
  const digits = colon < 0 ? '' : text.slice(colon + 1);
  const host = ascii.test(name) ? canonicalHost(name) : undefined;
  if (host === undefined || !/^[0-9]{0,5}$/.test(digits) || Number(digits) > 65_535) return undefined;
  return { host, text: digits === '' ? host : `${host}:${Number(digits)}` };
}

/** Whether a host is this machine itself. IPv6 may come without brackets. */
export function isLoopbackHost(text: string): boolean {
  const host = canonicalHost(text.includes(':') && !text.startsWith('[') ? `[${text}]` : text);
  if (host === undefined) return false;
  return host === 'localhost' || host === '[::1]' || addressBytes(host)?.[0] === 127;
}
