// Parts of pages about managed keys: the tag of a state, and the uses as chips.
import type { KeyState } from '../../model/key-states.ts';
import type { KeyUse } from '../../model/key-types.ts';
import { stateWords, useText } from './managed-key-words.ts';

export function StateTag({ state }: { readonly state: KeyState }) {
  const { label, tone } = stateWords(state);
  return (
    <span data-tag data-tone={tone}>
      {label}
    </span>
  );
}

export function UseTags({ uses }: { readonly uses: readonly KeyUse[] }) {
  return (
    <>
      {uses.map((use) => (
        <span key={use}>
          <span data-tag>{useText(use)}</span>{' '}
        </span>
      ))}
    </>
  );
}
