// Seeded lives of a store with crashes, failing writes, failing fsyncs and disks that are full for a while.
import { crashSuite } from '../support/crash-suite.ts';

crashSuite('test/store/failing-disk-crash.test.ts', 'crashes on a failing disk', true);
