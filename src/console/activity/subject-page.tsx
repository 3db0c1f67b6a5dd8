// SubjectPage shows all activity records about one thing: what was done to it and, if it acts itself, what it did.
import { useActorNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { PageHeader } from '../parts/page.tsx';
import { useList } from '../parts/state.ts';
import { shortId } from '../text.ts';
import { ThingLink } from './record-parts.tsx';
import {
  type ActivityRecord,
  aboutFilters,
  deedOfRecord,
  isSubjectKind,
  type SubjectKind,
  withoutOwn,
} from './records.ts';
import { Records } from './timeline.tsx';

const titles: Readonly<Record<SubjectKind, string>> = {
  account: 'Account',
  apikey: 'API key',
  asset: 'Asset',
  'asym-keyring': 'Asymmetric keyring',
  keyring: 'Keyring',
  user: 'User',
};

/** Wording for records other than those of changes to it. */
const besides: Readonly<Record<SubjectKind, string>> = {
  account: ', and what its API keys did',
  apikey: ', and what was done with it',
  asset: '',
  'asym-keyring': ' and with it',
  keyring: ' and with it',
  user: ', and what they did',
};

export function SubjectPage(props: PageProps) {
  const { kind = '', id = '' } = props.params;
  if (isSubjectKind(kind)) return <Subject key={`${kind} ${id}`} {...props} kind={kind} id={id} />;
  return <PageHeader title="Page not found" lead="There is no page at this address." />;
}

interface SubjectProps extends PageProps {
  readonly kind: SubjectKind;
  readonly id: string;
}

function Subject({ api, session, kind, id }: SubjectProps) {
  const names = useActorNames();
  const ownId = session.user?.id;
  const filters = withoutOwn(aboutFilters(kind, id), ownId, false);
  const list = useList((page, signal) => api.searchActivity({ ...filters, ...page }, { signal }), [kind, id]);
  const isRing = kind.endsWith('keyring');
  const isOwnReadingMissing = ownId !== undefined && (kind === 'account' || (kind === 'user' && id === ownId));
  const name = isRing ? id : (names.get(id) ?? nameIn(list.items, id));
  return (
    <>
      <PageHeader
        title={`${titles[kind]} ${name ?? shortId(id)}`}
        windowTitle={`Activity: ${titles[kind]} ${name ?? id}`}
        back={{ href: hrefTo('activity'), title: 'Activity' }}
        lead={
          <>
            Everything in the log about{' '}
            <ThingLink thing={{ type: kind, id, ...(name !== undefined && { name }) }} names={names} />: what was done
            to it{besides[kind]}.{isOwnReadingMissing && ' Your own looks at the log are left out.'}
          </>
        }
      />
      <Records list={list} names={names} empty="The log has no records about it." />
    </>
  );
}

/** The name of the thing in the newest of the records that has one. */
function nameIn(records: readonly ActivityRecord[], id: string): string | undefined {
  const things = records.map((record) => deedOfRecord(record).object);
  return things.find((thing) => thing?.id === id && thing.name !== undefined)?.name;
}
