// How the reference writes text and schemas in HTML, and on which page a schema is.
import { html } from 'hono/html';
import type { JsonSchema } from './openapi.ts';
import { componentName } from './schemas.ts';

/** HTML template; values put into it are escaped. */
export type Html = ReturnType<typeof html>;

/** A line of text; backticks mark code. */
export function inline(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? code(part) : part))}`;
}

/** Code that may wrap after a dot. */
function code(text: string): Html {
  return html`<code>${text.split('.').map((part, index) => (index === 0 ? part : html`.<wbr>${part}`))}</code>`;
}

/** A description made into a sentence. */
export function sentence(text: string): Html {
  return html`${inline(text.charAt(0).toUpperCase() + text.slice(1))}.`;
}

/** Pages of schemas, each with those whose names begin with its letters. */
export const schemaPages = [
  { name: 'schemas-a-m', title: 'Schemas A to M', letters: /^[A-M]/ },
  { name: 'schemas-n-z', title: 'Schemas N to Z', letters: /^[N-Z]/ },
];

export type NamedSchema = readonly [name: string, schema: JsonSchema];

/** Link to a schema, from a page beside it. */
export function schemaHref(name: string): string {
  const page = schemaPages.find(({ letters }) => letters.test(name));
  if (!page) throw new Error(`no page has the schema ${name}`);
  return `${page.name}#schema-${name}`;
}

/** In requests required fields are marked, in responses those that may be absent. */
type Side = 'sent' | 'answered';

/** The fields of an object; for any other schema, one line. */
export function schemaHtml(schema: JsonSchema, side: Side): Html {
  if (!schema.properties) return html`<p>${typeOf(schema)}${said(schema)}</p>`;
  return fields(schema, side);
}

function fields({ properties = {}, required = [] }: JsonSchema, side: Side): Html {
  const mark = (name: string): string => {
    if (side === 'sent') return required.includes(name) ? ', required' : '';
    return required.includes(name) ? '' : ', optional';
  };
  const each = Object.entries(properties);
  if (each.length === 0) return html`<p>No fields.</p>`;
  return html`<ul class="fields">${each.map(
    ([name, field]) =>
      html`<li><code class="name">${name}</code> <span class="type">${typeOf(field)}${mark(name)}</span>${said(field)}${within(field, side)}</li>`,
  )}</ul>`;
}

function within(field: JsonSchema, side: Side): Html | string {
  const inner = field.items ?? nonNull(field) ?? field;
  return inner.properties ? fields(inner, side) : '';
}

function said({ description, enum: values }: JsonSchema): Html | string {
  const choice = values
    ? html` ${values.length === 1 ? 'Only' : 'One of'} ${values.map((value, index) => html`${index > 0 ? ', ' : ''}<code>${value}</code>`)}.`
    : '';
  return html`${description === undefined ? '' : html`<br>${sentence(description)}`}${choice}`;
}

function typeOf(schema: JsonSchema): Html {
  if (schema.$ref !== undefined) return componentLink(schema.$ref);
  const choice = schema.anyOf ?? schema.oneOf;
  if (choice) return html`${choice.map((each, index) => html`${index > 0 ? ' or ' : ''}${typeOf(each)}`)}`;
  if (schema.items) return html`array of ${typeOf(schema.items)}`;
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  const more = [schema.format, schema.minimum === undefined ? undefined : `at least ${schema.minimum}`].filter(
    (each) => each !== undefined && each !== 'int64',
  );
  const type = String(schema.type ?? 'anything').replace(',', ' or ');
  return html`${type}${more.length > 0 ? ` (${more.join(', ')})` : ''}`;
}

function nonNull(schema: JsonSchema): JsonSchema | undefined {
  return schema.anyOf?.find(({ type }) => type !== 'null');
}

function componentLink(reference: string): Html {
  const name = componentName(reference);
  return html`<a href="${schemaHref(name)}">${name}</a>`;
}
