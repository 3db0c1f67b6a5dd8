// PageHeader starts a page: its title, a line about it, and actions for the page as a whole. MessagePage is a public
// page that consists of one message. Both titles take the focus, so that screen readers read them and the keyboard
// continues from there.
import { type Child, type PropsWithChildren, useEffect, useRef } from 'hono/jsx/dom';
import { hrefTo } from '../navigation.ts';
import { useState } from './state.ts';

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
  return [title, labelText, shownTenant(), 'kms'].filter((part) => part !== undefined).join(' – ');
}

const icon = document.querySelector<HTMLImageElement>('header img')?.src ?? '';

/** The name of the tenant is kept for the next visit: each has an address of its own. */
const tenantKept = 'kms-tenant';
const tenantTold = 'kms:tenant';

/** Undefined for the tenant that every appliance has: it may be the only one. */
function shownTenant(): string | undefined {
  const name = localStorage.getItem(tenantKept) ?? undefined;
  return name === 'default' ? undefined : name;
}

export function tellTenant(name: string): void {
  if (localStorage.getItem(tenantKept) === name) return;
  localStorage.setItem(tenantKept, name);
  globalThis.dispatchEvent(new Event(tenantTold));
}

/** The name with the icon from the page, which links to the start page, the tenant, and the appliance's label. */
export function Brand() {
  const [tenant, setTenant] = useState(shownTenant());
  useEffect(() => {
    const show = () => setTenant(shownTenant());
    globalThis.addEventListener(tenantTold, show);
    return () => globalThis.removeEventListener(tenantTold, show);
  }, []);
  return (
    <>
      <a href={hrefTo('home')} data-brand>
        <img src={icon} alt="" width="28" height="28" />
        <span>kms</span>
      </a>
      {tenant !== undefined && (
        <span data-tenant title={`tenant ${tenant}`}>
          <bdi>{tenant}</bdi>
        </span>
      )}
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
