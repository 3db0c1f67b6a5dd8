// A store's keys as plain data, for threads, and back.
import { KmsError } from '../errors.ts';
import type { StoreKeyLabel, StoreKeys } from '../store/store-keys.ts';
import type { KeysAsData } from './worker-jobs.ts';

const labels: readonly StoreKeyLabel[] = ['log', 'snapshot', 'activity'];

export function keysAsData(keys: StoreKeys): KeysAsData {
  const epochs = Array.from({ length: keys.epoch }, (_, i) => i + 1);
  return { epoch: keys.epoch, held: epochs.flatMap((epoch) => labels.flatMap((label) => heldKey(keys, label, epoch))) };
}

export function keysFromData({ epoch: current, held }: KeysAsData): StoreKeys {
  return {
    epoch: current,
    key(label, epoch = current) {
      const found = held.find((each) => each.label === label && each.epoch === epoch);
      if (!found) throw new KmsError('not-found', `no key of epoch ${epoch}`);
      return found.key;
    },
  };
}

function heldKey(keys: StoreKeys, label: StoreKeyLabel, epoch: number): KeysAsData['held'] {
  try {
    return [{ label, epoch, key: keys.key(label, epoch) }];
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return [];
    throw error;
  }
}
