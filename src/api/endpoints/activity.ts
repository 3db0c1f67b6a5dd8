// The activity log.
import { z } from 'zod';
import { activity, searchActivityBody } from '../activity.ts';
import { endpoint } from '../endpoint.ts';
import { errorBody } from '../error.ts';
import { pageOf, pageQuery } from '../page.ts';
import { pathText } from '../values.ts';

const tag = 'Activity';

export const activityEndpoints = [
  endpoint({
    id: 'searchActivity',
    method: 'POST',
    path: '/auth/search/activity',
    changes: false,
    tag,
    summary: 'Search activity, newest first',
    access: { kind: 'flag', action: 'activity.read' },
    query: z.object(pageQuery),
    body: searchActivityBody,
    answer: pageOf(activity),
    paginated: true,
  }),
  endpoint({
    id: 'getActivity',
    method: 'GET',
    path: '/auth/activity/{id}',
    tag,
    summary: 'Read an activity',
    access: { kind: 'flag', action: 'activity.read' },
    params: z.object({ id: pathText }),
    answer: activity,
    errors: { 404: { description: 'no such activity', schema: errorBody } },
  }),
] as const;
