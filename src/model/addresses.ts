// IP addresses and CIDR blocks: IPv4 in dotted decimal, IPv6 as in RFC 4291. They are parsed strictly and written in
// one form (RFC 5952); an IPv4-mapped IPv6 address is treated as the IPv4 address it carries.

/** All addresses that share the first `prefix` bits of `bytes`, which has 4 or 16 bytes and zeros after the prefix. */
interface Block {
  readonly bytes: Uint8Array;
  readonly prefix: number;
}

/** The 4 or 16 bytes of an address; undefined if it is malformed. A zone (`%eth0`) is not accepted. */
export function addressBytes(text: string): Uint8Array | undefined {
  return text.includes(':') ? ipv6Bytes(text) : ipv4Bytes(text);
}

/** Canonical form of an address for records and searches, without a zone; undefined if it is malformed. */
export function plainAddress(text: string): string | undefined {
  const zone = text.indexOf('%');
  const address = zone > 0 && text.includes(':') ? text.slice(0, zone) : text;
  return addressBytes(address) && canonicalBlock(address);
}

/**
 * Canonical form of an address or block: host bits are zero, and a block of one address is the address. Undefined if it
 * is malformed.
 */
export function canonicalBlock(text: string): string | undefined {
  const block = parseBlock(text);
  return block && formatBlock(block);
}

/** The network that counts as one address, and for IPv6 the larger one around it. Any other text stands for itself. */
export function networksOf(address: string): { readonly host: string; readonly site?: string } {
  const plain = plainAddress(address) ?? address.toLowerCase();
  const bytes = addressBytes(plain);
  if (!bytes) return { host: plain };
  if (bytes.length === 4) return { host: bytes.join('.') };
  const groups = groupsOf(bytes).map((group) => group.toString(16));
  return { host: `${groups.slice(0, 4).join(':')}::/64`, site: `${groups.slice(0, 3).join(':')}::/48` };
}

/** The addresses of several blocks. */
export interface AddressSet {
  /** False for a malformed address. */
  has(address: string): boolean;
}

/** Blocks never routed on the Internet: loopback, private and link-local (RFC 1918, 3927, 4193, 4291). */
export const privateBlocks: readonly string[] = [
  ...['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'],
  ...['::1', 'fc00::/7', 'fe80::/10'],
];

/** Verdicts cached per set, so that an address is not parsed with every request. */
const mostRemembered = 256;

/** `blocks` as `canonicalBlock` writes them; malformed ones are left out. */
export function addressSet(blocks: readonly string[]): AddressSet {
  const parsed = blocks.flatMap((text) => parseBlock(text) ?? []);
  const verdicts = new Map<string, boolean>();

  function look(address: string): boolean {
    const bytes = addressBytes(plainAddress(address) ?? '');
    return bytes !== undefined && parsed.some((block) => isIn(block, bytes));
  }

  return {
    has(address) {
      const known = verdicts.get(address);
      if (known !== undefined) return known;
      const verdict = look(address);
      if (verdicts.size >= mostRemembered) verdicts.clear();
      verdicts.set(address, verdict);
      return verdict;
    },
  };
}

function isIn({ bytes, prefix }: Block, address: Uint8Array): boolean {
  if (address.length !== bytes.length) return false;
  const whole = prefix >> 3;
  for (let i = 0; i < whole; i++) if (address[i] !== bytes[i]) return false;
  return ((address[whole] ?? 0) & maskOf(prefix & 7)) === (bytes[whole] ?? 0);
}

/** A byte with the first `bits` bits set. */
function maskOf(bits: number): number {
  return (0xff00 >> bits) & 0xff;
}

function parseBlock(text: string): Block | undefined {
  const slash = text.indexOf('/');
  const address = slash < 0 ? text : text.slice(0, slash);
  const bytes = addressBytes(address);
  if (!bytes) return undefined;
  const bits = bytes.length * 8;
  if (slash < 0) return { bytes, prefix: bits };
  const given = text.slice(slash + 1);
  if (!/^(0|[1-9]\d{0,2})$/.test(given)) return undefined;
  // For an IPv4-mapped address, the first 96 bits are the mapping prefix.
  const prefix = Number(given) - (bits === 32 && address.includes(':') ? 96 : 0);
  if (prefix < 0 || prefix > bits) return undefined;
  const whole = prefix >> 3;
  return {
    bytes: bytes.map((byte, i) => (i < whole ? byte : i > whole ? 0 : byte & maskOf(prefix & 7))),
    prefix,
  };
}

function formatBlock({ bytes, prefix }: Block): string {
  const address = bytes.length === 4 ? bytes.join('.') : formatIpv6(groupsOf(bytes));
  return prefix === bytes.length * 8 ? address : `${address}/${prefix}`;
}

/** RFC 5952 §4: lower case, no leading zeros, `::` for the first of the longest runs of two or more zeros. */
function formatIpv6(groups: readonly number[]): string {
  let start = 0;
  let length = 1;
  for (let i = 0; i < groups.length; i++) {
    let end = i;
    while (groups[end] === 0) end++;
    if (end - i > length) {
      start = i;
      length = end - i;
    }
  }
  const hex = groups.map((group) => group.toString(16));
  if (length < 2) return hex.join(':');
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`;
}

/** The eight 16-bit groups of an IPv6 address. */
export function groupsOf(bytes: Uint8Array): readonly number[] {
  return Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0));
}

function ipv4Bytes(text: string): Uint8Array | undefined {
  if (!/^(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}$/.test(text)) return undefined;
  const numbers = text.split('.').map(Number);
  return numbers.every((number) => number < 256) ? Uint8Array.from(numbers) : undefined;
}

/** RFC 4291 §2.2. */
function ipv6Bytes(text: string): Uint8Array | undefined {
  const [head = '', tail, ...more] = text.split('::');
  const before = partBytes(head, tail === undefined);
  const after = partBytes(tail ?? '', true);
  if (!before || !after || more.length > 0) return undefined;
  const missing = 16 - before.length - after.length;
  if (tail === undefined ? missing !== 0 : missing < 2) return undefined;
  const bytes = Uint8Array.from([...before, ...Array<number>(missing).fill(0), ...after]);
  const [first, second] = bytes.subarray(10, 12);
  const isMapped = bytes.subarray(0, 10).every((byte) => byte === 0) && first === 0xff && second === 0xff;
  return isMapped ? bytes.subarray(12) : bytes;
}

/** The bytes of groups between colons; the last 32 bits may be in dotted decimal. */
function partBytes(text: string, isLast: boolean): readonly number[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  const bytes: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) {
      const group = Number.parseInt(part, 16);
      bytes.push(group >> 8, group & 255);
      continue;
    }
    const ipv4 = isLast && index === parts.length - 1 ? ipv4Bytes(part) : undefined;
    if (!ipv4) return undefined;
    bytes.push(...ipv4);
  }
  return bytes;
}
