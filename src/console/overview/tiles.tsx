// Tile is a panel on the overview, with its data or the reason why there is none. The tiles here show the appliance's
// health: its state, its backups, its files.
import { type Child, type PropsWithChildren, useEffect, useId, useRef } from 'hono/jsx/dom';
import type { AnswerTo, Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { fileErrorText, isStopped } from '../error-text.ts';
import { destinationFor } from '../files/saving.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { ActionError, announce, Failed, Loading } from '../parts/messages.tsx';
import { type Answer, useAction, useState } from '../parts/state.ts';
import { Facts, Time } from '../parts/values.tsx';
import { bytesText, countText, spanText } from '../text.ts';
import { type Backups, oldAfter } from './attention.ts';
import type { Readiness } from './health.ts';

interface TileProps {
  readonly title: string;
  /** Spans the whole width. */
  readonly isWide?: boolean;
  /** Shown beside the title. */
  readonly beside?: Child;
  /** Anchor for links. */
  readonly anchor?: string;
}

export function Tile({ title, isWide = false, beside, anchor, children }: PropsWithChildren<TileProps>) {
  const id = useId();
  return (
    <section
      id={anchor}
      tabindex={anchor === undefined ? undefined : -1}
      aria-labelledby={id}
      data-tile={isWide ? 'wide' : ''}
    >
      <div data-bar>
        <h2 id={id}>{title}</h2>
        {beside}
      </div>
      {children}
    </section>
  );
}

interface TileAnswerProps<T> {
  readonly of: Answer<T>;
  /** The data that the missing flag would show, such as `the activity log`. */
  readonly what: string;
  readonly show: (value: T) => Child;
}

/** Shows the response or, if it was refused, who can grant access. */
export function TileAnswer<T>({ of, what, show }: TileAnswerProps<T>) {
  if (of.is === 'loading') return <Loading key="loading" />;
  if (of.is === 'ready') return <div key="ready">{show(of.value)}</div>;
  if (isForbidden(of.error)) {
    return (
      <p key="refused" data-quiet>
        You are not allowed to see {what}: {of.error.message}. Your administrator can grant it.
      </p>
    );
  }
  return <Failed key="failed" error={of.error} onRetry={of.reload} />;
}

function isForbidden(error: unknown): error is KmsError {
  return error instanceof KmsError && error.code === 'forbidden';
}

type Log = NonNullable<AnswerTo<'getOverview'>['log']>;

interface StateTileProps {
  readonly answer: Answer<Readiness>;
}

export function SealTile({ answer }: StateTileProps) {
  return (
    <Tile title="State" anchor="state">
      <TileAnswer
        of={answer}
        what="the state"
        show={({ isReady, isSealed, reason, faults }) => (
          <>
            <p data-big data-tone={isReady ? 'good' : 'bad'}>
              {isSealed ? 'Sealed' : isReady ? 'Unsealed and serving' : 'Not serving'}
            </p>
            {isReady ? <p>It accepts requests and stores their changes.</p> : <p>The reason: {reason}.</p>}
            {faults && <Faults {...faults} />}
          </>
        )}
      />
    </Tile>
  );
}

/** Damaged log files affect old records only: keys, keyrings and permissions are intact. */
function Faults({ count, first }: NonNullable<Readiness['faults']>) {
  return (
    <>
      <p data-tone="bad">
        {count === 1 ? 'A file of an activity log is' : `${countText(count)} files of activity logs are`} missing or
        changed; the records in {count === 1 ? 'it' : 'them'} cannot be read:
      </p>
      <ul>
        {first.map((each) => (
          <li key={each}>{each}</li>
        ))}
        {count > first.length && <li key="more">and {countText(count - first.length)} more</li>}
      </ul>
      <p>
        <code>kms doctor</code> lists all of them and says what to do.
      </p>
    </>
  );
}

interface BackupTileProps extends StateTileProps {
  readonly api: Client;
  /** Backups that the service makes automatically; undefined if the user may not see them. */
  readonly backups: Backups | undefined;
  /** Looks again. */
  readonly onLook: () => void;
  /** Absent if this tenant may not make backups. */
  readonly stream: PageProps['stream'] | undefined;
}

/** Milliseconds between polls while a backup is being made. */
const askEvery = 2_000;

export function BackupTile({ answer, api, backups: known, onLook, stream }: BackupTileProps) {
  const isRunning = known?.running === true;
  const wasRunning = useRef(false);
  useEffect(() => {
    if (wasRunning.current && !isRunning && known) {
      announce(known.lastFailure ? 'The backup failed.' : 'The backup has been made, and its test restore worked.');
    }
    wasRunning.current = isRunning;
    if (!isRunning) return;
    const timer = setTimeout(onLook, askEvery);
    return () => clearTimeout(timer);
  }, [known, isRunning]);
  return (
    <Tile title="Last verified backup" anchor="backups">
      <TileAnswer
        of={answer}
        what="the backups"
        show={(state) => <Backup {...state} isConfigured={known?.configured} />}
      />
      {known?.configured && (
        <Configured key="configured" {...known.configured} isRunning={isRunning} failure={known.lastFailure} />
      )}
      {known?.configured && (
        <BackUpNow
          key="now"
          isRunning={isRunning}
          onStart={async () => {
            await api.startBackup({});
            onLook();
          }}
        />
      )}
      {stream && <BackupDownload key="download" stream={stream} />}
    </Tile>
  );
}

interface ConfiguredProps extends NonNullable<Backups['configured']> {
  readonly isRunning: boolean;
  readonly failure: Backups['lastFailure'];
}

function Configured({ directory, keep, nextAt, isRunning, failure }: ConfiguredProps) {
  return (
    <>
      {failure && (
        <p data-tone="bad">
          The one at <Time at={failure.at} /> failed: {failure.message}.
        </p>
      )}
      <p>
        {isRunning
          ? 'One is being made and test-restored.'
          : nextAt === null
            ? 'No further one is scheduled.'
            : 'The next one is made at '}
        {!isRunning && nextAt !== null && <Time at={nextAt} />}
        {!isRunning && nextAt !== null && '.'} Backups go to <code data-any>{directory}</code>. The newest{' '}
        {countText(keep)} scheduled ones are kept, and as many made on request.
      </p>
    </>
  );
}

interface BackUpNowProps {
  readonly isRunning: boolean;
  readonly onStart: () => Promise<void>;
}

function BackUpNow({ isRunning, onStart }: BackUpNowProps) {
  const { isBusy, error, start } = useAction(onStart);
  return (
    <>
      <ActionError error={error} />
      <p>
        <Button needs="system.backup" isBusy={isBusy || isRunning} onClick={() => void start()}>
          {isRunning ? 'Backing up…' : 'Back up now'}
        </Button>
      </p>
    </>
  );
}

interface BackupProps extends Readiness {
  readonly isConfigured: Backups['configured'] | undefined;
}

function Backup({ backup, shipping, isConfigured }: BackupProps) {
  return (
    <>
      {backup === undefined && <p>The service does not say.</p>}
      {backup === 'none' && (
        <>
          <p data-big data-tone="bad">
            None yet
          </p>
          {!isConfigured && (
            <p>
              Let the service make and test them with <code>kms serve --backup-to</code>.
            </p>
          )}
        </>
      )}
      {typeof backup === 'object' && (
        <>
          <p data-big data-tone={backup.ageSeconds > oldAfter ? 'bad' : 'good'}>
            {spanText(backup.ageSeconds)} ago
          </p>
          <p>
            Made at <Time at={backup.at} />; its test restore worked.
          </p>
        </>
      )}
      {shipping && (
        <p data-tone={shipping.isWorking ? undefined : 'bad'}>
          {shipping.isWorking ? 'Changes are shipped' : 'Shipping is interrupted'}
          {shipping.ageSeconds === undefined
            ? ', and nothing has arrived yet.'
            : `; everything up to ${spanText(shipping.ageSeconds)} ago has arrived.`}
        </p>
      )}
    </>
  );
}

/** State of the store's files. */
export function LogNumbers({ log }: { readonly log: Log }) {
  const { writesRefused, failures, lastCheckpointAt, diskFreeBytes } = log;
  return (
    <>
      <p data-big data-tone={writesRefused || failures > 0 ? 'bad' : 'good'}>
        {writesRefused ? 'The disk is full' : failures > 0 ? `${countText(failures)} failed writes` : 'Healthy'}
      </p>
      {writesRefused && <p>Changes are refused until there is room on the disk again.</p>}
      {failures > 0 && <p>Since it was unsealed. The service’s own log says why.</p>}
      <Facts
        facts={[
          ['Log since the last checkpoint', bytesText(log.logBytes)],
          ['Snapshot', bytesText(log.snapshotBytes)],
          ['Last checkpoint', lastCheckpointAt === null ? 'none yet' : <Time key="at" at={lastCheckpointAt} />],
          ['Activity records', countText(log.activityRecords)],
          ['Closed activity files', bytesText(log.activityBytes)],
          ['Free on the disk', diskFreeBytes === undefined ? 'not known' : bytesText(diskFreeBytes)],
        ]}
      />
    </>
  );
}

type Download =
  | { readonly is: 'idle' }
  | { readonly is: 'running' }
  | { readonly is: 'done'; readonly saved: string }
  | { readonly is: 'failed'; readonly text: string };

/**
 * Makes a backup and saves it as a file: the response of POST /system/backup, sealed, so that it can be kept anywhere.
 */
function BackupDownload({ stream }: Pick<PageProps, 'stream'>) {
  const [download, setDownload] = useState<Download>({ is: 'idle' });
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);

  const run = async (): Promise<void> => {
    const stopping = new AbortController();
    running.current = stopping;
    const { signal } = stopping;
    try {
      const destination = await destinationFor(`kms-${new Date().toISOString().slice(0, 10)}.kms-backup`);
      setDownload({ is: 'running' });
      const bytes = await stream('/system/backup', signal);
      await bytes.pipeTo(destination.writable, { signal });
      const saved = destination.done();
      announce(saved);
      setDownload({ is: 'done', saved });
    } catch (error) {
      setDownload(isStopped(error) ? { is: 'idle' } : { is: 'failed', text: fileErrorText(error) });
    }
  };

  return (
    <>
      <p>
        <Button kind="quiet" needs="system.backup" isBusy={download.is === 'running'} onClick={() => void run()}>
          Download a backup
        </Button>
      </p>
      {download.is === 'running' && <p key="running">Under way…</p>}
      {download.is === 'done' && (
        <p key="done">
          {download.saved} Nobody can open it without the master key or a recovery kit: keep both, apart from each
          other. Test it with <code>kms backup verify</code>.
        </p>
      )}
      {download.is === 'failed' && (
        <p key="failed" role="alert" data-tone="bad">
          {download.text}
        </p>
      )}
    </>
  );
}
