// All items of a list or a search, page by page, as they are asked for.
import type { CallOptions, PageInfo } from './methods.ts';

interface PageAnswer<T> {
  readonly data: readonly T[];
  readonly pagination: PageInfo;
}

interface PageInput {
  readonly cursor?: string;
  readonly limit?: number;
}

/** Answers the page of `input`, which may hold `cursor` and `limit` besides the filters. */
type PageMethod<P, Input extends object> = (input: Input & PageInput, options?: CallOptions) => Promise<P>;

/**
 * Every item that a paginated method answers, over all pages: `for await (const ring of items(kms.listKeyrings, {}))`.
 * `input.limit` is the size of a page, `input.cursor` where to begin. A page is asked for when its first item is.
 */
export async function* items<T, Input extends object>(
  method: PageMethod<PageAnswer<T>, Input>,
  input: Input & PageInput,
  options?: CallOptions,
): AsyncGenerator<T, void, void> {
  for await (const { data } of pages(method, input, options)) yield* data;
}

/** The same page by page, each as it was answered. */
export async function* pages<P extends PageAnswer<unknown>, Input extends object>(
  method: PageMethod<P, Input>,
  input: Input & PageInput,
  options?: CallOptions,
): AsyncGenerator<P, void, void> {
  let next: (Input & PageInput) | undefined = input;
  while (next) {
    const page: P = await method(next, options);
    yield page;
    const { nextCursor }: PageInfo = page.pagination;
    next = nextCursor === undefined ? undefined : { ...next, cursor: nextCursor };
  }
}
