// Button is disabled with an explanation if a flag is missing. `kind`: the main action is plain, secondary ones are
// quiet, destructive ones are `danger`.
import { type Child, type PropsWithChildren, useId } from 'hono/jsx/dom';
import { useSession } from '../session.ts';

interface ButtonProps {
  readonly onClick?: () => void;
  readonly kind?: 'quiet' | 'danger' | undefined;
  readonly type?: 'button' | 'submit';
  /** The permission flag that the action needs, such as `keyring.payroll.rotate`. */
  readonly needs?: string | undefined;
  /** In progress: further clicks do nothing. */
  readonly isBusy?: boolean;
  /** Label for screen readers, if the text is not enough. */
  readonly label?: string;
}

export function Button(props: PropsWithChildren<ButtonProps>) {
  const { onClick, kind, type = 'button', needs, isBusy = false, label, children } = props;
  const lacks = useLack(needs);
  const id = useId();
  const isOff = isBusy || lacks !== undefined;
  return (
    <>
      <button
        type={type}
        data-kind={kind}
        aria-label={label}
        aria-disabled={isOff ? 'true' : undefined}
        aria-busy={isBusy ? 'true' : undefined}
        aria-describedby={lacks === undefined ? undefined : id}
        title={lacks}
        onClick={(event: Event) => {
          if (isOff) event.preventDefault();
          else onClick?.();
        }}
      >
        {children}
      </button>
      {lacks !== undefined && (
        <span id={id} data-spoken>
          {lacks}
        </span>
      )}
    </>
  );
}

/** Cancels, leaving everything as it is. */
export function CancelButton({ onClick }: { readonly onClick: () => void }) {
  return (
    <button type="button" data-kind="quiet" onClick={onClick}>
      Cancel
    </button>
  );
}

interface ButtonLinkProps {
  readonly href: string;
  readonly kind?: 'quiet' | undefined;
  readonly needs?: string | undefined;
  readonly children?: Child;
}

/** A link styled as a button: it navigates and changes nothing. */
export function ButtonLink({ href, kind, needs, children }: ButtonLinkProps) {
  const lacks = useLack(needs);
  if (lacks !== undefined) return <Button {...{ kind, needs }}>{children}</Button>;
  return (
    <a href={href} data-button data-kind={kind}>
      {children}
    </a>
  );
}

/** The message about a missing flag; undefined if it is not missing. */
export function useLack(flag: string | undefined): string | undefined {
  const { may } = useSession();
  return flag === undefined || may.covers(flag) ? undefined : `You would need the flag ${flag}.`;
}
