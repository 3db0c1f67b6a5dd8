// The commands of the page about age, run with the system's age.
import { test } from 'node:test';
import { typePage } from '../docs/typing.ts';

test('docs/age.md', () => typePage('docs/age.md'));
