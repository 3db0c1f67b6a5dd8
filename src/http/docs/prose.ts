// Prose as HTML: paragraphs, lists and tables, and code between backticks.
import { html } from 'hono/html';
import { type Block, isList } from '../../api/openapi/text.ts';

/** HTML in the making; what is put into it is escaped. */
export type Html = ReturnType<typeof html>;

/** A line of text. What stands between backticks is code. */
export function inline(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? code(part) : part))}`;
}

export function block(each: Block): Html {
  if (typeof each === 'string') return html`<p>${inline(each)}</p>`;
  if (isList(each)) return html`<ul>${each.map((item) => html`<li>${inline(item)}</li>`)}</ul>`;
  return html`<table>
<thead><tr>${each.head.map((cell) => html`<th scope="col">${inline(cell)}</th>`)}</tr></thead>
<tbody>${each.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody>
</table>`;
}

/** May break after a dot, where there is no room for the whole of it. */
function code(text: string): Html {
  return html`<code>${text.split('.').map((part, index) => (index === 0 ? part : html`.<wbr>${part}`))}</code>`;
}

/** A description as a sentence. */
export function sentence(text: string): Html {
  return html`${inline(text.charAt(0).toUpperCase() + text.slice(1))}.`;
}

export function json(value: unknown): Html {
  return html`<pre><code>${JSON.stringify(value, null, 2)}</code></pre>`;
}
