// Every room of the console, in the order of the navigation: an entry for each page that is under itself.

import type { Room } from './room.ts';
import { AboutRoom } from './rooms/about.tsx';
import { AccountRoom } from './rooms/account.tsx';
import { AccountsRoom } from './rooms/accounts.tsx';
import { ActivityRoom } from './rooms/activity.tsx';
import { ActivityRecordRoom } from './rooms/activity-record.tsx';
import { ApikeyRoom } from './rooms/apikey.tsx';
import { ApikeysRoom } from './rooms/apikeys.tsx';
import { AssetRoom } from './rooms/asset.tsx';
import { AssetsRoom } from './rooms/assets.tsx';
import { AsymRoom } from './rooms/asym.tsx';
import { DecryptRoom } from './rooms/decrypt.tsx';
import { EncryptRoom } from './rooms/encrypt.tsx';
import { KeyringRoom } from './rooms/keyring.tsx';
import { KeyringsRoom } from './rooms/keyrings.tsx';
import { NewAccountRoom } from './rooms/new-account.tsx';
import { NewApikeyRoom } from './rooms/new-apikey.tsx';
import { NewKeyringRoom } from './rooms/new-keyring.tsx';
import { NewUserRoom } from './rooms/new-user.tsx';
import { OverviewRoom } from './rooms/overview.tsx';
import { UserRoom } from './rooms/user.tsx';
import { UsersRoom } from './rooms/users.tsx';

export const rooms: readonly Room[] = [
  { page: 'home', component: OverviewRoom, under: 'home' },
  { page: 'keyrings', component: KeyringsRoom, under: 'keyrings', needs: 'keyring.list' },
  { page: 'newKeyring', component: NewKeyringRoom, under: 'keyrings' },
  { page: 'keyring', component: KeyringRoom, under: 'keyrings' },
  { page: 'asym', component: AsymRoom, under: 'asym' },
  { page: 'apikeys', component: ApikeysRoom, under: 'apikeys', needs: 'apikey.read' },
  { page: 'newApikey', component: NewApikeyRoom, under: 'apikeys' },
  { page: 'apikey', component: ApikeyRoom, under: 'apikeys' },
  { page: 'users', component: UsersRoom, under: 'users', needs: 'user.read' },
  { page: 'newUser', component: NewUserRoom, under: 'users' },
  { page: 'user', component: UserRoom, under: 'users' },
  { page: 'accounts', component: AccountsRoom, under: 'accounts', needs: 'account.read' },
  { page: 'newAccount', component: NewAccountRoom, under: 'accounts' },
  { page: 'account', component: AccountRoom, under: 'accounts' },
  { page: 'assets', component: AssetsRoom, under: 'assets', needs: 'asset.search' },
  { page: 'asset', component: AssetRoom, under: 'assets' },
  { page: 'activity', component: ActivityRoom, under: 'activity', needs: 'activity.read' },
  { page: 'activityRecord', component: ActivityRecordRoom, under: 'activity' },
  { page: 'encrypt', component: EncryptRoom, under: 'encrypt', needs: 'keyring.encrypt' },
  { page: 'decrypt', component: DecryptRoom, under: 'decrypt', needs: 'keyring.decrypt' },
  { page: 'about', component: AboutRoom, under: 'about' },
];
