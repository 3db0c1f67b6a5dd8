// All items of a list or a search, fetched page by page on demand.
import { unexpected } from './failure.ts';
import type { CallOptions, PageInfo } from './methods.ts';

interface PageAnswer<T> {
  readonly data: readonly T[];
  readonly pagination: PageInfo;
}

interface PageInput {
  readonly cursor?: string;
  readonly limit?: number;
}

/** Returns the page for `input`, which may hold `cursor` and `limit` besides the filters. */
type PageMethod<P, Input extends object> = (input: Input & PageInput, options?: CallOptions) => Promise<P>;

/**
 * All items of a paginated method, over all pages: `for await (const ring of items(kms.listKeyrings, {}))`.
 * `input.limit` is the page size, `input.cursor` the start. A page is requested when its first item is read.
 */
export async function* items<T, Input extends object>(
  method: PageMethod<PageAnswer<T>, Input>,
  input: Input & PageInput,
  options?: CallOptions,
): AsyncGenerator<T, void, void> {
  for await (const { data } of pages(method, input, options)) yield* data;
}

/**
 * The same page by page, each as answered. Throws `unavailable` for an answer that is not a page, and for a list that
 * loops, which would never end.
 */
export async function* pages<P extends PageAnswer<unknown>, Input extends object>(
  method: PageMethod<P, Input>,
  input: Input & PageInput,
  options?: CallOptions,
): AsyncGenerator<P, void, void> {
  let next: (Input & PageInput) | undefined = input;
  // Loop detection: compares with one earlier page, replaced by a later one each time the number of pages doubles
  // (Brent 1980).
  let kept: readonly unknown[] = [];
  for (let n = 1; next; n++) {
    const page: P = await method(next, options);
    // Anything may have answered.
    const { data, pagination }: Partial<P> = page;
    const cursor = Object(pagination).nextCursor;
    const place = [cursor, JSON.stringify(Object(data)[0])];
    if (!Array.isArray(data) || place.some((each, i) => each && each === kept[i])) {
      throw unexpected('no page, or one from before');
    }
    if ((n & (n - 1)) === 0) kept = place;
    yield page;
    next = cursor ? { ...next, cursor } : undefined;
  }
}
