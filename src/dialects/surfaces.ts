// The protocol surfaces of an appliance besides its own API: a new one needs a folder and a line here.
import type { Surfaces } from '../http/surface.ts';
import { awsSurface } from './aws/surface.ts';
import { kmipSurface } from './kmip/surface.ts';
import { tangSurface } from './tang/surface.ts';
import { vaultSurface } from './vault/surface.ts';

export const surfaces: Surfaces = { vault: vaultSurface, tang: tangSurface, aws: awsSurface, kmip: kmipSurface };
