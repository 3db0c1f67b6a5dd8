// Pages of store rows made pages of answers.
import type { Page } from '../store/sql.ts';

export function mapPage<A, B>(page: Page<A>, answer: (item: A) => B): Page<B> {
  const items = page.items.map(answer);
  return page.next === undefined ? { items } : { items, next: page.next };
}
