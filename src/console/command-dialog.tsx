// CommandDialog carries out an action of the palette. It asks before anything that others may notice.
import { useEffect } from 'hono/jsx/dom';
import type { Client } from '../client/client.ts';
import { disableKey, KeyUse } from './apikeys/disable-key.tsx';
import { fileErrorText, isStopped } from './error-text.ts';
import { destinationFor } from './files/saving.ts';
import { RingUse } from './keyrings/ring-use.tsx';
import { guidesUrl, hrefTo } from './navigation.ts';
import type { Command } from './palette-actions.ts';
import { Confirm } from './parts/dialog.tsx';
import { toast } from './parts/messages.tsx';
import type { SessionClient } from './session.ts';
import { setTheme, themeNames } from './theme.ts';

interface CommandDialogProps extends Pick<SessionClient, 'stream'> {
  readonly api: Client;
  readonly navigate: (href: string) => void;
  readonly command: Command;
  readonly onClose: () => void;
}

export function CommandDialog(props: CommandDialogProps) {
  switch (props.command.do) {
    case 'rotate':
      return <Rotate {...props} {...props.command} />;
    case 'disable':
      return <Disable {...props} {...props.command} />;
    case 'seal':
      return <Seal {...props} />;
    case 'backup':
      return <AtOnce run={() => backUp(props.stream)} onClose={props.onClose} />;
    case 'guides':
      return <AtOnce run={() => void window.open(guidesUrl, '_blank', 'noopener')} onClose={props.onClose} />;
    case 'theme': {
      const { theme } = props.command;
      const change = (): void => {
        setTheme(theme);
        toast(`Theme: ${themeNames[theme]}.`);
      };
      return <AtOnce run={change} onClose={props.onClose} />;
    }
  }
}

type TargetProps = Pick<CommandDialogProps, 'api' | 'navigate' | 'onClose'> & {
  readonly id: string;
  readonly name: string;
};

function Rotate({ api, navigate, onClose, id, name }: TargetProps) {
  return (
    <Confirm
      title={`Rotate ${name}?`}
      action="Rotate the keyring"
      busy="Rotating…"
      onClose={onClose}
      onConfirm={async () => {
        const { key } = await api.rotateKeyring({ ringname: id });
        onClose();
        navigate(hrefTo('keyring', { name: id }));
        toast(`The new active key of ${name} is ${key.id}.`);
      }}
    >
      <p>It gets a new key for what is encrypted from now on. What was encrypted before stays readable.</p>
      <RingUse api={api} name={id} />
    </Confirm>
  );
}

function Disable({ api, navigate, onClose, id, name }: TargetProps) {
  return (
    <Confirm
      title={`Disable ${name}?`}
      action="Disable the key"
      busy="Disabling…"
      kind="danger"
      onClose={onClose}
      onConfirm={async () => {
        await disableKey(api, id);
        onClose();
        navigate(hrefTo('apikey', { id }));
      }}
    >
      <KeyUse api={api} id={id} />
    </Confirm>
  );
}

function Seal({ stream, onClose }: CommandDialogProps) {
  return (
    <Confirm
      title="Seal the service?"
      action="Seal the service"
      busy="Sealing…"
      kind="danger"
      onClose={onClose}
      onConfirm={async () => {
        await (await stream('/system/seal', AbortSignal.timeout(30_000))).cancel();
        window.location.assign(hrefTo('home'));
      }}
    >
      <p>
        Everything stops at once, for all tenants: no program can encrypt or decrypt, and nobody can log in, until
        someone unseals it, for example with the key file.
      </p>
    </Confirm>
  );
}

interface AtOnceProps {
  readonly run: () => void | Promise<void>;
  readonly onClose: () => void;
}

/** Runs something that needs no question. */
function AtOnce({ run, onClose }: AtOnceProps) {
  useEffect(() => {
    void run();
    onClose();
  }, []);
  return null;
}

async function backUp(stream: CommandDialogProps['stream']): Promise<void> {
  const { signal } = new AbortController();
  try {
    const destination = await destinationFor(`kms-${new Date().toISOString().slice(0, 10)}.kms-backup`);
    toast('Making a backup…');
    const bytes = await stream('/system/backup', signal);
    await bytes.pipeTo(destination.writable, { signal });
    toast(`The backup is done. ${destination.done()}`);
  } catch (error) {
    if (!isStopped(error)) toast(fileErrorText(error));
  }
}
