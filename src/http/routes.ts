// Every endpoint's route, by the endpoint's id. The compiler holds it against the declarations: none is missing, none is too many.
import type { EndpointId } from '../api/endpoints.ts';
import type { RoutesOf } from './route.ts';
import { accountRoutes } from './routes/accounts.ts';
import { activityRoutes } from './routes/activity.ts';
import { apikeyRoutes } from './routes/apikeys.ts';
import { assetRoutes } from './routes/assets.ts';
import { asymRoutes } from './routes/asym.ts';
import { encryptionRoutes } from './routes/encryption.ts';
import { keyringRoutes } from './routes/keyrings.ts';
import { loginRoutes } from './routes/login.ts';
import { systemRoutes } from './routes/system.ts';
import { userRoutes } from './routes/users.ts';

export const routes: RoutesOf<EndpointId> = {
  ...keyringRoutes,
  ...encryptionRoutes,
  ...assetRoutes,
  ...asymRoutes,
  ...accountRoutes,
  ...apikeyRoutes,
  ...activityRoutes,
  ...userRoutes,
  ...loginRoutes,
  ...systemRoutes,
};
