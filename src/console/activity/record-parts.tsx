// Record parts are what a record of the activity log reads as: who did what, to what, from where, and what came of it.
// Names stand in place of ids where they are known.
import { deedOf, type Thing } from '../../model/deed.ts';
import { hrefTo } from '../navigation.ts';
import type { Column } from '../parts/table.tsx';
import { Time } from '../parts/values.tsx';
import { shortId } from '../text.ts';
import type { ActivityRecord } from './records.ts';

/** By ids of users and API keys. */
type Names = ReadonlyMap<string, string>;

export function Verdict({ granted }: { readonly granted: boolean }) {
  return (
    <span data-tag data-tone={granted ? 'good' : 'bad'}>
      {granted ? 'granted' : 'denied'}
    </span>
  );
}

/** An API key, a user who was logged in, or the administrator at the machine. */
export function Actor({ keyid, names }: { readonly keyid: string; readonly names: Names }) {
  const [prefix] = keyid.split('_');
  const known = names.get(keyid);
  const name =
    known === undefined ? (
      <code data-whole title={keyid}>
        {keyid.includes('_') ? `${prefix}_${shortId(keyid)}` : keyid}
      </code>
    ) : (
      <bdi title={keyid}>{known}</bdi>
    );
  if (prefix === 'apik') return <a href={hrefTo('apikey', { id: keyid })}>{name}</a>;
  if (prefix === 'user' && known !== undefined) return <a href={hrefTo('user', { username: known })}>{name}</a>;
  return name;
}

/** What something was done to. */
export function ThingLink({ thing, names }: { readonly thing: Thing; readonly names: Names }) {
  const { type, id, name = names.get(id) } = thing;
  const shown =
    name === undefined ? (
      <code data-whole title={id}>
        {shortId(id)}
      </code>
    ) : (
      <bdi title={id}>{name}</bdi>
    );
  const href = hrefOf(thing);
  return (
    <span>
      {typeNames[type] ?? type} {href === undefined ? shown : <a href={href}>{shown}</a>}
    </span>
  );
}

const typeNames: Readonly<Partial<Record<string, string>>> = {
  account: 'account',
  apikey: 'API key',
  'asym-keyring': 'asym keyring',
};

function hrefOf({ type, id, name }: Thing): string | undefined {
  switch (type) {
    case 'account':
      return hrefTo('account', { id });
    case 'apikey':
      return hrefTo('apikey', { id });
    case 'asset':
      return hrefTo('asset', { id });
    case 'asym-keyring':
      return hrefTo('asym');
    case 'keyring':
      return name === undefined ? undefined : hrefTo('keyring', { name });
    case 'user':
      return name === undefined ? undefined : hrefTo('user', { username: name });
    default:
      return undefined;
  }
}

/** What others report says nothing of what was done here. */
export function deedOfRecord({ props, reporter }: ActivityRecord) {
  return deedOf(reporter === undefined ? props : {});
}

function What({ record, names }: { readonly record: ActivityRecord; readonly names: Names }) {
  const { object, objects = [], objectCount = objects.length } = deedOfRecord(record);
  const first = object ?? objects[0];
  const more = objectCount - (object ? 0 : 1);
  if (first) {
    return (
      <span>
        <ThingLink thing={first} names={names} />
        {more > 0 && ` and ${more} more`}
      </span>
    );
  }
  if (record.ringname === '') return <span data-quiet>none</span>;
  return (
    <span>
      {record.action.startsWith('asym.') ? 'asym keyring' : 'keyring'} <bdi>{record.ringname}</bdi>
    </span>
  );
}

export function From({ record: { address, keyid, reporter } }: { readonly record: ActivityRecord }) {
  if (address !== undefined) return <code data-any>{address}</code>;
  return <span data-quiet>{keyid === 'local' && reporter === undefined ? 'the machine itself' : 'not known'}</span>;
}

export function activityColumns(names: Names): readonly Column<ActivityRecord>[] {
  return [
    {
      title: 'When',
      kind: 'name',
      cell: ({ id, createdAt }) => (
        <a href={hrefTo('activityRecord', { id })}>
          <Time at={createdAt} />
        </a>
      ),
    },
    { title: 'Who', cell: ({ keyid }) => <Actor keyid={keyid} names={names} /> },
    { title: 'Did', cell: ({ action }) => <code data-any>{action}</code> },
    { title: 'To what', cell: (record) => <What record={record} names={names} /> },
    { title: 'From', cell: (record) => <From record={record} /> },
    { title: 'Verdict', cell: ({ validAction }) => <Verdict granted={validAction} /> },
    { title: 'Status', kind: 'number', cell: ({ status }) => String(status) },
  ];
}
