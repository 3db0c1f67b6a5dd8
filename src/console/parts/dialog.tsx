// Dialog is a modal question: the browser's own dialog, which traps the keyboard focus, closes with Escape and returns
// the focus.
import { type Child, type PropsWithChildren, useEffect, useId, useRef } from 'hono/jsx/dom';
import { FieldProblems } from '../error-text.ts';
import { CancelButton } from './button.tsx';
import { Field } from './fields.tsx';
import { Form, type FormValues } from './form.tsx';
import { useState } from './state.ts';

interface DialogProps {
  readonly title: string;
  /** Called when the user closes it. Without it the dialog stays open until its task is done. */
  readonly onClose?: () => void;
}

/** Open while mounted. */
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
      // Some browsers do not let a page prevent a second Escape.
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
  readonly action: string;
  readonly busy?: string;
  readonly needs?: string | undefined;
  readonly kind?: 'danger' | undefined;
  /** Throws the appliance's error; does not close the dialog itself. */
  readonly onConfirm: (values: FormValues) => Promise<void>;
  readonly onClose: () => void;
  /** Fields of the question. */
  readonly fields?: Child;
}

/** Asks before something is done. The children say what it means. */
export function Confirm(props: PropsWithChildren<ConfirmProps>) {
  const { title, action, busy, needs, kind, onConfirm, onClose, fields, children } = props;
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Form
        {...{ action, needs, kind }}
        {...(busy !== undefined && { busy })}
        onSubmit={onConfirm}
        beside={<CancelButton onClick={onClose} />}
      >
        {fields ?? null}
      </Form>
    </Dialog>
  );
}

interface ConfirmByNameProps extends Pick<ConfirmProps, 'title' | 'action' | 'busy' | 'onClose'> {
  /** The name that the user has to type. */
  readonly name: string;
  /** An id that is accepted as well, since a name may be hard to type. */
  readonly id?: string;
  /** Throws the appliance's error; does not close the dialog itself. */
  readonly onConfirm: () => Promise<void>;
}

/** Confirms a destructive action by having its target's name typed. The children describe the effect. */
export function ConfirmByName(props: PropsWithChildren<ConfirmByNameProps>) {
  const { title, name, id = name, action, busy, onConfirm, onClose, children } = props;
  const isRight = (text: string): boolean => text === name || text === id;
  const [typed, setTyped] = useState('');
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Form
        action={action}
        kind="danger"
        {...(busy !== undefined && { busy })}
        onSubmit={async (values) => {
          if (!isRight(values.text('name'))) throw new FieldProblems({ name: `Type ${name} exactly as shown.` });
          await onConfirm();
        }}
        beside={<CancelButton onClick={onClose} />}
      >
        <Field name="name" label={`Type ${name} to confirm`} isRequired onInput={setTyped} />
        <p data-spoken role="status">
          {isRight(typed.trim()) ? 'The name is right.' : ''}
        </p>
      </Form>
    </Dialog>
  );
}
