// How an activity is shown to people.
import type { Activity } from '../../../api/activity.ts';
import type { Pair } from '../../output.ts';
import type { Column } from '../../table.ts';

export function activityPairs(activity: Activity): readonly Pair[] {
  return [
    ['id', activity.id],
    ['time', time(activity)],
    ['by', activity.keyid],
    ['action', activity.action],
    ['ring', activity.ringname],
    ['verdict', verdict(activity)],
    ['status', activity.status],
    ['props', JSON.stringify(activity.props)],
  ];
}

export const activityColumns: readonly Column<Activity>[] = [
  { title: 'time', value: time, whole: true },
  { title: 'action', value: (activity) => activity.action },
  { title: 'ring', value: (activity) => activity.ringname },
  { title: 'verdict', value: verdict, whole: true },
  { title: 'status', value: (activity) => activity.status, spare: true },
  { title: 'by', value: (activity) => activity.keyid, whole: true },
  { title: 'id', value: (activity) => activity.id, whole: true, spare: true },
];

function time({ createdAt }: Activity): string {
  const date = new Date(createdAt);
  return Number.isNaN(date.getTime()) ? String(createdAt) : date.toISOString();
}

function verdict({ validAction }: Activity): string {
  return validAction ? 'granted' : 'denied';
}
