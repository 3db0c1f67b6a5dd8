// How records of the activity log stand in a table.
import { hrefTo } from '../address.ts';
import { shortId } from '../id-text.ts';
import type { Column } from '../parts/data-table.tsx';
import { Time } from '../parts/time.tsx';
import type { ActivityRecord } from './newest.ts';

export const activityColumns: readonly Column<ActivityRecord>[] = [
  {
    title: 'When',
    kind: 'name',
    cell: ({ id, createdAt }) => (
      <a href={hrefTo('activityRecord', { id })}>
        <Time at={createdAt} />
      </a>
    ),
  },
  { title: 'Action', cell: ({ action }) => <code data-any>{action}</code> },
  { title: 'Ring', cell: ({ ringname }) => (ringname === '' ? <span data-quiet>none</span> : <bdi>{ringname}</bdi>) },
  { title: 'Verdict', cell: ({ validAction }) => <Verdict granted={validAction} /> },
  { title: 'Status', kind: 'number', cell: ({ status }) => String(status) },
  { title: 'By', cell: ({ keyid }) => <Actor keyid={keyid} /> },
];

export function Verdict({ granted }: { readonly granted: boolean }) {
  return (
    <span data-tag data-tone={granted ? 'good' : 'bad'}>
      {granted ? 'granted' : 'denied'}
    </span>
  );
}

/** An API key, or a user who was logged in. */
export function Actor({ keyid }: { readonly keyid: string }) {
  const [prefix] = keyid.split('_');
  const name = (
    <code data-whole title={keyid}>
      {`${prefix}_${shortId(keyid)}`}
    </code>
  );
  return prefix === 'apik' ? <a href={hrefTo('apikey', { id: keyid })}>{name}</a> : name;
}
