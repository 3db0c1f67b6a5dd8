// All items of a list or a search, page by page, as they are asked for.
import type { CallOptions } from './client.ts';

interface PageAnswer<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly hasMore: boolean; readonly nextCursor?: string };
}

/**
 * Every item that a paginated method answers, over all pages: `for await (const ring of items(kms.listKeyrings, {}))`.
 * `input.limit` is the size of a page, `input.cursor` where to begin.
 */
export async function* items<T, Input extends { readonly cursor?: string | boolean }>(
  method: (input: Input, options?: CallOptions) => Promise<PageAnswer<T>>,
  input: Input,
  options?: CallOptions,
): AsyncGenerator<T, void, void> {
  let next: Input | undefined = input;
  while (next) {
    const { data, pagination }: PageAnswer<T> = await method(next, options);
    yield* data;
    next = pagination.nextCursor === undefined ? undefined : { ...next, cursor: pagination.nextCursor };
  }
}
