// Button is a button that says why it cannot be used, where a flag is missing. `kind`: what comes first in the page is
// plain, what stands beside it quiet, what destroys is `danger`.
import { type Child, type PropsWithChildren, useId } from 'hono/jsx/dom';
import { useSession } from '../session.ts';

interface ButtonProps {
  readonly onClick?: () => void;
  readonly kind?: 'quiet' | 'danger' | undefined;
  readonly type?: 'button' | 'submit';
  /** The permission flag without which it would be refused, such as `keyring.payroll.rotate`. */
  readonly needs?: string | undefined;
  /** Under way: a second click does nothing. */
  readonly isBusy?: boolean;
  /** For those who hear it, where the text says too little. */
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

/** Beside what can be done: leaves all as it is. */
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

/** A link that looks like a button: it goes somewhere and changes nothing. */
export function ButtonLink({ href, kind, needs, children }: ButtonLinkProps) {
  const lacks = useLack(needs);
  if (lacks !== undefined) return <Button {...{ kind, needs }}>{children}</Button>;
  return (
    <a href={href} data-button data-kind={kind}>
      {children}
    </a>
  );
}

/** Why the flag is missing, in words; undefined where it is not. */
export function useLack(flag: string | undefined): string | undefined {
  const { may } = useSession();
  return flag === undefined || may.covers(flag) ? undefined : `You would need the flag ${flag}.`;
}
