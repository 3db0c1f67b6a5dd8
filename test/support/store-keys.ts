// Keys for the tests' stores: different for each label and epoch, and the same in each run.
import { createHash } from 'node:crypto';
import { KmsError } from '../../src/errors.ts';
import type { StoreKeyLabel, StoreKeys } from '../../src/store/store-files.ts';

/** Keys with a changing epoch: those up to `retired` are no longer held. */
export class ChangingKeys implements StoreKeys {
  epoch = 1;
  retired = 0;

  key(label: StoreKeyLabel, wanted = this.epoch): Uint8Array {
    if (wanted <= this.retired) throw new KmsError('not-found', `the key of epoch ${wanted} is retired`);
    return testStoreKeys('test', this.epoch).key(label, wanted);
  }
}

export function testStoreKeys(secret = 'test', epoch = 1): StoreKeys {
  const known = new Map<string, Uint8Array>();
  return {
    epoch,
    key(label, wanted = epoch) {
      if (wanted < 1 || wanted > epoch) throw new KmsError('not-found', `no key of epoch ${wanted}`);
      const name = `${secret} ${wanted} ${label}`;
      const key = known.get(name) ?? new Uint8Array(createHash('sha256').update(name).digest());
      known.set(name, key);
      return key;
    },
  };
}
