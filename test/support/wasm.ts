// The bytes of sql.js's WebAssembly module, as the tests pass them to the store.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export const sqlWasm: Uint8Array = readFileSync(require.resolve('sql.js/dist/sql-wasm.wasm'));
