// ApprovalsPage lists approval requests: those that wait for the reader, the reader's own, or all that the reader may
// see. It updates itself while it is open.
import { useRef } from 'hono/jsx/dom';
import type { ApprovalRequest } from '../../api/approvals.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { PageHeader } from '../parts/page.tsx';
import { Segments } from '../parts/segments.tsx';
import { useAnswer } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Ago } from '../parts/values.tsx';
import { listOf } from './list-of.ts';
import { lookOften, usePolling } from './live.ts';
import { Person, Progress, RequestLink, RequestState } from './request-parts.tsx';

const views = [
  { value: 'inbox', label: 'Waiting for you' },
  { value: 'mine', label: 'Your requests' },
  { value: 'all', label: 'All' },
] as const;
type View = (typeof views)[number]['value'];

const empty: Readonly<Record<View, string>> = {
  inbox: 'Nothing waits for your approval.',
  mine: 'Nothing that you did needed approval.',
  all: 'There are no requests that concern you.',
};

export function ApprovalsPage({ api, polls, navigate, query }: PageProps) {
  const view = views.find(({ value }) => value === query.get('show'))?.value ?? 'inbox';
  return (
    <>
      <PageHeader
        title="Approvals"
        lead="What others want to do, and may do only once it is approved. This list updates by itself."
        actions={
          <>
            <ButtonLink kind="quiet" href={hrefTo('brokenGlass')}>
              Broken glass
            </ButtonLink>
            <ButtonLink kind="quiet" href={hrefTo('approvalRules')}>
              Rules
            </ButtonLink>
          </>
        }
      />
      <Segments
        legend="Which requests"
        choices={views}
        chosen={view}
        onChange={(next) => navigate(hrefTo('approvals', {}, next === 'inbox' ? {} : { show: next }), 'replace')}
      />
      <Requests key={view} {...{ api, polls, view }} />
    </>
  );
}

interface RequestsProps extends Pick<PageProps, 'api' | 'polls'> {
  readonly view: View;
}

/** The first look is recorded; what follows it is a poll. */
function Requests({ api, polls, view }: RequestsProps) {
  const filter = view === 'inbox' ? { inbox: true as const } : view === 'mine' ? { mine: true as const } : {};
  const isVisited = useRef(false);
  const pages = useRef(1);
  const hasMore = useRef(false);
  const answer = useAnswer(async (signal) => {
    const client = isVisited.current ? polls : api;
    const found: ApprovalRequest[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < (pages.current ?? 1); page++) {
      const input = { ...filter, ...(cursor !== undefined && { cursor }) };
      const { requests, nextCursor } = await client.listApprovalRequests(input, { signal });
      found.push(...requests);
      cursor = nextCursor;
      if (cursor === undefined) break;
    }
    isVisited.current = true;
    hasMore.current = cursor !== undefined;
    return found;
  });
  const more = (): void => {
    pages.current = (pages.current ?? 1) + 1;
    answer.reload();
  };
  usePolling(answer.reload, lookOften);
  return (
    <DataTable
      caption={views.find(({ value }) => value === view)?.label ?? ''}
      columns={columns}
      list={{ ...listOf(answer), hasMore: hasMore.current === true, more }}
      keyOf={({ id }) => id}
      empty={<p>{empty[view]}</p>}
    />
  );
}

const columns: readonly Column<ApprovalRequest>[] = [
  { title: 'What', kind: 'name', cell: (request) => <RequestLink request={request} /> },
  { title: 'Who', cell: ({ requester }) => <Person of={requester} /> },
  { title: 'Asked', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { title: 'Approvals', cell: ({ needed, given }) => <Progress {...{ needed, given }} /> },
  { title: 'State', cell: (request) => <RequestState request={request} /> },
];
