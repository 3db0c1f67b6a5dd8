// Resources and data sources for the kinds of objects that configuration as code knows: found, compared, made, changed
// and removed as `kms apply` does it.
import { isDeepStrictEqual } from 'node:util';
import { configurationKinds, type KindName } from '../../api/configuration.ts';
import { KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Difference, Found, Kind, Secret, Wanted, Workplace } from '../as-code/kind.ts';
import { type Attribute, type Attributes, fieldOf, valueOfField } from './attributes.ts';
import type { DataSource, Problem, ResourceType } from './service.ts';
import { hasUnknown, mapped, type ObjectValue, type Value } from './values.ts';

/** Opens a workplace that keeps secrets with `deliver`. */
export type OpenWorkplace = (deliver: Workplace['deliver']) => Promise<Workplace>;
