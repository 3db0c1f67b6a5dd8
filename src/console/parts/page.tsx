// PageHeader is what a page begins with: its title, a line about what it is, and what can be done with it as a whole.
// MessagePage is a page without a session, which is one message. Both titles take the focus, so that they are read and
// the keyboard goes on from there.
import { type Child, type PropsWithChildren, useEffect, useRef } from 'hono/jsx/dom';
import { hrefTo } from '../navigation.ts';

interface PageHeaderProps {
  readonly title: string;
  /** Of the window, where the title alone says too little. */
  readonly windowTitle?: string;
  /** Link to the page that this one is a part of. */
  readonly back?: { readonly href: string; readonly title: string };
  readonly lead?: Child;
  /** Buttons and links. */
  readonly actions?: Child;
}

export function PageHeader({ title, windowTitle = title, back, lead, actions }: PageHeaderProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  useEffect(() => {
    document.title = `${windowTitle} – Key management service`;
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

const icon = document.querySelector<HTMLImageElement>('header img')?.src ?? '';

/** The name of the service, which leads to its start page; with the icon that the page came with. */
export function Brand() {
  return (
    <a href={hrefTo('home')} data-brand>
      <img src={icon} alt="" width="28" height="28" />
      <span>Key management service</span>
    </a>
  );
}

interface MessagePageProps {
  readonly title: string;
  /** How the page presents itself: a success, a failure, or neither. */
  readonly tone?: 'good' | 'bad';
  /** For what the page starts with: the browser reads that by itself. */
  readonly isFirst?: boolean;
}

/** A state of a page that fills it whole. */
export function MessagePage({ title, tone, isFirst = false, children }: PropsWithChildren<MessagePageProps>) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isFirst) return;
    document.title = title;
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

/** Where a request got no answer, or none that helps: it can be sent again. */
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
