// Free-form data: shown as indented JSON, and typed as JSON into a field of a form.
import type { Child } from 'hono/jsx/dom';
import { jsonText, parseObject } from '../json-text.ts';
import { FieldProblems, type FormValues, TextArea } from './form.tsx';

export function Json({ value }: { readonly value: unknown }) {
  if (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
    return <span data-quiet>empty</span>;
  return (
    <pre>
      <code>{jsonText(value)}</code>
    </pre>
  );
}

export interface JsonFieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: Child;
  readonly value?: object;
}

export function JsonField({ name, label, hint = 'A JSON object; nothing means an empty one.', value }: JsonFieldProps) {
  const isEmpty = value === undefined || Object.keys(value).length === 0;
  const text = isEmpty ? '' : jsonText(value);
  const rows = Math.min(12, Math.max(3, text.split('\n').length));
  return <TextArea {...{ name, label, hint, rows }} value={text} isCode />;
}

/** What was typed into a `JsonField`. Throws `FieldProblems`. */
export function objectIn(values: FormValues, name: string): Record<string, unknown> {
  const { value, problem } = parseObject(values.exactly(name));
  if (problem !== undefined) throw new FieldProblems({ [name]: problem });
  return value;
}
