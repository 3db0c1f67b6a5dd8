// States of managed keys and of their versions, in the words of NIST SP 800-57 part 1 §7: which moves lead from one to
// another, and what a key in each state may still do.
import type { KeyUse } from './key-types.ts';

export const keyStates = [
  'pre-active',
  'active',
  'suspended',
  'deactivated',
  'compromised',
  'pending-deletion',
  'destroyed',
] as const;
export type KeyState = (typeof keyStates)[number];

/** Changes of state that somebody asks for. */
export const keyMoves = [
  'activate',
  'suspend',
  'resume',
  'deactivate',
  'compromise',
  'schedule-deletion',
  'restore',
  'destroy',
] as const;
type KeyMove = (typeof keyMoves)[number];

/** `former` is the state before the deletion was scheduled. */
type Target = KeyState | 'former';

type UseClass = 'protecting' | 'processing' | 'handing-out';

/**
 * Protecting makes something new that the key must keep safe; processing works on something old. Handing out gives the
 * key's bytes to somebody: software that keeps its keys here, and works with them itself, does nothing else.
 */
const useClasses: Readonly<Record<KeyUse, UseClass>> = {
  encrypt: 'protecting',
  sign: 'protecting',
  mac: 'protecting',
  wrap: 'protecting',
  derive: 'protecting',
  decrypt: 'processing',
  verify: 'processing',
  unwrap: 'processing',
  export: 'handing-out',
};

interface StateRow {
  /** Moves from this state, and where they lead. */
  readonly moves: Readonly<Partial<Record<KeyMove, Target>>>;
  readonly allows: readonly UseClass[];
  /** Completes "the key …". */
  readonly words: string;
  /** Said with results of processing that should not be trusted blindly. */
  readonly warning?: string;
  /** The same for the value of a secret. */
  readonly secretWarning?: string;
}

const table: Readonly<Record<KeyState, StateRow>> = {
  'pre-active': {
    moves: { activate: 'active', 'schedule-deletion': 'pending-deletion', destroy: 'destroyed' },
    allows: [],
    words: 'is not active yet',
  },
  active: {
    moves: {
      suspend: 'suspended',
      deactivate: 'deactivated',
      compromise: 'compromised',
      'schedule-deletion': 'pending-deletion',
    },
    allows: ['protecting', 'processing', 'handing-out'],
    words: 'is active',
  },
  suspended: {
    moves: {
      resume: 'active',
      deactivate: 'deactivated',
      compromise: 'compromised',
      'schedule-deletion': 'pending-deletion',
    },
    allows: [],
    words: 'is suspended',
  },
  deactivated: {
    moves: { compromise: 'compromised', 'schedule-deletion': 'pending-deletion' },
    allows: ['processing', 'handing-out'],
    words: 'is deactivated',
    warning: 'nothing new should come from it',
    secretWarning: 'nothing new should use it',
  },
  compromised: {
    moves: { 'schedule-deletion': 'pending-deletion' },
    allows: ['processing', 'handing-out'],
    words: 'is compromised',
    warning: 'others may have made what it opens or verifies',
    secretWarning: 'others may know it, so replace it',
  },
  'pending-deletion': {
    moves: { restore: 'former', destroy: 'destroyed' },
    allows: [],
    words: 'is pending deletion',
  },
  destroyed: {
    moves: {},
    allows: [],
    words: 'is destroyed',
  },
};

/**
 * The state to which a move leads, or why there is no such move. `former` is the state before the deletion was
 * scheduled, to which a restored key returns.
 */
export function stateAfter(
  state: KeyState,
  move: KeyMove,
  former: KeyState | undefined,
): { readonly state: KeyState } | { readonly problem: string } {
  const target = table[state].moves[move];
  if (target === undefined) return { problem: `the key ${table[state].words}, so ${moveProblems[move]}` };
  if (target !== 'former') return { state: target };
  if (former === undefined || !isRestorable(former)) return { problem: 'the key has no state to which it can return' };
  return { state: former };
}

const moveProblems: Readonly<Record<KeyMove, string>> = {
  activate: 'it cannot be activated: only a key that is suspended or not active yet can',
  suspend: 'it cannot be suspended: only an active key can',
  resume: 'it cannot be resumed: only a suspended key can',
  deactivate: 'it cannot be deactivated: only an active or suspended key can',
  compromise: 'it cannot be marked as compromised: only an active, suspended or deactivated key can',
  'schedule-deletion': 'its deletion cannot be scheduled',
  restore: 'there is nothing to restore: only a key that is pending deletion can be',
  destroy: 'it cannot be destroyed: schedule its deletion first',
};

function isRestorable(state: KeyState): boolean {
  return table[state].moves['schedule-deletion'] !== undefined;
}

/** Moves that are possible from a state. */
export function movesFrom(state: KeyState): readonly KeyMove[] {
  return keyMoves.filter((move) => table[state].moves[move] !== undefined);
}

/** States of a key and of the version that is used; undefined for the key alone. */
interface UsedStates {
  readonly key: KeyState;
  readonly version?: KeyState | undefined;
  /** The key is a secret, and people know it as that. */
  readonly isSecret?: boolean;
}

/**
 * Why neither key nor version of these states can be put to this use; undefined if both can. The version's state counts
 * beside the key's: an active version of a suspended key does nothing.
 */
export function useProblem(use: KeyUse, { key, version = key, isSecret = false }: UsedStates): string | undefined {
  const kind = useClasses[use];
  const noun = isSecret ? 'secret' : 'key';
  const wanted = isSecret && use === 'export' ? 'be read' : use === 'mac' ? 'make MACs' : use;
  if (!table[key].allows.includes(kind)) return refusal(`the ${noun}`, key, wanted);
  return table[version].allows.includes(kind) ? undefined : refusal(`this version of the ${noun}`, version, wanted);
}

function refusal(subject: string, state: KeyState, wanted: string): string {
  const { allows, words } = table[state];
  const rest = allows.includes('processing') ? ': it can still decrypt, verify and unwrap' : '';
  return `${subject} ${words}, so it cannot ${wanted}${rest}`;
}

/** A warning to give with the result of a use that the states allow; undefined if there is nothing to say. */
export function useWarning(
  use: KeyUse,
  { key, version = key, isSecret = false }: UsedStates,
  which = 'this version',
): string | undefined {
  if (useClasses[use] === 'protecting') return undefined;
  const isOfVersion = key !== 'compromised' && (version === 'compromised' || table[key].warning === undefined);
  const { words, warning, secretWarning } = table[isOfVersion ? version : key];
  if (warning === undefined) return undefined;
  const noun = isSecret ? 'the secret' : 'the key';
  return `${isOfVersion ? `${which} of ${noun}` : noun} ${words}: ${isSecret ? secretWarning : warning}`;
}

/** Dates that move a key by themselves, in epoch milliseconds. */
interface KeyDates {
  readonly activateAt?: number | undefined;
  readonly deactivateAt?: number | undefined;
  /** End of the time in which a key that is pending deletion can be restored. */
  readonly destroyAt?: number | undefined;
}

/** The state once all dates up to `now` have had their effect, at a use or a look. */
export function stateAt(state: KeyState, { activateAt, deactivateAt, destroyAt }: KeyDates, now: number): KeyState {
  const isPast = (date: number | undefined): boolean => date !== undefined && date <= now;
  const begun = state === 'pre-active' && isPast(activateAt) ? 'active' : state;
  if ((begun === 'active' || begun === 'suspended') && isPast(deactivateAt)) return 'deactivated';
  return begun === 'pending-deletion' && isPast(destroyAt) ? 'destroyed' : begun;
}
