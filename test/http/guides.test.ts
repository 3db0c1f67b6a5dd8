// The guides as pages: each document becomes one, all links in them lead somewhere, and a search finds their sections.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readGuides } from '../../build/guides.ts';
import { markdownHtml, plainLine } from '../../src/http/guides/markdown.ts';
import { testAppliance } from '../support/appliance.ts';

const guides = await readGuides();
const appliance = await testAppliance({ guides: async () => guides });

async function get(path: string): Promise<{ status: number; text: string; headers: Headers }> {
  const answer = await appliance.app.fetch(new Request(`http://kms.test${path}`), {});
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

const pages = new Map<string, string>();
for (const path of ['/docs/guides', ...guides.map(({ name }) => `/docs/guides/${name}`)]) {
  const { status, text } = await get(path);
  assert.equal(status, 200, path);
  pages.set(path, text);
}

test('every guide has a page that is well formed and has no marks left in its text', () => {
  assert.ok(pages.size > 35);
  for (const [path, text] of pages) {
    const open: string[] = [];
    for (const [, close, tag = ''] of text.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
      if (['meta', 'link', 'input', 'br'].includes(tag)) continue;
      if (close === '') open.push(tag);
      else assert.equal(open.pop(), tag, path);
    }
    assert.deepEqual(open, [], path);
    const prose = text.replace(/<pre>[\s\S]*?<\/pre>|<code>[\s\S]*?<\/code>/g, '').replace(/<[^>]*>/g, '');
    assert.doesNotMatch(prose, /\]\(|\*\*|```|&#60;!--|^\s*\|(?!\|)/m, path);
    assert.doesNotMatch(text, /<script|\sstyle=|\0/, path);
  }
});

test('all links lead to a page, a heading of it, or another site', () => {
  let count = 0;
  for (const [path, text] of pages) {
    for (const [, href = ''] of text.matchAll(/<a [^>]*href="([^"]*)"/g)) {
      if (/^https?:/.test(href)) continue;
      const to = new URL(href, `http://kms.test${path}`);
      if (['/console', '/docs'].includes(to.pathname)) continue;
      const target = pages.get(to.pathname) ?? assert.fail(`${path}: ${href} leads nowhere`);
      if (to.hash !== '')
        assert.ok(target.includes(`id="${decodeURIComponent(to.hash.slice(1))}"`), `${path}: ${href}`);
      count++;
    }
  }
  assert.ok(count > 1000, String(count));
});

test('a search finds sections by words, and what is searched for is text', async () => {
  const { text } = await get('/docs/guides?q=recovery+KIT');
  assert.match(text, /<h1>\d+ sections with “recovery KIT”<\/h1>/);
  assert.match(text, /<li><a href="guides\/custody#the-recovery-kit">The recovery kit<\/a>/);
  const none = await get(`/docs/guides?q=${encodeURIComponent('<script>alert(1)</script> "zz')}`);
  assert.match(none.text, /<h1>0 sections with “&#60;script&#62;alert\(1\)&#60;\/script&#62; &#34;zz”<\/h1>/);
  assert.doesNotMatch(none.text, /<script/);
  assert.equal((await get('/docs/guides?q=')).text, pages.get('/docs/guides'));
  assert.equal((await get(`/docs/guides?q=${'a+'.repeat(1000)}`)).status, 200);
});

test('they are public like the reference, unrecorded, without scripts, and open while sealed', async () => {
  const { headers } = await get('/docs/guides/tour');
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(
    headers.get('content-security-policy'),
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  );
  for (const path of ['/docs/guides/architecture', '/docs/guides/x', '/docs/guides/constructor', '/docs/guides/a/b']) {
    assert.equal((await get(path)).status, 404, path);
  }
  assert.equal((await appliance.call('POST', '/docs/guides', undefined, { key: null })).status, 405);
  assert.deepEqual(
    (await appliance.activity()).filter(({ action }) => action !== 'none'),
    [],
  );
  const sealed = await testAppliance({ guides: async () => guides, sealed: () => true });
  for (const [path, status] of [
    ['/docs/guides', 200],
    ['/docs/guides/guide-operator', 200],
    ['/docs/guides/x', 404],
    ['/docs/style.css', 200],
    ['/docs/icon.svg', 200],
    ['/docs', 503],
    ['/docs/keyrings', 503],
  ] as const) {
    assert.equal((await sealed.app.fetch(new Request(`http://kms.test${path}`), {})).status, status, path);
  }
});

test('guides that could not be read are read again', async () => {
  let isBroken = true;
  const a = await testAppliance({ guides: async () => (isBroken ? Promise.reject(new Error('no')) : guides) });
  assert.equal((await a.call('GET', '/docs/guides')).status, 500);
  isBroken = false;
  assert.equal((await a.app.fetch(new Request('http://kms.test/docs/guides'), {})).status, 200);
});

const html = (...lines: string[]): string =>
  markdownHtml(lines.join('\n'), (target) => (target.startsWith('x') ? `to/${target}` : undefined));

test('each kind of block becomes its element', () => {
  assert.equal(
    html('# A `b` & *c*', 'text', 'goes on', '', 'more'),
    '<h1 id="a-b--c">A <code>b</code> &#38; <em>c</em></h1>\n<p>text\ngoes on</p>\n<p>more</p>',
  );
  assert.equal(
    html('<!-- not shown', 'at all -->', '```sh', 'a **b** <c>', '', '# d', '```'),
    '<pre><code>a **b** &#60;c&#62;\n\n# d\n</code></pre>',
  );
  assert.equal(html('    code', '', '    more', 'text'), '<pre><code>code\n\nmore\n</code></pre>\n<p>text</p>');
  assert.equal(
    html('| a | |', '|---|---|', '| `x \\| y` | **z** |'),
    '<table>\n<thead><tr><th scope="col">a</th><td></td></tr></thead>\n<tbody><tr><td><code>x | y</code></td><td><strong>z</strong></td></tr></tbody>\n</table>',
  );
  assert.equal(html('- a', '  b', '- c', 'text behind'), '<ul>\n<li>a\nb</li>\n<li>c\ntext behind</li>\n</ul>');
  assert.equal(
    html('2. a', '   - b', '', 'text'),
    '<ol start="2">\n<li><p>a</p>\n<ul>\n<li>b</li>\n</ul></li>\n</ol>\n<p>text</p>',
  );
});

test('code, links and emphasis within text', () => {
  assert.equal(
    html('`a*b*` *c* 2 * 3 * 4 [`d`](x.md) [**e**](y.md) ![f](x.png)'),
    '<p><code>a*b*</code> <em>c</em> 2 * 3 * 4 <a href="to/x.md"><code>d</code></a> <strong>e</strong> f</p>',
  );
  assert.equal(html('a < b & "c"'), '<p>a &#60; b &#38; &#34;c&#34;</p>');
  assert.equal(plainLine('| a | `b` |'), 'a; b');
  assert.equal(plainLine('- **a** `b` [c](d.md) *e*'), 'a b c e');
});
