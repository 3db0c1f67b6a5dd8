// A JSON Schema as a list of fields: name, type, whether it is required, what it is; objects within objects as lists within lists.
import { html } from 'hono/html';
import { componentName } from '../../api/openapi/schemas.ts';
import type { JsonSchema } from '../../api/openapi/types.ts';
import { type Html, sentence } from './prose.ts';

/** In what is sent, required fields are marked; in what is answered, those that can be absent. */
export type Side = 'sent' | 'answered';

/** The fields of an object; a line for anything else. */
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

export function componentLink(reference: string): Html {
  const name = componentName(reference);
  return html`<a href="#schema-${name}">${name}</a>`;
}
