// The page about age, typed with the age of the system.
import { test } from 'node:test';
import { typePage } from '../docs/typing.ts';

test('docs/age.md', () => typePage('docs/age.md'));
