// Costly work with keys, done in the same thread. RSA, which noble lacks, is the platform's.
import type { KeyWorker } from '../../src/core/key-rehearsal.ts';
import { runKeyJob, type WorkResult } from '../../src/crypto/managed/key-work.ts';
import { generateKey, isRsaType } from '../../src/crypto/managed/keys.ts';
import { generateRsaKey, type RsaType } from '../../src/crypto/managed/rsa-keys.ts';
import { native, putIn } from '../../src/crypto/primitives.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { nodeRsa } from '../../src/platform/native-rsa.ts';

putIn({ ...native(), rsa: nodeRsa });

/** Two keys of each length, in turns: each takes a second. */
const made = new Map<string, Promise<Uint8Array>>();
let turn = 0;

function madeKey(type: RsaType): Promise<Uint8Array> {
  const name = `${type} ${++turn % 2}`;
  const key = made.get(name) ?? generateRsaKey(type);
  made.set(name, key);
  return key;
}

export const keyWorkHere: KeyWorker = {
  async run(orders) {
    const results: WorkResult[] = [];
    for (const order of orders) {
      try {
        const value =
          order.name === 'generate'
            ? isRsaType(order.type)
              ? (await madeKey(order.type)).slice()
              : generateKey(order.type, systemRandom)
            : runKeyJob(order.name, order.input, systemRandom);
        results.push({ value });
      } catch (error) {
        if (!(error instanceof KmsError)) throw error;
        results.push({ error });
      }
    }
    return results;
  },
};
