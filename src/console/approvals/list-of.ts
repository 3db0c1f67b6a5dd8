// A list for tables that came complete in one answer.
import type { List, Shown } from '../parts/state.ts';

export function listOf<T>(answer: Shown<readonly T[]>): List<T> {
  return {
    items: answer.is === 'ready' ? answer.value : [],
    is: answer.is,
    error: answer.is === 'failed' ? answer.error : undefined,
    hasMore: false,
    more: answer.reload,
    again: answer.reload,
  };
}
