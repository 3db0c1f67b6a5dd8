// The host names that a tenant may list: what is one, and the one form in which it is compared with what clients ask for.
import { domainToASCII } from 'node:url';
import { invalidField } from '../errors.ts';
import { hostName } from '../http/tenants.ts';

/** Stands for every host that no tenant lists. */
export const anyHost = '*';

const longest = 253;
const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** In lower case, without ports and repetitions. Throws `invalid` for what is no host name, and for none at all. */
export function hostList(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalidField('hosts', 'expected an array of host names');
  const hosts = [...new Set(value.map(hostOf))];
  if (hosts.length === 0) throw invalidField('hosts', 'expected at least one host name');
  return hosts;
}

function hostOf(value: unknown): string {
  if (typeof value !== 'string') throw invalidField('hosts', 'expected an array of host names');
  const given = value.trim();
  const name = hostName(given);
  if (name === anyHost) return name;
  const port = given.slice(name.length);
  const host = name.startsWith('[') ? ipv6(name) : domain(name);
  if (host === undefined || !/^(?::[0-9]{1,5})?$/.test(port)) {
    throw invalidField(
      'hosts',
      `expected host names such as kms.example.org, or ${anyHost} for all others, got "${value}"`,
    );
  }
  return host;
}

/** As clients send it: names of other scripts in their ASCII form. */
function domain(name: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII as a whole
  const ascii = /^[\x00-\x7f]*$/.test(name) ? name : domainToASCII(name);
  return ascii.length <= longest && ascii.split('.').every((part) => label.test(part)) ? ascii : undefined;
}

function ipv6(name: string): string | undefined {
  return URL.canParse(`http://${name}`) ? new URL(`http://${name}`).hostname : undefined;
}
