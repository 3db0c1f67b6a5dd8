// Whether the appliance can serve, and how old its last verified backup is.
import type { Answer } from '../parts/answer.tsx';
import { Time } from '../parts/time.tsx';
import type { RoomProps } from '../room.ts';
import { spanText } from './amounts.ts';
import { BackupDownload } from './backup-download.tsx';
import type { Readiness } from './readiness.ts';
import { Tile, TileAnswer } from './tile.tsx';

interface StateTileProps {
  readonly answer: Answer<Readiness>;
}

export function SealTile({ answer }: StateTileProps) {
  return (
    <Tile title="State">
      <TileAnswer
        of={answer}
        what="the state"
        show={({ isReady, isSealed, reason }) => (
          <>
            <p data-big data-tone={isReady ? 'good' : 'bad'}>
              {isSealed ? 'Sealed' : isReady ? 'Unsealed and serving' : 'Not serving'}
            </p>
            {isReady ? <p>It takes requests and keeps what they change.</p> : <p>The reason: {reason}.</p>}
          </>
        )}
      />
    </Tile>
  );
}

/** A backup that is older than this deserves a look. */
const oldAfter = 2 * 86_400;

export function BackupTile({ answer, stream }: StateTileProps & Pick<RoomProps, 'stream'>) {
  return (
    <Tile title="Last verified backup">
      <TileAnswer of={answer} what="the backups" show={(state) => <Backup {...state} />} />
      <BackupDownload stream={stream} />
    </Tile>
  );
}

function Backup({ backup, shipping }: Readiness) {
  return (
    <>
      {backup === undefined && <p>The service does not tell.</p>}
      {backup === 'none' && (
        <>
          <p data-big data-tone="bad">
            None yet
          </p>
          <p>
            Let the service make and try them with <code>kms serve --backup-to</code>.
          </p>
        </>
      )}
      {typeof backup === 'object' && (
        <>
          <p data-big data-tone={backup.ageSeconds > oldAfter ? 'bad' : 'good'}>
            {spanText(backup.ageSeconds)} ago
          </p>
          <p>
            Made at <Time at={backup.at} /> and found to restore.
          </p>
        </>
      )}
      {shipping && (
        <p data-tone={shipping.isWorking ? undefined : 'bad'}>
          {shipping.isWorking ? 'Changes are shipped' : 'Shipping is interrupted'}
          {shipping.ageSeconds === undefined
            ? ', and nothing has arrived yet.'
            : `; all up to ${spanText(shipping.ageSeconds)} ago has arrived.`}
        </p>
      )}
    </>
  );
}
