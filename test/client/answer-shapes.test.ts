// The shapes by which the client checks answers are those of the declarations.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shapesOfAnswers } from '../../build/answer-shapes.ts';
import { answerShapes, things } from '../../src/client/answer-shapes.ts';

/** Where a line of the file ends does not matter. */
function onOneLine(shapes: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, shape.trim().replace(/\s+/g, ' ')]));
}

test('each answer is checked by the shape that is declared: run `node build/answer-shapes.ts` after a change', () => {
  const made = shapesOfAnswers();
  assert.deepEqual(onOneLine(answerShapes), made.answerShapes);
  assert.deepEqual(onOneLine(things), made.things);
});
