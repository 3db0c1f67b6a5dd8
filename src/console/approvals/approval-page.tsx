// ApprovalPage shows one request: what will happen, who asked, the decisions so far and what is still needed. Approvers
// decide here, and requesters see what they wait for. It updates itself while it is open.
import type { ApprovalRequest } from '../../api/approvals.ts';
import { sameJson } from '../../model/json.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Confirm } from '../parts/dialog.tsx';
import { Loaded, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { type Column, Rows } from '../parts/table.tsx';
import { Ago, Copyable, Facts, Time } from '../parts/values.tsx';
import { ActPanel } from './act-panel.tsx';
import { actText, isOpen, missingText, narrowestWindow, windowText } from './act-words.ts';
import { DecideDialog, type Decision } from './decide-dialog.tsx';
import { lookOften, useApprovals, usePolling } from './live.ts';
import { Person, Progress, RequestState } from './request-parts.tsx';

export function ApprovalPage({ api, polls, session, params }: PageProps) {
  const { id = '' } = params;
  const { look } = useApprovals();
  const answer = useAnswer((signal) => api.getApprovalRequest({ id }, { signal }), [id]);
  const [open, setOpen] = useState<Decision | 'withdraw' | undefined>(undefined);
  const request = answer.is === 'ready' ? answer.value : undefined;
  usePolling(() => {
    if (!request || !isOpen(request)) return;
    const news = polls.listApprovalRequests({}).then(({ requests }) => requests.find((each) => each.id === id));
    void news.then((found) => found && !sameJson(found, request) && answer.set(found)).catch(() => {});
  }, lookOften);
  const close = (): void => setOpen(undefined);
  const changed = (text: string) => (now: ApprovalRequest) => {
    answer.set(now);
    close();
    toast(text);
    look();
  };

  return (
    <>
      <PageHeader
        title={request ? actText(request) : 'Approval request'}
        windowTitle="Approval request"
        back={{ href: hrefTo('approvals'), title: 'Approvals' }}
        lead={request && <Asked request={request} />}
        actions={request && <Actions request={request} onOpen={setOpen} />}
      />
      <Loaded of={answer} show={(found) => <Request request={found} ownId={session.user?.id} />} />
      {request && open !== undefined && open !== 'withdraw' && (
        <DecideDialog
          key={open}
          {...{ api, request }}
          decision={open}
          onClose={close}
          onDecided={changed(decided[open])}
        />
      )}
      {request && open === 'withdraw' && (
        <Confirm
          key="withdraw"
          title="Withdraw the request?"
          action="Withdraw it"
          busy="Withdrawing it…"
          kind="danger"
          onClose={close}
          onConfirm={async () => changed('The request is withdrawn.')(await api.withdrawRequest({ id }))}
        >
          <p>
            The request ends, with the approvals that it has. If it is needed after all, it has to be asked for again.
          </p>
        </Confirm>
      )}
    </>
  );
}

const decided: Readonly<Record<Decision, string>> = {
  approve: 'You approved it.',
  deny: 'You denied it.',
  breakGlass: 'The glass is broken: it can be done now.',
};

function Asked({ request: { requester, createdAt, address, reason } }: { readonly request: ApprovalRequest }) {
  return (
    <>
      <Person of={requester} /> asked for it <Ago at={createdAt} />
      {address !== undefined && (
        <span key="from">
          {' '}
          from <code data-any>{address}</code>
        </span>
      )}
      {reason === undefined ? (
        '.'
      ) : (
        <span key="why">
          : “<bdi>{reason}</bdi>”
        </span>
      )}
    </>
  );
}

interface ActionsProps {
  readonly request: ApprovalRequest;
  readonly onOpen: (open: Decision | 'withdraw') => void;
}

function Actions({ request: { may }, onOpen }: ActionsProps) {
  return (
    <>
      {may.approve && (
        <button key="approve" type="button" onClick={() => onOpen('approve')}>
          Approve…
        </button>
      )}
      {may.deny && (
        <button key="deny" type="button" data-kind="danger" onClick={() => onOpen('deny')}>
          Deny…
        </button>
      )}
      {may.breakGlass && (
        <button key="break" type="button" data-kind="danger" onClick={() => onOpen('breakGlass')}>
          Break the glass…
        </button>
      )}
      {may.withdraw && (
        <button key="withdraw" type="button" data-kind="quiet" onClick={() => onOpen('withdraw')}>
          Withdraw it…
        </button>
      )}
    </>
  );
}

interface RequestProps {
  readonly request: ApprovalRequest;
  readonly ownId: string | undefined;
}

function Request({ request, ownId }: RequestProps) {
  const { requester, reason, createdAt, address, statement, digest } = request;
  return (
    <>
      <Standing request={request} isOwn={requester.id === ownId} />
      <ActPanel request={request} />
      <Words request={request} />
      <section data-panel>
        <h2>The request</h2>
        <Facts
          facts={[
            ['Asked by', <Person key="who" of={requester} />],
            ['From', address === undefined ? <span data-quiet>not known</span> : <code key="from">{address}</code>],
            ['When', <Time key="when" at={createdAt} />],
            ['Why', reason === undefined ? <span data-quiet>no reason was given</span> : <bdi key="why">{reason}</bdi>],
            ['Id', <Copyable key="id" text={request.id} what="the id of the request" />],
            ['Digest', <Copyable key="digest" text={digest} what="the digest of the request" isLong />],
            [
              'Activity',
              <a key="log" href={hrefTo('activity', {}, { object: request.id })}>
                Everything about it
              </a>,
            ],
          ]}
        />
        <details>
          <summary>The statement that is approved</summary>
          <p>To approve, a passkey signs the digest of exactly this text (SHA-256).</p>
          <pre>
            <code>{statement}</code>
          </pre>
        </details>
      </section>
    </>
  );
}

interface StandingProps {
  readonly request: ApprovalRequest;
  readonly isOwn: boolean;
}

/** How far it is: the state, what is still needed, and what the reader can do about it. */
function Standing({ request, isOwn }: StandingProps) {
  const { state, needed, given, rules, expiresAt, may, uses } = request;
  return (
    <section data-panel aria-label="State">
      <p data-standing>
        <RequestState request={request} />
        {isOpen(request) && <Progress key="progress" {...{ needed, given }} />}
        <span data-quiet>{standingText(request, isOwn)}</span>
      </p>
      {may.problem !== undefined && state === 'pending' && (
        <p key="problem" data-note>
          You cannot approve it yourself: {may.problem}.
        </p>
      )}
      <Facts
        facts={[
          ...rules.map(
            (rule) =>
              [
                'Rule',
                <span key={rule.id}>
                  <a href={hrefTo('approvalRule', { id: rule.id })}>
                    <bdi>{rule.name}</bdi>
                  </a>
                  : {rule.given} of {rule.count}
                </span>,
              ] as const,
          ),
          isOpen(request) && [
            state === 'pending' ? 'Ends, if not approved' : 'Ends',
            <Time key="end" at={expiresAt} />,
          ],
          uses > 0 && ['Done so far', uses === 1 ? 'once' : `${uses} times`],
        ]}
      />
    </section>
  );
}

function standingText(request: ApprovalRequest, isOwn: boolean): string {
  const who = isOwn ? 'you' : 'the requester';
  const window = windowText(narrowestWindow(request.rules));
  switch (request.state) {
    case 'pending':
      return `It takes ${missingText(request)}. Then ${who} can do it ${window}.`;
    case 'granted':
      return isOwn ? `Do the same again now: it can be done ${window}.` : `The requester can do it now, ${window}.`;
    case 'done':
      return request.broken ? 'It was done without approval.' : 'It was approved and done.';
    case 'denied':
      return isOwn ? 'Doing the same again makes a new request.' : 'It will not be done.';
    case 'withdrawn':
      return 'It was withdrawn.';
    case 'expired':
      return 'It was not approved in time.';
  }
}

type Word = ApprovalRequest['words'][number];

const wordColumns: readonly Column<Word>[] = [
  { title: 'Who', kind: 'name', cell: ({ by }) => <Person of={by} /> },
  {
    title: 'Word',
    cell: ({ verdict, counts }) => (
      <>
        <span data-tag data-tone={verdict === 'deny' ? 'bad' : counts ? 'good' : undefined}>
          {verdict === 'deny' ? 'denied' : 'approved'}
        </span>
        {!counts && (
          <span key="not">
            {' '}
            <span data-tag data-tone="warn">
              does not count
            </span>
          </span>
        )}
      </>
    ),
  },
  { title: 'When', cell: ({ at }) => <Ago at={at} /> },
  {
    title: 'Proved by',
    cell: ({ factor, signed }) =>
      factor === 'totp' ? 'a code' : signed ? 'a passkey that signed it' : 'a passkey, at a recent login',
  },
  {
    title: 'Why',
    cell: ({ reason, problem }) => (
      <>
        {reason !== undefined && <bdi key="reason">{reason}</bdi>}
        {problem !== undefined && (
          <p key="problem" data-tone="warn">
            It does not count: {problem}.
          </p>
        )}
      </>
    ),
  },
];

function Words({ request: { words } }: { readonly request: ApprovalRequest }) {
  return (
    <section data-panel>
      <h2>Decisions so far</h2>
      {words.length === 0 ? (
        <p key="none" data-quiet>
          Nobody has decided yet.
        </p>
      ) : (
        <Rows
          key="words"
          caption="Decisions so far"
          columns={wordColumns}
          items={words}
          keyOf={({ by, at }) => `${by.id} ${at}`}
        />
      )}
    </section>
  );
}
