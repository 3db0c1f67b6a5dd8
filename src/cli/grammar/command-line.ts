// The part of the grammar about the command line and the executable themselves.
import type { GrammarCommand } from '../grammar-command.ts';

export function commandLine(kms: GrammarCommand): void {
  kms
    .leaf(
      'licenses',
      'whose work is in this executable, and the text of each licence',
      ['kms licenses', 'kms licenses --sbom > kms.cdx.json'],
      () => import('../commands/licenses.ts'),
    )
    .option('--sbom', 'the list of components as CycloneDX JSON');
}
