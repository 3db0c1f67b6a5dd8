// Makes a backup and saves it as a file: what POST /system/backup answers, sealed, so that it can lie anywhere.
import { useEffect, useRef } from 'hono/jsx/dom';
import { announce } from '../announce.ts';
import { fileTroubleText, isStopped } from '../file/file-trouble.ts';
import { destinationFor } from '../file/saving.ts';
import { Button } from '../parts/button.tsx';
import { useState } from '../parts/state.ts';
import type { RoomProps } from '../room.ts';

type Download =
  | { readonly is: 'idle' }
  | { readonly is: 'running' }
  | { readonly is: 'done'; readonly saved: string }
  | { readonly is: 'failed'; readonly text: string };

export function BackupDownload({ stream }: Pick<RoomProps, 'stream'>) {
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
      setDownload(isStopped(error) ? { is: 'idle' } : { is: 'failed', text: fileTroubleText(error) });
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
          {download.saved} Without the master key, or a recovery kit, nobody can open it: keep both, apart from each
          other. Try it with <code>kms backup verify</code>.
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
