// Limits for Tang clients: the addresses that may send requests, and how often. The protocol has no credentials.
import { KmsError } from '../../errors.ts';
import {
  type AddressSet,
  addressBytes,
  addressSet,
  canonicalBlock,
  groupsOf,
  privateBlocks,
} from '../../model/addresses.ts';

/**
 * The addresses that may send requests, from CIDR blocks. Default: the ranges that are not routed on the Internet.
 * Throws `usage` for a malformed block.
 */
export function tangAddresses(blocks: readonly string[] = privateBlocks): AddressSet {
  const wrong = blocks.find((block) => canonicalBlock(block) === undefined);
  if (wrong === undefined) return addressSet(blocks.flatMap((block) => canonicalBlock(block) ?? []));
  throw new KmsError('usage', `--tang-allow: expected an address or a block of them, got "${wrong}"`, {
    hint: 'such as 192.0.2.0/24, 2001:db8::/32 or 10.1.2.3',
  });
}

/** Token buckets: requests at once, then per second. A recovery takes some milliseconds of the one serving thread. */
const ofOne = { burst: 60, perSecond: 1 };
const ofAll = { burst: 200, perSecond: 25 };
/** Maximum number of tracked addresses; further ones share one bucket. */
const mostAddresses = 4096;

interface Bucket {
  left: number;
  /** Time of the last refill, in milliseconds. */
  at: number;
}

/**
 * Rate limits for Tang clients, per address and overall. IPv6 addresses count by their /64, which is what a network
 * assigns to one site.
 */
export class TangLimits {
  readonly #elapsed: () => number;
  readonly #all: Bucket;
  readonly #addresses = new Map<string, Bucket>();

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
    this.#all = { left: ofAll.burst, at: elapsed() };
  }

  /** Seconds to wait; 0 if the request may proceed, in which case it is counted. */
  wait(address: string): number {
    const now = this.#elapsed();
    const bytes = addressBytes(address);
    const key = bytes?.length === 16 ? groupsOf(bytes).slice(0, 4).join(':') : address;
    const one = this.#addresses.get(key) ?? this.#newcomer(key, now);
    const wait = Math.max(waitOf(one, ofOne, now), waitOf(this.#all, ofAll, now));
    if (wait > 0) return wait;
    one.left--;
    this.#all.left--;
    return 0;
  }

  #newcomer(key: string, now: number): Bucket {
    if (this.#addresses.size >= mostAddresses) {
      for (const [each, bucket] of this.#addresses) {
        if (waitOf(bucket, ofOne, now) === 0 && bucket.left >= ofOne.burst) this.#addresses.delete(each);
      }
    }
    const name = this.#addresses.size < mostAddresses ? key : 'others';
    const bucket = this.#addresses.get(name) ?? { left: ofOne.burst, at: now };
    this.#addresses.set(name, bucket);
    return bucket;
  }
}

/** Refills the bucket for the time passed; returns the seconds until it has a token. */
function waitOf(bucket: Bucket, { burst, perSecond }: typeof ofOne, now: number): number {
  bucket.left = Math.min(burst, bucket.left + (Math.max(0, now - bucket.at) / 1000) * perSecond);
  bucket.at = now;
  return bucket.left >= 1 ? 0 : (1 - bucket.left) / perSecond;
}
