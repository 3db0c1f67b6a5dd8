// The console's pages in the order of the navigation; a page that is `under` itself is an entry there.
import { AboutPage } from './about-page.tsx';
import { AccountPage, AccountsPage, NewAccountPage } from './accounts/account-pages.tsx';
import { ActivityPage } from './activity/activity-page.tsx';
import { ActivityRecordPage } from './activity/record-page.tsx';
import { SubjectPage } from './activity/subject-page.tsx';
import { ApikeyPage } from './apikeys/apikey-page.tsx';
import { ApikeysPage } from './apikeys/apikeys-page.tsx';
import { NewApikeyPage } from './apikeys/new-apikey-page.tsx';
import { ApprovalPage } from './approvals/approval-page.tsx';
import { ApprovalsPage } from './approvals/approvals-page.tsx';
import { BrokenGlassPage } from './approvals/broken-glass.tsx';
import { ApprovalRulePage, ApprovalRulesPage, NewApprovalRulePage } from './approvals/rules-pages.tsx';
import { AssetPage } from './assets/asset-page.tsx';
import { AssetsPage } from './assets/assets-page.tsx';
import { DecryptPage } from './files/decrypt-page.tsx';
import { EncryptPage } from './files/encrypt-page.tsx';
import { AsymPage } from './keyrings/asym-page.tsx';
import { KeyringPage } from './keyrings/keyring-page.tsx';
import { KeyringsPage } from './keyrings/keyrings-page.tsx';
import { KmipPage } from './keyrings/kmip-page.tsx';
import { ManagedKeyPage } from './keyrings/managed-key-page.tsx';
import { ManagedKeysPage } from './keyrings/managed-keys-page.tsx';
import { NewKeyringPage } from './keyrings/new-keyring-page.tsx';
import { TangPage } from './keyrings/tang-page.tsx';
import { MePage } from './me/me-page.tsx';
import { OverviewPage } from './overview/overview-page.tsx';
import type { Page } from './page.ts';
import { NewUserPage } from './users/new-user-page.tsx';
import { UserPage } from './users/user-page.tsx';
import { UsersPage } from './users/users-page.tsx';

export const pages: readonly Page[] = [
  { name: 'home', component: OverviewPage, under: 'home' },
  { name: 'keyrings', component: KeyringsPage, under: 'keyrings', needs: ['keyring.list'] },
  { name: 'newKeyring', component: NewKeyringPage, under: 'keyrings' },
  { name: 'keyring', component: KeyringPage, under: 'keyrings' },
  { name: 'asym', component: AsymPage, under: 'asym', needs: ['asym.create', 'asym.read', 'asym.rotate'] },
  { name: 'managedKeys', component: ManagedKeysPage, under: 'managedKeys', needs: ['key.list'] },
  { name: 'managedKey', component: ManagedKeyPage, under: 'managedKeys' },
  { name: 'kmip', component: KmipPage, under: 'kmip', needs: ['key.list'] },
  { name: 'tang', component: TangPage, under: 'tang', needs: ['tang.read'] },
  { name: 'apikeys', component: ApikeysPage, under: 'apikeys', needs: ['apikey.read'] },
  { name: 'newApikey', component: NewApikeyPage, under: 'apikeys' },
  { name: 'apikey', component: ApikeyPage, under: 'apikeys' },
  { name: 'users', component: UsersPage, under: 'users', needs: ['user.read'] },
  { name: 'newUser', component: NewUserPage, under: 'users' },
  { name: 'user', component: UserPage, under: 'users' },
  { name: 'accounts', component: AccountsPage, under: 'accounts', needs: ['account.read'] },
  { name: 'newAccount', component: NewAccountPage, under: 'accounts' },
  { name: 'account', component: AccountPage, under: 'accounts' },
  { name: 'assets', component: AssetsPage, under: 'assets', needs: ['asset.search'] },
  { name: 'asset', component: AssetPage, under: 'assets' },
  { name: 'approvals', component: ApprovalsPage, under: 'approvals' },
  { name: 'approval', component: ApprovalPage, under: 'approvals' },
  { name: 'approvalRules', component: ApprovalRulesPage, under: 'approvals' },
  { name: 'newApprovalRule', component: NewApprovalRulePage, under: 'approvals' },
  { name: 'approvalRule', component: ApprovalRulePage, under: 'approvals' },
  { name: 'brokenGlass', component: BrokenGlassPage, under: 'approvals' },
  { name: 'activity', component: ActivityPage, under: 'activity', needs: ['activity.read'] },
  { name: 'activityAbout', component: SubjectPage, under: 'activity' },
  { name: 'activityRecord', component: ActivityRecordPage, under: 'activity' },
  { name: 'encrypt', component: EncryptPage, under: 'encrypt', needs: ['keyring.encrypt'] },
  { name: 'decrypt', component: DecryptPage, under: 'decrypt', needs: ['keyring.decrypt'] },
  { name: 'me', component: MePage, under: 'me' },
  { name: 'about', component: AboutPage, under: 'about' },
];
