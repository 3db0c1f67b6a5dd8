// What a store has to say to its operator, apart from the answers to requests.

export interface StoreNotice {
  readonly kind: 'torn-tail' | 'write-failed' | 'recovered' | 'recovery-failed' | 'checkpoint' | 'checkpoint-failed';
  readonly message: string;
  readonly cause?: unknown;
}

/** A cause in a few words: the system's code where there is one. */
export function inWords(cause: unknown): string {
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  if (code === 'ENOSPC') return 'no space left on the disk';
  if (code === 'EDQUOT') return 'the disk quota is used up';
  if (code === 'EIO') return 'the disk failed';
  if (code === 'EROFS') return 'the file system is read-only';
  if (cause instanceof Error) return cause.message;
  return String(cause);
}
