// OverviewPage is the operator's start page: how the service is used, its health, and what will soon need attention.
import { useEffect, useId, useRef } from 'hono/jsx/dom';
import type { AnswerTo } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { type TimeRangeName, timeRanges } from '../../model/time-ranges.ts';
import { epochTimeOf } from '../../model/timestamp.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { PageHeader, tellTenant } from '../parts/page.tsx';
import { Segments } from '../parts/segments.tsx';
import { type Answer, useAnswer, useState } from '../parts/state.ts';
import { RingTags, Time } from '../parts/values.tsx';
import { countText, spanText } from '../text.ts';
import { type Concern, concernsOf } from './attention.ts';
import { Chart } from './chart.tsx';
import {
  dueOf,
  nearRotation,
  numbersOf,
  type OverviewNumbers,
  type RingRotation,
  type Rotations,
  rotationsOf,
} from './counts.ts';
import { isUnused } from './first-steps.ts';
import { FirstSteps } from './first-steps-list.tsx';
import { type Readiness, readinessOf } from './health.ts';
import { BackupTile, LogNumbers, SealTile, Tile, TileAnswer } from './tiles.tsx';

/** Milliseconds between refreshes, which are recorded once an hour. */
const lookEvery = 60_000;

export function OverviewPage({ api, polls, session, stream }: PageProps) {
  const [range, setRange] = useState<TimeRangeName>('day');
  const [at, setAt] = useState(Date.now());
  const isVisited = useRef(false);
  // The visit is recorded; what follows it is a poll.
  const answer = useAnswer(
    async (signal) => {
      const found = await (isVisited.current ? polls : api).getOverview({ range }, { signal });
      isVisited.current = true;
      tellTenant(found.tenant);
      setAt(Date.now());
      return found;
    },
    [range],
  );
  const look = useRef(answer.reload);
  look.current = answer.reload;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) look.current?.();
    }, lookEvery);
    return () => clearInterval(timer);
  }, []);
  // The numbers of the range before stay until those of the next are here.
  const last = useRef<Overview>(null);
  if (answer.is === 'ready') last.current = answer.value;
  const found = answer.is === 'failed' ? undefined : (last.current ?? undefined);
  const shown = found ? { ...answer, is: 'ready' as const, value: found } : answer;
  const known = knownOf(found, at);
  const isNew = found !== undefined && isUnused(found);

  return (
    <>
      <PageHeader
        title="Overview"
        lead={
          <>
            As of <Time at={at} />, updated every minute.
          </>
        }
        actions={
          <button type="button" data-kind="quiet" onClick={answer.reload}>
            Refresh
          </button>
        }
      />
      {found && <FirstSteps key="steps" found={found} session={session} />}
      <Attention concerns={concernsOf(known, at)} isWhole={Object.values(known).every((each) => each !== undefined)} />
      <div data-tiles>
        <Tile title="Use" isWide beside={<RangeChoice range={range} onChange={setRange} />}>
          <TileAnswer
            of={partOf(shown, ({ use }) => use && numbersOf(use), 'activity.read')}
            what="who used what and when"
            show={(numbers) => <Numbers numbers={numbers} range={range} />}
          />
        </Tile>
        <SealTile answer={partOf(shown, stateIn(at), '')} />
        <BackupTile
          answer={partOf(shown, stateIn(at), '')}
          {...{ api }}
          backups={found?.backups}
          onLook={answer.reload}
          stream={found?.backups || !session.may.allows('system.metrics') ? stream : undefined}
        />
        {!isNew && (
          <Tile key="rings" title="Keyrings near their rotation">
            <TileAnswer
              of={partOf(shown, ({ keyrings }) => keyrings && rotationsOf(keyrings), 'keyring.list')}
              what="the keyrings"
              show={(rotations) => <Found found={rotations} at={at} />}
            />
          </Tile>
        )}
        {showsLog(found, isNew, session.may.allows('system.metrics')) && (
          <Tile key="log" title="Log and snapshot">
            <TileAnswer
              of={partOf(shown, ({ log }) => log, 'system.metrics')}
              what="the metrics"
              show={(log) => <LogNumbers log={log} />}
            />
          </Tile>
        )}
      </div>
    </>
  );
}

type Overview = AnswerTo<'getOverview'>;

/** While nothing is stored, the log is worth a look only if it fails. */
function showsLog(found: Overview | undefined, isNew: boolean, isAllowed: boolean): boolean {
  const { log } = found ?? {};
  if (isNew) return log !== undefined && (log.writesRefused || log.failures > 0);
  return log !== undefined || !isAllowed;
}

function knownOf(found: Overview | undefined, at: number) {
  return {
    state: found && stateIn(at)(found),
    backups: found?.backups,
    keys: found?.apikeys,
    proofs: found?.proofs,
    rings: found?.keyrings && rotationsOf(found.keyrings).rings,
    denials: found?.use,
  };
}

/** The state; the age of the backup is of now, since an answer without news is not sent again. */
function stateIn(at: number): (found: Overview) => Readiness {
  return ({ readiness: { ready, lastVerifiedBackup, ...rest } }) => {
    const backup = lastVerifiedBackup && {
      ...lastVerifiedBackup,
      ageSeconds: Math.max(0, Math.round((at - epochTimeOf(lastVerifiedBackup.at)) / 1000)),
    };
    const body = { ...rest, ...(backup !== undefined && { lastVerifiedBackup: backup }) };
    return readinessOf(ready ? 200 : 503, body);
  };
}

/** A section of the answer; refused if it is not there, for want of the flag. */
function partOf<T>(answer: Answer<Overview>, part: (found: Overview) => T | undefined, flag: string): Answer<T> {
  const { reload } = answer;
  const rest = { reload, set: () => {} };
  if (answer.is !== 'ready') return { ...answer, ...rest };
  const value = part(answer.value);
  if (value !== undefined) return { is: 'ready', value, ...rest };
  const error = new KmsError('forbidden', `the permission flag ${flag} is missing`);
  return { is: 'failed', error, ...rest };
}

interface AttentionProps {
  readonly concerns: readonly Concern[];
  /** Whether everything was checked. */
  readonly isWhole: boolean;
}

/** Problems that need attention first. */
function Attention({ concerns, isWhole }: AttentionProps) {
  const id = useId();
  return (
    <section aria-labelledby={id} data-attention>
      <h2 id={id}>What needs attention</h2>
      {concerns.length === 0 ? (
        <p key="none" role="status" data-quiet>
          Nothing{isWhole ? '' : ', as far as is known and you are allowed to see'}.
        </p>
      ) : (
        <ul key="some">
          {concerns.map(({ tone, name, text, mend }) => (
            <li key={`${name} ${text}`} data-tone={tone}>
              <span>
                {name !== undefined && <bdi>{name}</bdi>}
                {name === undefined ? text : ` ${text}`}
              </span>
              {'anchor' in mend ? (
                <a href={`#${mend.anchor}`}>{mend.title}</a>
              ) : (
                <a href={hrefTo(mend.page, mend.params, mend.query)}>{mend.title}</a>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

interface RangeChoiceProps {
  readonly range: TimeRangeName;
  readonly onChange: (range: TimeRangeName) => void;
}

function RangeChoice({ range, onChange }: RangeChoiceProps) {
  const names = Object.keys(timeRanges) as TimeRangeName[]; // an object with these keys only
  const choices = names.map((name) => ({ value: name, label: timeRanges[name].label }));
  return <Segments legend="Time range" choices={choices} chosen={range} onChange={onChange} />;
}

function Numbers({ numbers, range }: { readonly numbers: OverviewNumbers; readonly range: TimeRangeName }) {
  const { axis, series, cut } = numbers;
  const isEmpty = series.every(({ counts }) => counts.every((count) => count === 0));
  const title = `Encrypts, decrypts and denials, ${timeRanges[range].label.toLowerCase()}`;
  if (isEmpty && cut.length === 0) return <p data-empty>Nothing was encrypted, decrypted or denied in this time.</p>;
  return (
    <>
      <Chart key="chart" title={title} axis={axis} series={series} />
      {cut.map(({ name, since }) => (
        <p key={name} data-note data-tone="warn">
          {name}: only the newest are counted here, those since <Time at={since} />.
        </p>
      ))}
      <p data-quiet>
        From <Time at={axis.starts[0] ?? 0} /> until now.
      </p>
    </>
  );
}

/** Maximum number of rings shown, few enough to take in at a glance. */
const mostShown = 6;

interface FoundProps {
  readonly found: Rotations;
  /** Time of the answer. */
  readonly at: number;
}

function Found({ found: { rings, isCut }, at }: FoundProps) {
  const near = nearRotation(rings, at);
  if (rings.length === 0) {
    return (
      <p>
        There are no keyrings that you may read. <a href={hrefTo('keyrings')}>All keyrings</a>
      </p>
    );
  }
  return (
    <>
      {near.length === 0 && (
        <p key="none">
          None: every active key is in the first half of its encrypts and of its age.{' '}
          <a href={hrefTo('keyrings')}>All keyrings</a>
        </p>
      )}
      <ul key="near" data-plain>
        {near.slice(0, mostShown).map((ring) => (
          <Ring key={ring.ring} ring={ring} at={at} />
        ))}
      </ul>
      {near.length > mostShown && <p data-quiet>{countText(near.length - mostShown)} more are past half of the way.</p>}
      {isCut && <p data-quiet>Only the first keyrings of the list were checked.</p>}
    </>
  );
}

function Ring({ ring: rotation, at }: { readonly ring: RingRotation; readonly at: number }) {
  const { ring, traits = {}, served, most, since, rotateAfter = 0 } = rotation;
  const { share, by } = dueOf(rotation, at);
  const age = spanText(Math.max(0, (at - since) / 1000));
  return (
    <li>
      <div data-bar>
        <a href={hrefTo('keyring', { name: ring })}>
          <bdi>{ring}</bdi>
        </a>
        <span>
          {by === 'encrypts' ? `${countText(served)} of ${countText(most)}` : `${age} of ${spanText(rotateAfter)}`}
        </span>
      </div>
      <meter
        min={0}
        max={1}
        low={0.75}
        high={0.9}
        optimum={0}
        value={share}
        aria-label={`${ring}: ${by} of the active key against its limit`}
      >
        {Math.round(share * 100)} %
      </meter>
      <RingTags of={traits} />
      <small>Its key is {age} old; the next one comes by itself.</small>
    </li>
  );
}
