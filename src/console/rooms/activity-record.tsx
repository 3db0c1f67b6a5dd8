// One record of the activity log, with all that it says.
import { Actor, Verdict } from '../activity/activity-columns.tsx';
import type { ActivityRecord } from '../activity/newest.ts';
import { hrefTo } from '../address.ts';
import { Loaded, useAnswer } from '../parts/answer.tsx';
import { Facts } from '../parts/facts.tsx';
import { Json } from '../parts/json.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { Time } from '../parts/time.tsx';
import type { RoomProps } from '../room.ts';

export function ActivityRecordRoom({ api, params }: RoomProps) {
  const { id = '' } = params;
  const answer = useAnswer((signal) => api.getActivity({ id }, { signal }), [id]);
  return (
    <>
      <PageHeader title="Activity record" back={{ href: hrefTo('activity'), title: 'Activity' }} />
      <Loaded of={answer} show={(record) => <Record record={record} />} />
    </>
  );
}

function Record({ record }: { readonly record: ActivityRecord }) {
  const { id, keyid, createdAt, action, ringname, validAction, status, props } = record;
  return (
    <>
      <section data-panel>
        <Facts
          facts={[
            ['Id', <code key="id">{id}</code>],
            ['When', <Time key="when" at={createdAt} />],
            ['Action', <code key="action">{action}</code>],
            ringname !== '' && [
              'Ring',
              <a key="ring" href={action.startsWith('asym.') ? hrefTo('asym') : hrefTo('keyring', { name: ringname })}>
                <bdi>{ringname}</bdi>
              </a>,
            ],
            ['Verdict', <Verdict key="verdict" granted={validAction} />],
            ['Status', `${status}: ${statusText(status)}`],
            ['By', <Actor key="by" keyid={keyid} />],
          ]}
        />
      </section>
      <section data-panel>
        <h2>Properties</h2>
        <Json value={props} />
      </section>
      <p>
        <a href={hrefTo('activity', {}, { keyid })}>All activity of the same credential</a>
      </p>
    </>
  );
}

function statusText(status: number): string {
  const texts: Readonly<Record<number, string>> = {
    200: 'done',
    400: 'the request made no sense',
    401: 'the credential is disabled or past its time',
    403: 'not allowed, or a limit is reached',
    404: 'no such thing',
    413: 'the request was too large',
    422: 'an asset does not verify',
    503: 'the service could not serve',
  };
  return texts[status] ?? 'the service failed';
}
