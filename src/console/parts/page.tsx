// PageHeader starts a page: its title, a line about it, and actions for the page as a whole. MessagePage is a public
// page that consists of one message. Both titles take the focus, so that screen readers read them and the keyboard
// continues from there.
import { type Child, type PropsWithChildren, useEffect, useRef } from 'hono/jsx/dom';
import { hrefTo } from '../navigation.ts';

interface PageHeaderProps {
  readonly title: string;
  /** Title of the window, if the heading alone says too little. */
  readonly windowTitle?: string;
  /** Link to the parent page. */
  readonly back?: { readonly href: string; readonly title: string };
  readonly lead?: Child;
  /** Buttons and links. */
  readonly actions?: Child;
}

export function PageHeader({ title, windowTitle = title, back, lead, actions }: PageHeaderProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // The shell scrolls: to the top, or on Back to where the page was left.
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    document.title = titleOf(windowTitle);
  }, [windowTitle]);
  return (
    <div data-header>
      {back && (
        <a href={back.href} data-back>
          {back.title}
        </a>
      )}
      <div data-bar>
        <h1 ref={heading} tabindex={-1}>
          {title}
        </h1>
        {actions && <div data-actions>{actions}</div>}
      </div>
      {lead && <p data-lead>{lead}</p>}
    </div>
  );
}

/** The appliance's label, sent with the page. */
const label = document.querySelector<HTMLElement>('header [data-label]');
const labelText = label?.textContent ?? undefined;
const labelColour = label?.dataset.label;

/** The window's title, with the label early enough to be seen on a narrow tab. */
export function titleOf(title: string): string {
  return `${title} – ${labelText === undefined ? '' : `${labelText} – `}Key management service`;
}

const icon = document.querySelector<HTMLImageElement>('header img')?.src ?? '';

/** The service's name with the icon from the page, which links to the start page, and the appliance's label. */
export function Brand() {
  return (
    <>
      <a href={hrefTo('home')} data-brand>
        <img src={icon} alt="" width="28" height="28" />
        <span data-beside-label={labelText === undefined ? undefined : ''}>Key management service</span>
      </a>
      {labelText !== undefined && (
        <strong data-label={labelColour} title={labelText}>
          <bdi>{labelText}</bdi>
        </strong>
      )}
    </>
  );
}

interface MessagePageProps {
  readonly title: string;
  /** Marks the message as a success or a failure; default: neither. */
  readonly tone?: 'good' | 'bad';
  /** Set for the first message after loading, which browsers announce by themselves. */
  readonly isFirst?: boolean;
}

/** A message that fills the page. */
export function MessagePage({ title, tone, isFirst = false, children }: PropsWithChildren<MessagePageProps>) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isFirst) return;
    document.title = labelText === undefined ? title : `${title} – ${labelText}`;
    heading.current?.focus();
  }, []);
  return (
    <section data-tone={tone}>
      <h1 ref={heading} tabindex={-1}>
        {title}
      </h1>
      {children}
    </section>
  );
}

/** Message for a request without a useful response; it can be sent again. */
export function Unreachable({ text, onRetry }: { readonly text: string; readonly onRetry: () => void }) {
  return (
    <MessagePage title="That did not work" tone="bad">
      <p>{text}</p>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </MessagePage>
  );
}
