// Dialog is a question over the page: the browser's own dialog, which keeps the keyboard inside, closes with Escape and
// gives the focus back.
import { type PropsWithChildren, useEffect, useId, useRef } from 'hono/jsx/dom';
import { FieldProblems } from '../error-text.ts';
import { CancelButton } from './button.tsx';
import { Field } from './fields.tsx';
import { Form } from './form.tsx';
import { useState } from './state.ts';

interface DialogProps {
  readonly title: string;
  /** Closed by its reader. Without it the dialog stays until what it asks for is done. */
  readonly onClose?: () => void;
}

/** Open while it is there. */
export function Dialog({ title, onClose, children }: PropsWithChildren<DialogProps>) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event: Event) => {
        event.preventDefault();
        onClose?.();
      }}
      // Some browsers let nobody prevent a second Escape.
      onClose={() => {
        if (!dialog.current?.isConnected) return;
        if (onClose) onClose();
        else dialog.current.showModal();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  /** What has to be typed. */
  readonly name: string;
  readonly action: string;
  readonly busy?: string;
  /** Throws what the appliance answered; closes nothing by itself. */
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** For what destroys: done only when its name is typed. Its children say what will happen. */
export function ConfirmByName(props: PropsWithChildren<ConfirmProps>) {
  const { title, name, action, busy, onConfirm, onClose, children } = props;
  const [typed, setTyped] = useState('');
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Form
        action={action}
        kind="danger"
        {...(busy !== undefined && { busy })}
        onSubmit={async (values) => {
          if (values.text('name') !== name) throw new FieldProblems({ name: `Type ${name}, letter by letter.` });
          await onConfirm();
        }}
        beside={<CancelButton onClick={onClose} />}
      >
        <Field name="name" label={`Type ${name} to confirm`} isRequired onInput={setTyped} />
        <p data-spoken role="status">
          {typed.trim() === name ? 'The name is right.' : ''}
        </p>
      </Form>
    </Dialog>
  );
}
