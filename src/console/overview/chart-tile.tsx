// Encrypts, decrypts and denials over the last hour, day or week.
import { useId } from 'hono/jsx/dom';
import type { Client } from '../../client/client.ts';
import { useAnswer } from '../parts/answer.tsx';
import { useState } from '../parts/state.ts';
import { Time } from '../parts/time.tsx';
import { countText } from './amounts.ts';
import { Chart } from './chart.tsx';
import { mostOfEach, type OverviewNumbers, overviewNumbers } from './overview-numbers.ts';
import { Tile, TileAnswer, useTurn } from './tile.tsx';
import { type TimeRangeName, timeRanges } from './time-buckets.ts';

export interface ChartTileProps {
  readonly api: Client;
  /** Changes when everything is asked for anew. */
  readonly turn: number;
}

export function ChartTile({ api, turn }: ChartTileProps) {
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
  const names = Object.keys(timeRanges) as TimeRangeName[]; // the keys of an object that nothing adds to
  return (
    <fieldset data-segments>
      <legend data-spoken>Range of time</legend>
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
  const title = `Encrypts, decrypts and denials, ${timeRanges[range].label.toLowerCase()}, in UTC`;
  return (
    <>
      {isEmpty ? (
        <p key="empty" data-empty>
          Nothing was encrypted, decrypted or denied in this time. With a keyring and an API key a program can begin.
        </p>
      ) : (
        <Chart key="chart" title={title} axis={axis} series={series} />
      )}
      {cut.map(({ name, since }) => (
        <p key={name} data-note data-tone="warn">
          {name}: only the newest {countText(mostOfEach)} were counted, those since <Time at={since} />. Earlier ones
          are missing here.
        </p>
      ))}
      <p data-quiet>
        From <Time at={axis.starts[0] ?? 0} /> until now, all times in UTC.
      </p>
    </>
  );
}
