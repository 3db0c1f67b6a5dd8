// All items of a list or a search, page by page, as they are asked for.
import type { CallOptions } from './client.ts';

interface PageAnswer<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly hasMore: boolean; readonly nextCursor?: string };
}

interface PageInput {
  readonly cursor?: string;
  readonly limit?: number;
}

/**
 * Every item that a paginated method answers, over all pages: `for await (const ring of items(kms.listKeyrings, {}))`.
 * `input.limit` is the size of a page, `input.cursor` where to begin.
 */
export async function* items<T, Input extends object>(
  method: (input: Input & PageInput, options?: CallOptions) => Promise<PageAnswer<T>>,
  input: Input & PageInput,
  options?: CallOptions,
): AsyncGenerator<T, void, void> {
  let next: (Input & PageInput) | undefined = input;
  while (next) {
    const { data, pagination }: PageAnswer<T> = await method(next, options);
    yield* data;
    next = pagination.nextCursor === undefined ? undefined : { ...next, cursor: pagination.nextCursor };
  }
}
