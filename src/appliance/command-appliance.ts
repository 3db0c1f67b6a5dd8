// An appliance that one command opens for itself, where no server holds the data directory.
import { resolve } from 'node:path';
import { systemError } from '../errors.ts';
import { needAppliance } from '../platform/data-dir.ts';
import { hardenProcess } from '../platform/hardening.ts';
import { startRsa } from '../platform/native-rsa.ts';
import { needPrivateDirectory } from '../platform/ownership.ts';
import { needNoUpgrade } from '../upgrade/journal.ts';
import { HeldAppliance, type OpenAppliance } from './appliance.ts';
import type { ApplianceOptions } from './config.ts';

/**
 * Opens the appliance in a data directory for this process alone. Throws `sealed` if it is sealed on purpose, or if no
 * master key is available.
 */
export async function openAppliance(options: ApplianceOptions): Promise<OpenAppliance> {
  const data = resolve(options.data);
  if (!options.store) {
    await needAppliance(data);
    await needPrivateDirectory(data);
  }
  await needNoUpgrade(data);
  await hardenProcess();
  startRsa();
  try {
    const held = await HeldAppliance.hold(options, { serves: false });
    await held.open().catch(async (error: unknown) => {
      await held.close();
      throw error;
    });
    return held.opened;
  } catch (error) {
    throw systemError(error, data);
  }
}
