// Messages in the transit engine's terms: encrypt, decrypt, rewrap and data keys.
import type { KeyResult } from '../../api/key-operations.ts';
import { found, hasNoBody, problem } from './answers.ts';
import { batchOf, itemOf, madeVersionOf, numberOf, referenceOf, textOf } from './fields.ts';
import type { Operation } from './operation.ts';

const noKey = 'encryption key not found';

export function onItems(
  id: 'encryptWithKey' | 'decryptWithKey' | 'rewrapWithKey',
  key: string,
  own: readonly string[],
): Operation {
  return {
    id,
    params: { key },
    missing: noKey,
    body: (given) => ({ items: (batchOf(given) ?? [given]).map((item) => itemOf(item, own)) }),
    answer(ours, given) {
      const items = ours.items as readonly KeyResult[];
      const batch = batchOf(given);
      const [only] = items;
      if (!batch) {
        const { error } = only ?? {};
        return error === undefined ? found(madeData(only ?? {})) : problem(400, error);
      }
      const batch_results = items.map((made, n) => ({ ...madeData(made), reference: referenceOf(batch[n]) }));
      const isWhole = items.every(({ error }) => error === undefined);
      const partial = numberOf(given, 'partial_failure_response_code') ?? 400;
      const takes = partial >= 200 && partial <= 499 && !hasNoBody(partial);
      const status = isWhole ? 200 : takes ? partial : 400;
      return { status, data: { batch_results } };
    },
  };
}

function madeData({ ciphertext, keyVersion, plaintext, error }: KeyResult): object {
  if (error !== undefined) return { error };
  return plaintext === undefined ? { ciphertext, key_version: keyVersion } : { plaintext };
}

export function dataKey(key: string, isWrapped: boolean): Operation {
  return {
    id: isWrapped ? 'generateWrappedDataKey' : 'generateDataKey',
    params: { key },
    missing: noKey,
    body(given) {
      const bits = numberOf(given, 'bits');
      const associatedData = textOf(given, 'associated_data');
      const context = textOf(given, 'context');
      const keyVersion = madeVersionOf(given);
      return {
        ...(keyVersion !== undefined && { keyVersion }),
        ...(bits !== undefined && { bits }),
        ...(associatedData !== undefined && { associatedData }),
        ...(context !== undefined && { context }),
      };
    },
    answer: ({ ciphertext, keyVersion, plaintext }) =>
      found({ ciphertext, key_version: keyVersion, ...(!isWrapped && { plaintext }) }),
  };
}
