// A state of a page that fills it whole: a heading, which takes the focus so that it is read and the keyboard goes on from there.
import { type PropsWithChildren, useEffect, useRef } from 'hono/jsx/dom';

export interface NoticeProps {
  readonly title: string;
  /** How the page presents itself: a success, a failure, or neither. */
  readonly tone?: 'good' | 'bad';
  /** For what the page starts with: the browser reads that by itself. */
  readonly isFirst?: boolean;
}

export function Notice({ title, tone, isFirst = false, children }: PropsWithChildren<NoticeProps>) {
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
