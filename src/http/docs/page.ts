// The reference at /docs: one HTML page without scripts, made from the API description and the prose that it is made of.
import { html } from 'hono/html';
import { guide } from '../../api/openapi/guide.ts';
import type { OpenApiDocument, PathItem } from '../../api/openapi/types.ts';
import { operationHtml, type Place } from './operation.ts';
import { block, type Html, json, sentence } from './prose.ts';
import { schemaHtml } from './schema.ts';

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
