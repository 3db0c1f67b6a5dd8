// Operations of the transit engine without a key, and its settings, which have nothing to set here.
import { toHex } from '../../crypto/bytes.ts';
import { readBase64 } from '../../crypto/managed/messages.ts';
import type { JsonObject } from '../../model/json.ts';
import { mostRandomBytes, plainHashes } from '../../model/key-types.ts';
import { found, invalid } from './answers.ts';
import { booleanOf, numberOf, textOf } from './fields.ts';
import type { Operation, Setting } from './operation.ts';

const sources = ['platform', 'seal', 'all'];

/** random[/SOURCE][/BYTES]; there is one source. A string is the reason for a refusal. */
export function random(rest: readonly string[]): Operation | string | undefined {
  const [first, second] = rest;
  if (second !== undefined && !/^[0-9]+$/.test(second)) return undefined;
  if (second !== undefined && !sources.includes(first ?? '')) {
    return `unsupported entropy source "${first?.slice(0, 100)}"; must be "platform" or "seal", or "all"`;
  }
  const count = second ?? (first === undefined || sources.includes(first) ? undefined : first);
  if (count !== undefined && !/^-?[0-9]{1,9}$/.test(count)) {
    return `error parsing url-set byte count: expected a number, got "${count.slice(0, 100)}"`;
  }
  return {
    id: 'generateRandom',
    body(given) {
      const bytes = count === undefined ? (numberOf(given, 'bytes') ?? 32) : Number(count);
      if (bytes < 1) throw invalid("'bytes' cannot be less than 1");
      if (bytes > mostRandomBytes) throw invalid(`'bytes' should be less than ${mostRandomBytes}`);
      formatOf(given, 'base64', '"');
      return { bytes };
    },
    answer: ({ random: bytes }, given) => found({ random_bytes: formatted(bytes, formatOf(given, 'base64', '"')) }),
  };
}

/** hash[/ALGORITHM]. */
export function hash(inPath: string | undefined): Operation {
  return {
    id: 'hashMessage',
    body(given) {
      const input = textOf(given, 'input');
      if (input === undefined) throw invalid('input missing');
      const name = inPath ?? (textOf(given, 'algorithm') || 'sha2-256');
      formatOf(given, 'hex', '');
      const known = plainHashes.find((each) => each === name);
      if (!known) throw invalid(`unsupported algorithm ${name.slice(0, 100)}`);
      return { input, hash: known };
    },
    answer: ({ hash: sum }, given) => found({ sum: formatted(sum, formatOf(given, 'hex', '')) }),
  };
}

type Format = 'hex' | 'base64';

/** `quote` stands around the name in the message. */
function formatOf(given: JsonObject, usual: Format, quote: string): Format {
  const name = textOf(given, 'format') || usual;
  if (name === 'hex' || name === 'base64') return name;
  const shown = `${quote}${name.slice(0, 100)}${quote}`;
  throw invalid(`unsupported encoding format ${shown}; must be "hex" or "base64"`);
}

function formatted(base64: unknown, format: Format): unknown {
  const bytes = format === 'hex' && typeof base64 === 'string' ? readBase64(base64) : undefined;
  return bytes instanceof Uint8Array ? toHex(bytes) : base64;
}

/** The appliance sizes its caches by itself. */
export const cacheConfig: Setting = {
  setting(given) {
    const size = numberOf(given, 'size') ?? 0;
    if (size !== 0 && size < 10) throw invalid('size must be 0 or a value greater or equal to 10');
    const told = found({ size: 0 });
    return size === 0 ? told : { ...told, warnings: ['the appliance sizes its caches by itself: nothing was changed'] };
  },
};

/** Encrypting never makes a key here. */
export const keysConfig: Setting = {
  setting(given) {
    if (booleanOf(given, 'disable_upsert') === false) {
      throw invalid('disable_upsert: expected true: encrypting never makes a key here, as a typing error would');
    }
    return found({ disable_upsert: true });
  },
};
