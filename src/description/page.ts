// The reference at /docs: HTML pages generated from the API description and the guide. They can be read without
// scripts; docs-script.ts adds search and lets readers send requests.

import { html } from 'hono/html';
import { shellQuoted } from '../model/shell.ts';
import { guide } from './guide.ts';
import type { OpenApiDocument, OpenApiResponse, Operation, PathItem, Reference } from './openapi.ts';
import { type Block, isList } from './prose.ts';
import { meaningOf } from './responses.ts';
import { type Html, inline, type NamedSchema, schemaHref, schemaHtml, schemaPages, sentence } from './schema-html.ts';
import { componentName } from './schemas.ts';

/** A search result: its title, link and the words that find it. */
export interface SearchEntry {
  readonly title: string;
  /** The line below the title: what kind of entry it is. */
  readonly about: string;
  /** Relative to its sibling pages: `encryption#encrypt`. */
  readonly href: string;
  readonly words: string;
}

interface DocsPages {
  /** HTML of `/docs`. */
  readonly home: string;
  /** HTML of `/docs/<name>`, by name. */
  readonly pages: Readonly<Record<string, string>>;
  readonly index: readonly SearchEntry[];
}

/** Generates all pages: the guide, one per group of endpoints, the schemas, and a home page that links to them. */
export async function docsPages(document: OpenApiDocument): Promise<DocsPages> {
  const groups = groupsOf(document);
  const schemas = Object.entries(document.components.schemas);
  const pages: Record<string, string> = {
    guide: await pageHtml({ document, groups, name: 'guide', title: 'Guide' }, guideHtml()),
  };
  for (const { name, title, letters } of schemaPages) {
    const own = schemas.filter(([schema]) => letters.test(schema));
    pages[name] = await pageHtml({ document, groups, name, title }, schemasHtml(title, own));
  }
  for (const group of groups) {
    pages[group.name] = await pageHtml({ document, groups, ...group }, groupHtml(group, document));
  }
  const home = await pageHtml({ document, groups, name: undefined, title: 'Contents' }, homeHtml(groups, schemas));
  return { home, pages, index: indexOf(groups, schemas) };
}

/** The endpoints of one tag. */
interface Group {
  /** File name of its page. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly places: readonly Place[];
}

function groupsOf({ tags, paths }: OpenApiDocument): Group[] {
  const places = placesOf(paths);
  return tags.map(({ name: title, description }) => ({
    name: title.toLowerCase().replaceAll(' ', '-'),
    title,
    description,
    places: places.filter(({ operation }) => operation.tags.includes(title)),
  }));
}

interface Page {
  readonly document: OpenApiDocument;
  readonly groups: readonly Group[];
  /** Undefined for the home page. */
  readonly name: string | undefined;
  readonly title: string;
}

async function pageHtml({ document, groups, name, title }: Page, main: Html): Promise<string> {
  const { info } = document;
  const root = name === undefined ? './' : '../';
  const docs = name === undefined ? 'docs/' : '';
  const entry = (page: string, text: string, places: readonly { id: string; text: string }[]): Html =>
    html`<li><a href="${docs}${page}"${page === name ? html` aria-current="page"` : ''}>${text}</a>${
      page === name ? html`<ul>${places.map(({ id, text }) => html`<li><a href="#${id}">${text}</a></li>`)}</ul>` : ''
    }</li>`;
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title} - the API of ${info.title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" type="image/svg+xml" href="${root}docs/icon.svg">
<link rel="stylesheet" href="${root}docs/style.css">
<script type="module" src="${root}docs/script.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<p class="brand"><a href="${root}docs">The API of ${info.title}</a> <span>${info.version}</span></p>
<search id="search" hidden>
<label for="query">Search</label>
<input id="query" type="search" autocomplete="off" spellcheck="false" placeholder="encrypt, /ks/keyrings, cursor">
<p id="count" role="status"></p>
<ul id="found"></ul>
</search>
<p class="links"><a href="${root}console">Console</a> <a href="${root}docs/guides">Guides</a> <a href="${root}openapi.json">OpenAPI 3.1</a> <a class="narrow" href="#contents">Contents</a></p>
</header>
<nav id="contents" aria-label="Contents">
<ul>
${entry(
  'guide',
  'Guide',
  guide.map(({ id, title }) => ({ id, text: title })),
)}
${groups.map((group) =>
  entry(
    group.name,
    group.title,
    group.places.map(({ operation }) => ({ id: operation.operationId, text: operation.summary })),
  ),
)}
${schemaPages.map(({ name: page, title: text, letters }) =>
  entry(
    page,
    text,
    Object.keys(document.components.schemas)
      .filter((each) => letters.test(each))
      .map((each) => ({ id: `schema-${each}`, text: each })),
  ),
)}
</ul>
</nav>
<main id="content" tabindex="-1">
${main}
</main>
</body>
</html>
`;
  return String(page);
}

/**
 * The home page, which links to everything. Its anchors have the same names as on the other pages, so that links from
 * the time of the single page still work.
 */
function homeHtml(groups: readonly Group[], schemas: readonly NamedSchema[]): Html {
  return html`<h1>The API</h1>
<p>Keys for client-side encryption, and who may use them: over HTTP, in JSON. The <a href="docs/guide">guide</a> explains how things fit together; each group of endpoints has a page.</p>
<section>
<h2><a href="docs/guide">Guide</a></h2>
<ul class="columns">${guide.map(({ id, title }) => html`<li id="${id}"><a href="docs/guide#${id}">${title}</a></li>`)}</ul>
</section>
${groups.map(
  ({ name, title, description, places }) => html`<section>
<h2 id="tag-${name}"><a href="docs/${name}">${title}</a></h2>
<p>${description}</p>
<ul class="index">${places.map(
    ({ method, path, operation }) =>
      html`<li id="${operation.operationId}"><b class="method">${method}</b> <a href="docs/${name}#${operation.operationId}"><code>${path}</code></a> <span class="type">${operation.summary}</span></li>`,
  )}</ul>
</section>`,
)}
<section>
<h2 id="schemas">Schemas</h2>
<ul class="columns">${schemas.map(([name]) => html`<li id="schema-${name}"><a href="docs/${schemaHref(name)}">${name}</a></li>`)}</ul>
</section>`;
}

function guideHtml(): Html {
  return html`<h1>Guide</h1>
<p>Rules for all endpoints, and how the things behind them fit together.</p>
${guide.map(({ id, title, blocks }) => html`<section><h2 id="${id}">${title}</h2>${blocks.map(block)}</section>`)}`;
}

function schemasHtml(title: string, schemas: readonly NamedSchema[]): Html {
  return html`<h1>${title}</h1>
<p>Objects that occur in more than one request or answer.</p>
${schemas.map(
  ([name, schema]) => html`<article aria-labelledby="schema-${name}">
<h2 id="schema-${name}">${name}</h2>
${schema.properties && schema.description !== undefined ? html`<p>${sentence(schema.description)}</p>` : ''}
${schemaHtml(schema, 'answered')}
${schema.examples?.[0] === undefined ? '' : json(schema.examples[0])}
</article>`,
)}`;
}

function groupHtml({ title, description, places }: Group, document: OpenApiDocument): Html {
  return html`<h1>${title}</h1>
<p>${description}</p>
<ul class="index">${places.map(
    ({ method, path, operation }) =>
      html`<li><b class="method">${method}</b> <a href="#${operation.operationId}"><code>${path}</code></a></li>`,
  )}</ul>
<p class="type">In the requests <code>KMS_URL</code> is the address of the appliance and <code>KMS_API_KEY</code> an API key.</p>
${places.map((place) => operationHtml(place, document))}`;
}

function indexOf(groups: readonly Group[], schemas: readonly NamedSchema[]): SearchEntry[] {
  const inGroups = groups.flatMap(({ name, title, places }) =>
    places.map(({ method, path, operation }) => ({
      title: operation.summary,
      about: `${title}: ${method} ${path}`,
      href: `${name}#${operation.operationId}`,
      words: wordsOf([`${method} ${path}`, operation]),
    })),
  );
  const inGuide = guide.map(({ id, title, blocks }) => ({
    title,
    about: 'Guide',
    href: `guide#${id}`,
    words: wordsOf(blocks),
  }));
  const inSchemas = schemas.map(([name, schema]) => ({
    title: name,
    about: 'Schema',
    href: schemaHref(name),
    words: wordsOf(schema),
  }));
  return [...inGroups, ...inGuide, ...inSchemas];
}

/** All words in a value's texts and property names, in lower case and without duplicates; examples are left out. */
function wordsOf(value: unknown): string {
  const words = new Set<string>();
  const look = (part: unknown): void => {
    if (typeof part === 'string')
      for (const word of part.toLowerCase().match(/[a-z0-9/_.{}*-]+/g) ?? []) words.add(word);
    if (typeof part !== 'object' || part === null) return;
    for (const [key, inner] of Object.entries(part)) {
      if (['example', 'examples', 'pattern', '$ref'].includes(key)) continue;
      if (!Array.isArray(part)) words.add(key.toLowerCase());
      look(inner);
    }
  };
  look(value);
  for (const common of ['type', 'string', 'object', 'properties', 'required', 'description', 'content', 'schema'])
    words.delete(common);
  return [...words].join(' ');
}

function placesOf(paths: Readonly<Record<string, PathItem>>): Place[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
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
<h2 id="${id}"><a href="#${id}">${summary}</a></h2>
<p class="endpoint"><b class="method">${method}</b> <code>${path}</code></p>
${description.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}
${parameters.length > 0 ? parametersHtml(parameters) : ''}
${body ? html`<h3>Body</h3>${schemaHtml(body.schema, 'sent')}<h4>Example</h4>${json(body.example)}` : ''}
<h3>Request</h3>
<pre><code>${curlOf({ method, path, operation })}</code></pre>
${tryHtml({ method, path, operation })}
${success(resolved(responses['200'], document))}
<h3>Errors</h3>
<ul class="fields">${Object.entries(responses)
    .filter(([status]) => status !== '200')
    .map(([status, response]) => errorItem(status, resolved(response, document)))}</ul>
</article>`;
}

/** The form from which the script sends a request; hidden if scripts are off. */
function tryHtml({ method, path, operation }: Place): Html | string {
  const { operationId: id, parameters = [], requestBody, security } = operation;
  const [type] = Object.keys(contentOf(operation));
  if (type === 'application/octet-stream') return '';
  const [media] = Object.values(requestBody?.content ?? {});
  const isPublic = security.length === 0;
  return html`<details class="try" hidden><summary>Try it</summary>
<form data-method="${method}" data-path="${path}" data-public="${String(isPublic)}" autocomplete="off">
${parameters.map(
  ({
    name,
    in: place,
    required,
    example,
  }) => html`<p><label for="${id}-${name}"><code>${name}</code> <span class="type">${place}${required ? ', required' : ''}</span></label>
<input id="${id}-${name}" name="${name}" data-in="${place}"${required ? html` required` : ''} placeholder="${String(example ?? '')}" spellcheck="false"></p>`,
)}
${media ? html`<p><label for="${id}-body">Body</label><textarea id="${id}-body" name="" rows="8" spellcheck="false">${JSON.stringify(media.example, null, 2)}</textarea></p>` : ''}
<p><button>Send</button> <span class="type">${isPublic ? 'It is sent to this appliance as shown.' : 'It is sent to this appliance with the permissions of your console session.'}</span></p>
<output tabindex="-1" hidden></output>
</form>
</details>`;
}

function contentOf({ responses }: Operation) {
  const ok = responses['200'];
  return (ok && !('$ref' in ok) && ok.content) || {};
}

function parametersHtml(parameters: NonNullable<Operation['parameters']>): Html {
  return html`<h3>Parameters</h3>
<ul class="fields">${parameters.map(
    ({ name, in: place, required, description, schema }) => html`<li><code class="name">${name}</code>
<span class="type">${place}, ${schema.type ?? 'string'}${required ? ', required' : ''}${
      schema.default === undefined ? '' : html`, ${String(schema.default)} if absent`
    }</span><br>${sentence(description)}</li>`,
  )}</ul>`;
}

function success(response: OpenApiResponse): Html {
  const [type, media] = Object.entries(response.content ?? {})[0] ?? [];
  if (type === undefined || !media) return html`<h3>Answer</h3><p>${response.description}</p>`;
  if (type !== 'application/json') {
    const example = typeof media.example === 'string' ? html`<pre><code>${media.example}</code></pre>` : '';
    return html`<h3>Answer</h3><p><code>${type}</code></p>${example}`;
  }
  return html`<h3>Answer</h3>${schemaHtml(media.schema, 'answered')}<details><summary>Example</summary>${json(media.example)}</details>`;
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

/** The message of an ordinary error, which needs no more explanation; undefined for other bodies. */
function messageOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || !('message' in value)) return undefined;
  return Object.keys(value).every((name) => name === 'message' || name === 'errors')
    ? String(value.message)
    : undefined;
}

function resolved(response: OpenApiResponse | Reference | undefined, document: OpenApiDocument): OpenApiResponse {
  const found = response && '$ref' in response ? document.components.responses[componentName(response.$ref)] : response;
  if (!found) throw new Error('a response is missing');
  return found;
}

function block(each: Block): Html {
  if (typeof each === 'string') return html`<p>${inline(each)}</p>`;
  if (isList(each)) return html`<ul>${each.map((item) => html`<li>${inline(item)}</li>`)}</ul>`;
  return html`<table>
<thead><tr>${each.head.map((cell) => html`<th scope="col">${inline(cell)}</th>`)}</tr></thead>
<tbody>${each.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody>
</table>`;
}

function json(value: unknown): Html {
  return html`<pre><code>${JSON.stringify(value, null, 2)}</code></pre>`;
}

/** A curl command. `$KMS_URL` stands for the appliance's address, `$KMS_API_KEY` for an API key. */
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
    ...(media ? ["-H 'Content-Type: application/json'", `-d ${shellQuoted(JSON.stringify(media.example))}`] : []),
    ...(operation.operationId === 'createBackup' ? ['-o backup.kms-backup'] : []),
    `"$KMS_URL${filled}${search === '' ? '' : `?${search}`}"`,
  ];
  return parts.join(' \\\n  ');
}
