// What an appliance has to say apart from its answers, to whoever opened it.
import type { Logger } from '../http/request-log.ts';
import type { StoreEvent } from '../store/port.ts';

export interface Notice {
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  readonly cause?: unknown;
}

const levels: Readonly<Record<StoreEvent['kind'], Notice['level']>> = {
  'torn-tail': 'warn',
  'write-failed': 'error',
  recovered: 'info',
  'recovery-failed': 'error',
  checkpoint: 'info',
  'checkpoint-failed': 'error',
  'segment-fault': 'error',
  'segment-well': 'info',
};

export function onStoreNotice(onNotice: ((notice: Notice) => void) | undefined) {
  return (dir: string, { kind, message, cause }: StoreEvent): void =>
    onNotice?.({ level: levels[kind], message: `${dir}: ${message}`, ...(cause === undefined ? {} : { cause }) });
}

export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
