// Routes of the activity log. Records may lie in closed segments on disk, so both are read before the transaction.
import type { activityEndpoints } from '../../api/endpoints/activity.ts';
import { getActivity, searchActivity } from '../../core/activity.ts';
import { type RoutesOf, staged } from '../route.ts';

export const activityRoutes: RoutesOf<(typeof activityEndpoints)[number]['id']> = {
  searchActivity: staged('searchActivity', {
    prepare: ({ body, page }, { handle }) => searchActivity(handle.store, body, page),
    run: async (_ctx, _input, found) => found,
    answer: (found) => found,
  }),
  getActivity: staged('getActivity', {
    prepare: ({ params }, { handle }) => getActivity(handle.store, params.id),
    run: async (_ctx, _input, found) => found,
    answer: (found) => found,
  }),
};
