// By what activity can be searched.
import { type Fields, searchFields } from '../search-fields.ts';
import type { ActivityFilters } from './newest.ts';

type Name = keyof ActivityFilters;
export type FilterFields = Fields<Name>;

export const activityFields = searchFields<Name, ActivityFilters>({
  accountUid: 'text',
  accountId: 'text',
  action: 'text',
  ring: 'text',
  keyid: 'text',
  valid: 'switch',
  start: 'start',
  end: 'end',
  props: 'object',
});
