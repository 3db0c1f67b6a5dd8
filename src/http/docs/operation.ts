// One endpoint of the reference: what it does, what it takes, what it answers, what can go wrong, and a request to copy.
import { html } from 'hono/html';
import { componentName } from '../../api/openapi/schemas.ts';
import type { OpenApiDocument, OpenApiResponse, Operation, Reference } from '../../api/openapi/types.ts';
import { curlOf } from './curl.ts';
import { type Html, inline, json, sentence } from './prose.ts';
import { schemaHtml } from './schema.ts';

export interface Place {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function operationHtml({ method, path, operation }: Place, document: OpenApiDocument): Html {
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

function errorItem(status: string, { description, headers = {}, content = {} }: OpenApiResponse): Html {
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
