// What a room begins with: its title, which takes the focus so that it is read and the keyboard goes on from there, a line about what it
// is, and what can be done with it as a whole.
import { type Child, useEffect, useRef } from 'hono/jsx/dom';

export interface PageHeaderProps {
  readonly title: string;
  /** Of the window, where the title alone says too little. */
  readonly windowTitle?: string;
  /** Link to the room that this one is a part of. */
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
