// The shapes that the client checks answers against match the declarations.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shapesOfAnswers } from '../../build/answer-shapes.ts';
import { answerShapes, things } from '../../src/client/answer-shapes.ts';

/** Ignores where lines break in the file. */
function onOneLine(shapes: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, shape.trim().replace(/\s+/g, ' ')]));
}

test('each answer is checked by the shape that is declared: run `node build/answer-shapes.ts` after a change', () => {
  const made = shapesOfAnswers();
  assert.deepEqual(onOneLine(answerShapes), made.answerShapes);
  assert.deepEqual(onOneLine(things), made.things);
});
