// The activity log as it grows: the newest records on top, a bounded number of them.

import type { Client } from '../../client/client.ts';
import { Failed, Loading } from '../parts/answer.tsx';
import { Rows } from '../parts/data-table.tsx';
import { useState } from '../parts/state.ts';
import { activityColumns } from './activity-columns.tsx';
import type { ActivityFilters } from './newest.ts';
import { type Following, mostRows, useTail } from './use-tail.ts';

export interface ActivityFollowedProps {
  readonly api: Client;
  readonly filters: ActivityFilters;
  /** Of the user who is looking: that this page asks for the log is itself in the log. Undefined where that is not known. */
  readonly ownId: string | undefined;
}

export function ActivityFollowed({ api, filters, ownId }: ActivityFollowedProps) {
  const [showsOwn, setShowsOwn] = useState(false);
  const following = useTail({ api, filters, without: showsOwn ? undefined : ownId });
  const { records } = following;
  return (
    <section aria-label="Live" data-live>
      <div data-bar>
        <p role="status" data-following={following.is}>
          {stateText(following)}
        </p>
        {ownId !== undefined && (
          <label data-inline>
            <input
              type="checkbox"
              checked={showsOwn}
              onChange={(event: Event) => setShowsOwn((event.target as HTMLInputElement).checked)}
            />{' '}
            Show my own reading of the log too
          </label>
        )}
      </div>
      {following.is === 'starting' && <Loading key="loading" />}
      {following.is === 'failed' && <Failed key="failed" error={following.error} />}
      {following.isGapped && (
        <p key="gap" data-note data-tone="warn">
          More came at once than is shown here: search for what is missing.
        </p>
      )}
      {records.length > 0 && (
        <Rows
          key="rows"
          caption="Activity, the newest first"
          columns={activityColumns}
          items={records}
          keyOf={({ id }) => id}
        />
      )}
      {records.length === 0 && following.is !== 'starting' && (
        <p key="empty" data-empty>
          Nothing yet. What happens from now on appears here.
        </p>
      )}
    </section>
  );
}

function stateText({ is }: Following): string {
  switch (is) {
    case 'starting':
      return 'Looking for the newest.';
    case 'following':
      return `Following. The newest ${mostRows} records are kept here.`;
    case 'paused':
      return 'Paused while this page is hidden.';
    case 'failed':
      return 'Interrupted; trying again in a moment.';
  }
}
