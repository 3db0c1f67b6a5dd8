// Seeded lives of a store with crashes at any step.
import { crashSuite } from '../support/crash-suite.ts';

crashSuite('crashes', false);
