// OverviewPage is the operator's start page: how the service is used, its health, and what will soon need attention.
import { useEffect, useId } from 'hono/jsx/dom';
import type { Client } from '../../client/client.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { PageHeader } from '../parts/page.tsx';
import { type Answer, useAnswer, useState } from '../parts/state.ts';
import { RingTags, Time } from '../parts/values.tsx';
import { countText, spanText } from '../text.ts';
import { type Concern, concernsOf, denialsOf, keysWithEnds } from './attention.ts';
import { Chart } from './chart.tsx';
import {
  mostOfEach,
  type OverviewNumbers,
  overviewNumbers,
  type RingRotation,
  type Rotations,
  rotations,
  shareOf,
  type TimeRangeName,
  timeRanges,
} from './counts.ts';
import { BackupTile, LogTile, readiness, SealTile, Tile, TileAnswer, useMetrics, useTurn } from './tiles.tsx';

/** Milliseconds between refreshes; each is recorded in the activity log, so not more often. */
const lookEvery = 60_000;
/** Rings are refreshed on request and every 15th time only: counting their encrypts takes many requests. */
const ringsEvery = 15;

export function OverviewPage({ api, text, stream }: PageProps) {
  const [turn, setTurn] = useState(0);
  const [at, setAt] = useState(Date.now());
  const state = useAnswer(readiness);
  useTurn(state, turn);
  const metrics = useMetrics(text, turn);

  // Fetched only if this tenant may see metrics, so that no request is refused.
  const isOperator = metrics?.is === 'ready';
  const backups = useAnswer(async (signal) => (isOperator ? api.getBackups({}, { signal }) : undefined), [isOperator]);
  useTurn(backups, turn);

  const [ringTurn, setRingTurn] = useState(0);
  const rings = useAnswer((signal) => rotations(api, { signal }));
  useTurn(rings, ringTurn);
  const keys = useAnswer((signal) => keysWithEnds(api.listApiKeys, { signal }));
  useTurn(keys, ringTurn);
  const denials = useAnswer((signal) => denialsOf(api.searchActivity, Date.now(), { signal }));
  useTurn(denials, ringTurn);
  const known = {
    state: cameOf(state),
    backups: cameOf(backups),
    keys: cameOf(keys),
    rings: cameOf(rings)?.rings,
    denials: cameOf(denials),
  };

  const look = (withRings: boolean): void => {
    setTurn((before) => before + 1);
    setAt(Date.now());
    if (withRings) setRingTurn((before) => before + 1);
  };
  useEffect(() => {
    let looks = 0;
    const timer = setInterval(() => {
      if (!document.hidden) look(++looks % ringsEvery === 0);
    }, lookEvery);
    return () => clearInterval(timer);
  }, []);

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
          <button type="button" data-kind="quiet" onClick={() => look(true)}>
            Refresh
          </button>
        }
      />
      <Attention concerns={concernsOf(known, at)} isWhole={Object.values(known).every((each) => each !== undefined)} />
      <div data-tiles>
        <ChartTile api={api} turn={turn} />
        <SealTile answer={state} />
        <BackupTile answer={state} {...{ api, backups }} stream={metrics && stream} />
        <Tile title="Keyrings near their rotation">
          <TileAnswer of={rings} what="the keyrings" show={(found) => <Found found={found} />} />
        </Tile>
        {metrics && <LogTile metrics={metrics} />}
      </div>
    </>
  );
}

function cameOf<T>(answer: Answer<T>): T | undefined {
  return answer.is === 'ready' ? answer.value : undefined;
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

interface ChartTileProps {
  readonly api: Client;
  /** Changes when everything is fetched again. */
  readonly turn: number;
}

/** Encrypts, decrypts and denials over the last hour, day or week. */
function ChartTile({ api, turn }: ChartTileProps) {
  const [range, setRange] = useState<TimeRangeName>('day');
  const answer = useAnswer(
    (signal) => overviewNumbers(api.searchActivity, timeRanges[range], Date.now(), { signal }),
    [range],
  );
  useTurn(answer, turn);
  return (
    <Tile title="Use" isWide beside={<RangeChoice range={range} onChange={setRange} />}>
      <TileAnswer
        of={answer}
        what="who used what and when"
        show={(numbers) => <Numbers numbers={numbers} range={range} />}
      />
    </Tile>
  );
}

interface RangeChoiceProps {
  readonly range: TimeRangeName;
  readonly onChange: (range: TimeRangeName) => void;
}

function RangeChoice({ range, onChange }: RangeChoiceProps) {
  const id = useId();
  const names = Object.keys(timeRanges) as TimeRangeName[]; // an object with these keys only
  return (
    <fieldset data-segments>
      <legend data-spoken>Time range</legend>
      {names.map((name) => (
        <span key={name}>
          <input id={`${id}-${name}`} type="radio" name={id} checked={name === range} onChange={() => onChange(name)} />
          <label for={`${id}-${name}`}>{timeRanges[name].label}</label>
        </span>
      ))}
    </fieldset>
  );
}

function Numbers({ numbers, range }: { readonly numbers: OverviewNumbers; readonly range: TimeRangeName }) {
  const { axis, series, cut } = numbers;
  const isEmpty = series.every(({ counts }) => counts.every((count) => count === 0));
  const title = `Encrypts, decrypts and denials, ${timeRanges[range].label.toLowerCase()}`;
  return (
    <>
      {isEmpty ? (
        <p key="empty" data-empty>
          Nothing was encrypted, decrypted or denied in this time. A program needs a keyring and an API key to begin.
        </p>
      ) : (
        <Chart key="chart" title={title} axis={axis} series={series} />
      )}
      {cut.map(({ name, since }) => (
        <p key={name} data-note data-tone="warn">
          {name}: only the newest {countText(mostOfEach)} are counted here, those since <Time at={since} />.
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

function Found({ found: { rings, isCut } }: { readonly found: Rotations }) {
  if (rings.length === 0) {
    return (
      <p>
        There are no keyrings that you may read. <a href={hrefTo('keyrings')}>All keyrings</a>
      </p>
    );
  }
  const counted = rings.filter(({ served }) => served !== undefined);
  const rest = rings.length - counted.length;
  return (
    <>
      {counted.length > 0 && (
        <ul data-plain>
          {counted.slice(0, mostShown).map((ring) => (
            <Ring key={ring.ring} ring={ring} />
          ))}
        </ul>
      )}
      {counted.length > mostShown && <p data-quiet>{counted.length - mostShown} more have longer to go.</p>}
      {rest > 0 && (
        <p data-quiet>
          {rest === 1 ? '1 keyring is' : `${rest} keyrings are`} not counted here: the limit is too high, or you may not
          see the count.
        </p>
      )}
      {isCut && <p data-quiet>Only the first keyrings of the list were checked.</p>}
    </>
  );
}

function Ring({ ring: { ring, traits = {}, served = 0, most, since } }: { readonly ring: RingRotation }) {
  const share = shareOf({ ring, served, most, since });
  return (
    <li>
      <div data-bar>
        <a href={hrefTo('keyring', { name: ring })}>
          <bdi>{ring}</bdi>
        </a>
        <span>
          {countText(served)} of {countText(most)}
        </span>
      </div>
      <meter
        min={0}
        max={1}
        low={0.75}
        high={0.9}
        optimum={0}
        value={share}
        aria-label={`${ring}: encrypts of the active key against its limit`}
      >
        {Math.round(share * 100)} %
      </meter>
      <RingTags of={traits} />
      {since !== undefined && (
        <small>
          Its key is {spanText(Math.max(0, (Date.now() - since) / 1000))} old; the next one comes by itself.
        </small>
      )}
    </li>
  );
}
