// How the store's files are doing, from the appliance's metrics.
import type { Child } from 'hono/jsx/dom';
import { useAnswer } from '../parts/answer.tsx';
import { Facts } from '../parts/facts.tsx';
import { Time } from '../parts/time.tsx';
import type { RoomProps } from '../room.ts';
import { bytesText, countText } from './amounts.ts';
import { parseMetrics, type Sample, sumOf } from './metrics-text.ts';
import { Tile, TileAnswer, useTurn } from './tile.tsx';

interface LogTileProps {
  readonly text: RoomProps['text'];
  readonly turn: number;
}

export function LogTile({ text, turn }: LogTileProps) {
  const answer = useAnswer(async (signal) => parseMetrics(await text('/metrics', signal)));
  useTurn(answer, turn);
  return (
    <Tile title="Log and snapshot">
      <TileAnswer of={answer} what="the metrics" show={(samples) => <Numbers samples={samples} />} />
    </Tile>
  );
}

function Numbers({ samples }: { readonly samples: readonly Sample[] }) {
  const failed =
    (sumOf(samples, 'kms_write_failures_total') ?? 0) +
    (sumOf(samples, 'kms_checkpoints_total', { result: 'failed' }) ?? 0);
  const isFull = sumOf(samples, 'kms_writes_refused') === 1;
  return (
    <>
      <p data-big data-tone={isFull || failed > 0 ? 'bad' : 'good'}>
        {isFull ? 'The disk is full' : failed > 0 ? `${countText(failed)} failed writes` : 'Healthy'}
      </p>
      {isFull && <p>Nothing is changed until there is room on the disk again.</p>}
      {failed > 0 && <p>Since it was unsealed. The service’s own log says why.</p>}
      <Facts
        facts={[
          ['Log since the last checkpoint', shown(samples, 'kms_log_bytes', bytesText)],
          ['Snapshot', shown(samples, 'kms_snapshot_bytes', bytesText)],
          ['Last checkpoint', shown(samples, 'kms_checkpoint_last_timestamp_seconds', moment)],
          ['Activity records', shown(samples, 'kms_activity_records', countText)],
          ['Closed activity files', shown(samples, 'kms_activity_bytes', bytesText)],
          ['Free on the disk', shown(samples, 'kms_disk_free_bytes', bytesText)],
        ]}
      />
    </>
  );
}

function shown(samples: readonly Sample[], name: string, text: (value: number) => Child): Child {
  const value = sumOf(samples, name);
  return value === undefined ? 'not told' : text(value);
}

function moment(seconds: number): Child {
  return seconds === 0 ? 'none yet' : <Time at={seconds * 1000} />;
}
