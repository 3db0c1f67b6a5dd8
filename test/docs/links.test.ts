// All links in the pages resolve: to the file, the heading, the script.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = ['.', 'docs'].flatMap((dir) =>
  readdirSync(join(root, dir))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(root, dir, name)),
);
const texts = new Map(pages.map((page) => [page, readFileSync(page, 'utf8')]));

/** Names of headings as Markdown sites derive them: lower case, dashes for spaces, nothing else. */
function anchorsOf(page: string): ReadonlySet<string> {
  const prose = (texts.get(page) ?? '').replace(/^```[\s\S]*?^```$/gm, '');
  const heads = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, text = '']) => text);
  return new Set(
    heads.map((text) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

for (const [page, text] of texts) {
  test(`the links of ${relative(root, page)}`, () => {
    const prose = text.replace(/^```[\s\S]*?^```$/gm, '');
    for (const [, link = ''] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(link)) continue;
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      assert.ok(existsSync(target), `${link}: no such file`);
      if (anchor !== undefined) assert.ok(anchorsOf(target).has(anchor), `${link}: no such heading`);
    }
  });

  test(`the scripts that ${relative(root, page)} names`, () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    for (const [, name = ''] of text.matchAll(/`npm run ([\w-]+)/g)) assert.ok(name in scripts, `npm run ${name}`);
    for (const [path] of text.matchAll(/(?<=`(?:\.\/)?)(?:scripts|test|src)\/[\w/.-]+\w(?=[` ])/g)) {
      assert.ok(existsSync(join(root, path)), path);
    }
  });
}

test('the changelog names the version that this is', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const [, newest] = /^## \[([^\]]+)\]/m.exec(texts.get(join(root, 'CHANGELOG.md')) ?? '') ?? [];
  assert.equal(newest, version);
});
