// Events of an appliance, apart from its answers, for the log of the program that opened it.
import type { StoreEvent } from '../store/port.ts';

export interface ApplianceEvent {
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  readonly cause?: unknown;
}

const levels: Readonly<Record<StoreEvent['kind'], ApplianceEvent['level']>> = {
  'torn-tail': 'warn',
  'write-failed': 'error',
  'log-lost': 'error',
  'log-moved': 'info',
  recovered: 'info',
  'recovery-failed': 'error',
  'no-turn': 'error',
  'turn-again': 'info',
  'commits-lost': 'error',
  checkpoint: 'info',
  'checkpoint-failed': 'error',
  'segment-fault': 'error',
  'segment-well': 'info',
};

/** Reports events of the stores, each with its directory. */
export function storeEvents(onEvent: ((event: ApplianceEvent) => void) | undefined) {
  return (dir: string, { kind, message, cause }: StoreEvent): void =>
    onEvent?.({ level: levels[kind], message: `${dir}: ${message}`, ...(cause === undefined ? {} : { cause }) });
}
