// Input and output paths of the build.
import { fileURLToPath } from 'node:url';
import { version } from '../src/version.ts';

const at = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));

export const paths = {
  root: at('.'),
  dist: at('dist'),
  work: at('dist/.work'),
  executable: at('dist/kms'),
  stamp: at('dist/.work/stamp'),
  client: at('dist/client'),
  clientPackage: at(`dist/kms-appliance-client-${version}.tgz`),
  clientEntry: at('src/client/sdk.ts'),
  clientRollback: at('src/client/rollback.ts'),
  docs: at('docs'),
  console: at('src/console'),
  wasm: at('node_modules/sql.js/dist/sql-wasm.wasm'),
};
