// Seeded lives of a store with crashes at any step.
import { crashSuite } from '../support/crash-suite.ts';

crashSuite('test/store/crash.test.ts', 'crashes', false);
