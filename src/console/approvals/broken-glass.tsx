// Broken glass: what was done without the approval that it needed. A banner on every page warns of it until somebody
// acknowledges it, which is done on the page of broken glass.
import type { BrokenGlass } from '../../api/approvals.ts';
import { wordsOf } from '../activity/words.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { ListEnd } from '../parts/table.tsx';
import { Facts, Time } from '../parts/values.tsx';
import { countText, upperFirst } from '../text.ts';
import { Thing } from './act-panel.tsx';
import { listOf } from './list-of.ts';
import { useApprovals } from './live.ts';
import { Person } from './request-parts.tsx';

/** Over every page until all is acknowledged. */
export function GlassBanner({ broken }: { readonly broken: readonly BrokenGlass[] }) {
  const [first, ...others] = broken;
  if (!first) return null;
  return (
    <div role="alert" data-note data-tone="bad" data-glass>
      <p>
        <strong>The glass was broken.</strong> <Person of={first.by} /> did this without the approval that it needs:{' '}
        <BrokenAct of={first} />.{others.length > 0 && ` It was broken ${countText(others.length)} more times.`}
      </p>
      <p>
        Why: <bdi>{first.reason}</bdi>
      </p>
      <p>
        <a href={hrefTo('brokenGlass')}>See and acknowledge it</a>
      </p>
    </div>
  );
}

interface BrokenActProps {
  readonly of: BrokenGlass;
  /** Whether it begins a line. */
  readonly isFirst?: boolean;
}

function BrokenAct({ of: { action, object }, isFirst = false }: BrokenActProps) {
  const words = wordsOf(plainAction(action));
  if (!words) return <code data-any>{action}</code>;
  return (
    <span title={action}>
      {isFirst ? upperFirst(words.base) : words.base}{' '}
      {words.things !== '' && (object ? <Thing of={object} /> : words.things)}
    </span>
  );
}

/** The action of a flag that may name a ring: `key.delete` of `key.payroll.delete`. */
function plainAction(flag: string): string {
  return `${flag.slice(0, flag.indexOf('.'))}${flag.slice(flag.lastIndexOf('.'))}`;
}

export function BrokenGlassPage({ api, session }: PageProps) {
  const { look } = useApprovals();
  const answer = useAnswer(async (signal) => (await api.listBrokenGlass({}, { signal })).broken);
  const [asked, setAsked] = useState<BrokenGlass | undefined>(undefined);
  const broken = answer.is === 'ready' ? answer.value : [];
  return (
    <>
      <PageHeader
        title="Broken glass"
        back={{ href: hrefTo('approvals'), title: 'Approvals' }}
        lead="What was done in an emergency, without the approval that it needed. Every page warns of it until it is acknowledged."
      />
      {broken.map((each) => (
        <Broken key={each.id} of={each} isOwn={each.by.id === session.user?.id} onAcknowledge={() => setAsked(each)} />
      ))}
      <ListEnd list={listOf(answer)} empty={<p>The glass was never broken.</p>} />
      {asked && (
        <Confirm
          title="Acknowledge it?"
          action="Acknowledge it"
          needs="approval.rule"
          onClose={() => setAsked(undefined)}
          onConfirm={async () => {
            await api.acknowledgeBrokenGlass({ id: asked.id });
            setAsked(undefined);
            answer.reload();
            look();
            toast('It has been acknowledged.');
          }}
        >
          <p>
            You say that you know of it, and have looked into it. The warnings of it end; what was done stays in the
            activity log.
          </p>
        </Confirm>
      )}
    </>
  );
}

interface BrokenProps {
  readonly of: BrokenGlass;
  readonly isOwn: boolean;
  readonly onAcknowledge: () => void;
}

function Broken({ of, isOwn, onAcknowledge }: BrokenProps) {
  const { at, by, reason, action, request, acknowledged } = of;
  return (
    <section data-panel>
      <div data-bar>
        <h2>
          <BrokenAct of={of} isFirst />
        </h2>
        {acknowledged === null && !isOwn && (
          <Button kind="quiet" needs="approval.rule" onClick={onAcknowledge}>
            Acknowledge…
          </Button>
        )}
      </div>
      <Facts
        facts={[
          ['Who', <Person key="who" of={by} />],
          ['When', <Time key="when" at={at} />],
          ['Why', <bdi key="why">{reason}</bdi>],
          ['Permission', <code key="action">{action}</code>],
          request !== undefined && [
            'Request',
            <a key="request" href={hrefTo('approval', { id: request })}>
              What was asked for
            </a>,
          ],
          [
            'Acknowledged',
            acknowledged === null ? (
              <span key="not" data-tag data-tone="bad">
                {isOwn ? 'not yet: somebody else has to do it' : 'not yet'}
              </span>
            ) : (
              <span key="by">
                by <Person of={acknowledged.by} isInside />, <Time at={acknowledged.at} />
              </span>
            ),
          ],
        ]}
      />
    </section>
  );
}
