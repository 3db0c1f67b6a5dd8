// Comments are sentences that a colleague would say aloud: how none of them begins, and words that none has. No file
// is exempt, this one aside, which has to name them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sources, textOf } from './imports.ts';

/** A comment begins with a noun, a verb or a condition. */
const opening = /^(?:What|Of|Whose|Who|Whom|Whoever|That|As)\b/;
/** Words of no colleague's speech: "no caller", "again", "instead of" and "undefined if" stand for them. */
const unspoken = /\b(?:whoever|whomever|nobody|anew|in the place of|undefined where)\b/i;
const line = /^\s*(?:\/\/|\/\*\*?|\*(?!\/))\s?(.*?)(?:\s*\*\/)?$/;

interface Comment {
  readonly at: number;
  readonly text: string;
}

/** Comments on lines of their own, those of several lines joined, each with the number of its first line. */
function commentsOf(code: string): Comment[] {
  const comments: { at: number; text: string }[] = [];
  let isOpen = false;
  for (const [n, each] of code.split('\n').entries()) {
    const words = line.exec(each)?.[1];
    const last = comments.at(-1);
    if (words === undefined) isOpen = false;
    else if (isOpen && last && !/^\s*\/\*/.test(each)) last.text = `${last.text} ${words}`.trim();
    else comments.push({ at: n + 1, text: words.trim() });
    if (words !== undefined) isOpen = !/\*\/$/.test(each);
  }
  return comments;
}

const isUnspoken = ({ text }: Comment): boolean => opening.test(text) || unspoken.test(text);

test('the reader of comments sees each form', () => {
  const code =
    '// What it is.\nlet a; // whoever\n/** Fine,\n * and anew. */\nlet b;\n/** Of one. */\n// Good.\n// Of two.';
  assert.deepEqual(
    commentsOf(code).map((comment) => [comment.at, comment.text, isUnspoken(comment)]),
    [
      [1, 'What it is.', true],
      [3, 'Fine, and anew.', true],
      [6, 'Of one.', true],
      [7, 'Good. Of two.', false],
    ],
  );
});

for (const folder of ['src', 'test', 'build', 'scripts']) {
  test(`comments in ${folder} open and speak as people do`, () => {
    const found = sources(folder)
      .filter((source) => source !== 'test/architecture/comments.test.ts')
      .flatMap((source) =>
        commentsOf(textOf(source))
          .filter(isUnspoken)
          .map(({ at, text }) => `${source}:${at}: ${text.slice(0, 60)}`),
      );
    assert.deepEqual(found, []);
  });
}
