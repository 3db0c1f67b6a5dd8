// The reference at /docs: one HTML page without scripts, made from the API description and the prose that it is made
// of.
import { html } from 'hono/html';
import { guide } from './guide.ts';
import type { JsonSchema, OpenApiDocument, OpenApiResponse, Operation, PathItem, Reference } from './openapi.ts';
import { type Block, isList } from './prose.ts';
import { meaningOf } from './responses.ts';
import { componentName } from './schemas.ts';

export async function docsPage(document: OpenApiDocument): Promise<string> {
  const { info, tags, components } = document;
  const places = placesOf(document.paths);
  const of = (tag: string): Place[] => places.filter(({ operation }) => operation.tags.includes(tag));
  const schemas = Object.entries(components.schemas);
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>The API of ${info.title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" type="image/svg+xml" href="docs/icon.svg">
<link rel="stylesheet" href="docs/style.css">
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<h1>The API of ${info.title}</h1>
<p>${info.summary}. Version ${info.version}. <a href="openapi.json">OpenAPI 3.1 document</a></p>
<p>Requests are for a shell in which <code>KMS_URL</code> is the address of the appliance and <code>KMS_API_KEY</code> an API key.</p>
<p class="narrow"><a href="#contents">Contents</a></p>
</header>
<nav id="contents" aria-label="Contents">
<ul>
<li>Guide
<ul>${guide.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></li>
<li>Endpoints
<ul>${tags.map(
    ({ name }) => html`<li><a href="#${tagId(name)}">${name}</a>
<ul>${of(name).map(({ operation }) => html`<li><a href="#${operation.operationId}">${operation.summary}</a></li>`)}</ul></li>`,
  )}</ul></li>
<li><a href="#schemas">Schemas</a>
<ul>${schemas.map(([name]) => html`<li><a href="#schema-${name}">${name}</a></li>`)}</ul></li>
</ul>
</nav>
<main id="content" tabindex="-1">
${guide.map(({ id, title, blocks }) => html`<section><h2 id="${id}">${title}</h2>${blocks.map(block)}</section>`)}
${tags.map(({ name, description }) => tagHtml(name, description, of(name), document))}
<section>
<h2 id="schemas">Schemas</h2>
${schemas.map(
  ([name, schema]) => html`<article aria-labelledby="schema-${name}">
<h3 id="schema-${name}">${name}</h3>
${schema.properties && schema.description !== undefined ? html`<p>${sentence(schema.description)}</p>` : ''}
${schemaHtml(schema, 'answered')}
${schema.examples?.[0] === undefined ? '' : json(schema.examples[0])}
</article>`,
)}
</section>
</main>
</body>
</html>
`;
  return String(page);
}

function tagHtml(name: string, description: string, places: readonly Place[], document: OpenApiDocument): Html {
  return html`<section>
<h2 id="${tagId(name)}">Endpoints: ${name}</h2>
<p>${description}</p>
<ul class="index">${places.map(
    ({ method, path, operation }) =>
      html`<li><b class="method">${method}</b> <a href="#${operation.operationId}"><code>${path}</code></a></li>`,
  )}</ul>
${places.map((place) => operationHtml(place, document))}
</section>`;
}

function placesOf(paths: Readonly<Record<string, PathItem>>): Place[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

function tagId(name: string): string {
  return `tag-${name.toLowerCase().replaceAll(' ', '-')}`;
}

interface Place {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

function operationHtml({ method, path, operation }: Place, document: OpenApiDocument): Html {
  const { operationId: id, summary, description, parameters = [], requestBody, responses } = operation;
  const body = Object.values(requestBody?.content ?? {})[0];
  return html`<article aria-labelledby="${id}">
<h3 id="${id}"><a href="#${id}">${summary}</a></h3>
<p class="endpoint"><b class="method">${method}</b> <code>${path}</code></p>
${description.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}
${parameters.length > 0 ? parametersHtml(parameters) : ''}
${body ? html`<h4>Body</h4>${schemaHtml(body.schema, 'sent')}<h5>Example</h5>${json(body.example)}` : ''}
<h4>Request</h4>
<pre><code>${curlOf({ method, path, operation })}</code></pre>
${success(resolved(responses['200'], document))}
<h4>Errors</h4>
<ul class="fields">${Object.entries(responses)
    .filter(([status]) => status !== '200')
    .map(([status, response]) => errorItem(status, resolved(response, document)))}</ul>
</article>`;
}

function parametersHtml(parameters: NonNullable<Operation['parameters']>): Html {
  return html`<h4>Parameters</h4>
<ul class="fields">${parameters.map(
    ({ name, in: place, required, description, schema }) => html`<li><code class="name">${name}</code>
<span class="type">${place}, ${schema.type ?? 'string'}${required ? ', required' : ''}${
      schema.default === undefined ? '' : html`, ${String(schema.default)} where absent`
    }</span><br>${sentence(description)}</li>`,
  )}</ul>`;
}

function success(response: OpenApiResponse): Html {
  const [type, media] = Object.entries(response.content ?? {})[0] ?? [];
  if (type === undefined || !media) return html`<h4>Answer</h4><p>${response.description}</p>`;
  if (type !== 'application/json') {
    const example = typeof media.example === 'string' ? html`<pre><code>${media.example}</code></pre>` : '';
    return html`<h4>Answer</h4><p><code>${type}</code></p>${example}`;
  }
  return html`<h4>Answer</h4>${schemaHtml(media.schema, 'answered')}<details><summary>Example</summary>${json(media.example)}</details>`;
}

function errorItem(status: string, { description: whole, headers = {}, content = {} }: OpenApiResponse): Html {
  const description = meaningOf({ description: whole });
  const { examples = {}, example } = content['application/json'] ?? {};
  const values = example === undefined ? Object.values(examples).map(({ value }) => value) : [example];
  const names = Object.keys(headers).filter((name) => name !== 'Kms-State');
  const others = values.filter((value) => messageOf(value) === undefined);
  const messages = values.map(messageOf).filter((message) => message !== undefined);
  return html`<li><b>${status}</b> ${sentence(description)}${
    names.length > 0 ? html` Comes with ${names.map((name) => html`<code>${name}</code>.`)}` : ''
  }${others.map(json)}${
    messages.length > 0 ? html`<ul class="messages">${messages.map((message) => html`<li>${message}</li>`)}</ul>` : ''
  }</li>`;
}

/** Of an ordinary error, of which the message tells enough. */
function messageOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || !('message' in value)) return undefined;
  return Object.keys(value).every((name) => name === 'message' || name === 'errors')
    ? String(value.message)
    : undefined;
}

function resolved(response: OpenApiResponse | Reference | undefined, document: OpenApiDocument): OpenApiResponse {
  const found = response && '$ref' in response ? document.components.responses[componentName(response.$ref)] : response;
  if (!found) throw new Error('a response is not there');
  return found;
}

/** In what is sent, required fields are marked; in what is answered, those that can be absent. */
type Side = 'sent' | 'answered';

/** The fields of an object; a line for anything else. */
function schemaHtml(schema: JsonSchema, side: Side): Html {
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
  return html`<a href="#schema-${name}">${name}</a>`;
}

/** HTML in the making; what is put into it is escaped. */
type Html = ReturnType<typeof html>;

/** A line of text. What stands between backticks is code. */
function inline(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? code(part) : part))}`;
}

function block(each: Block): Html {
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
function sentence(text: string): Html {
  return html`${inline(text.charAt(0).toUpperCase() + text.slice(1))}.`;
}

function json(value: unknown): Html {
  return html`<pre><code>${JSON.stringify(value, null, 2)}</code></pre>`;
}

/** `$KMS_URL` is the address of the appliance, `$KMS_API_KEY` an API key. */
export function curlOf({ method, path, operation }: Place): string {
  const { parameters = [], requestBody, security } = operation;
  const filled = parameters
    .filter((each) => each.in === 'path')
    .reduce((text, { name, example }) => text.replace(`{${name}}`, encodeURIComponent(String(example))), path);
  const query = parameters.filter((each) => each.in === 'query' && each.required);
  const search = new URLSearchParams(query.map(({ name, example }) => [name, String(example)])).toString();
  const [media] = Object.values(requestBody?.content ?? {});
  const parts = [
    method === 'GET' || (method === 'POST' && media) ? 'curl -s' : `curl -s -X ${method}`,
    ...(security.length > 0 ? ['-H "Authorization: Bearer $KMS_API_KEY"'] : []),
    ...(media ? ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(media.example))}`] : []),
    ...(operation.operationId === 'createBackup' ? ['-o backup.kms-backup'] : []),
    `"$KMS_URL${filled}${search === '' ? '' : `?${search}`}"`,
  ];
  return parts.join(' \\\n  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
