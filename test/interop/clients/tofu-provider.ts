// OpenTofu with the provider that the executable is: accounts, API keys, keyrings, managed keys and users as resources.
import { mkdirSync } from 'node:fs';
import { newApprover } from '../approver.ts';
import { type Desk, expect } from '../desk.ts';
import { goModuleProgram } from '../install.ts';
import { type Client, scenario } from './client.ts';

const version = 'v1.10.6';

const head = `terraform {
  required_providers {
    kms = {
      source = "kms.internal/kms/kms"
    }
  }
}
provider "kms" {}
`;

const main = `${head}variable "notes" {
  default = "nightly"
}
variable "type" {
  default = "aes256-gcm"
}
resource "terraform_data" "later" {
  input = var.notes
}
resource "kms_account" "billing" {
  name  = "billing"
  notes = terraform_data.later.output
  props = {
    team = "finance"
    sla  = { hours = 4, days = ["mon", "tue"] }
  }
}
resource "kms_keyring" "payroll" {
  name       = "Payroll"
  public_key = file("payroll.pem")
  config = {
    rotate_after = 7776000
  }
}
resource "kms_managed_key" "unseal" {
  name    = "unseal"
  type    = var.type
  aliases = ["apps/unseal", "vault"]
  tags    = { team = "platform" }

  deletion_allowed = true
}
resource "kms_apikey" "batch" {
  name       = "nightly batch"
  account_id = kms_account.billing.name
  secrets_to = kms_keyring.payroll.name
  flags = {
    "keyring.payroll.encrypt" = true
    "key.unseal.decrypt"      = true
  }
  allowed_addresses = ["192.0.2.0/24", "127.0.0.1"]
}
resource "kms_apikey" "ci" {
  name       = "ci"
  account_id = kms_account.billing.name
  secret     = false
  flags      = { "key.unseal.encrypt" = true }
  proofs = [{
    kind     = "jwt"
    name     = "forge"
    issuer   = "https://forge.example.org"
    audience = ["kms"]
    subject  = "repo:acme/payroll:ref:refs/heads/main"
    claims   = jsonencode({ environment = "prod" })
  }]
}
resource "kms_user" "ada" {
  name         = "ada"
  email        = "ada@example.org"
  first_name   = "Ada"
  last_name    = "Lovelace"
  keep_secrets = true
}
data "kms_account" "billing" {
  name       = kms_account.billing.name
  depends_on = [kms_account.billing]
}
output "account" {
  value = data.kms_account.billing.id
}
output "secret" {
  value = kms_apikey.batch.wrapped_secrets["apikey"]
}
output "invite" {
  value     = kms_user.ada.secrets["invite"]
  sensitive = true
}
`;

export const tofuProvider: Client = {
  name: 'terraform-provider-kms',
  from: 'Go',
  async install() {
    const program = await goModuleProgram('github.com/opentofu/opentofu', version, './cmd/tofu');
    return {
      version,
      scenarios: [
        scenario('as a provider: init, plan, apply, again, drift, change, replace, import, destroy', (desk) =>
          lifeOfResources(desk, program),
        ),
        scenario('as a provider: a rule of two, imported as it is, which goes once both have approved it', (desk) =>
          ruleOfTwo(desk, program),
        ),
      ],
    };
  },
};

interface Workspace {
  /** Runs OpenTofu there. Resolves to its stdout. */
  tofu(...args: string[]): Promise<string>;
  /** The same for what must fail. Resolves to its stderr. */
  refused(...args: string[]): Promise<string>;
}

/** A directory with these files, initialized with the provider. */
async function workspace(
  desk: Desk,
  program: string,
  name: string,
  files: Readonly<Record<string, string>>,
): Promise<Workspace> {
  const mirror = desk.path('mirror');
  await desk.kms('tofu-provider', 'install', '--dir', mirror);
  const rc = desk.write('tofu.rc', `provider_installation {\n  filesystem_mirror {\n    path = "${mirror}"\n  }\n}\n`);
  mkdirSync(desk.path(name));
  for (const [file, text] of Object.entries(files)) desk.write(`${name}/${file}`, text);
  const env = {
    ...desk.own(desk.root.key),
    TF_CLI_CONFIG_FILE: rc,
    CHECKPOINT_DISABLE: '1',
    TF_IN_AUTOMATION: '1',
  };
  const opts = { cwd: desk.path(name), env };
  const made: Workspace = {
    tofu: async (...args) => (await desk.run(program, [...args, '-no-color'], opts)).stdout,
    refused: async (...args) => (await desk.refused(program, [...args, '-no-color'], opts)).stderr,
  };
  await made.tofu('init');
  await made.tofu('validate');
  return made;
}

async function ruleOfTwo(desk: Desk, program: string): Promise<void> {
  const approvers = [await newApprover(desk), await newApprover(desk)];
  const users = JSON.stringify(approvers.map(({ name }) => name));
  const rule = `resource "kms_rule" "two" {
  name             = "of two"
  actions          = ["key.never.delete"]
  approvers        = { users = ${users} }
  approvals_needed = 2
}
`;
  const { tofu, refused } = await workspace(desk, program, 'tofu-rule', { 'main.tf': head + rule });
  expect(await tofu('apply', '-auto-approve'), /1 added, 0 changed, 0 destroyed/);
  expect(await desk.kms('approval', 'rule', 'show', 'of two'), /approvals needed +2\n/);
  await tofu('plan', '-detailed-exitcode');

  // OpenTofu itself writes the configuration of what it imports.
  const block = 'import {\n  to = kms_rule.two\n  id = "of two"\n}\n';
  const importing = await workspace(desk, program, 'tofu-rule-import', { 'main.tf': head + block });
  await importing.tofu('plan', '-generate-config-out=rule.tf');
  expect(await importing.tofu('apply', '-auto-approve'), /1 imported, 0 added, 0 changed, 0 destroyed/);

  const [request = ''] = (await refused('destroy', '-auto-approve')).match(/appr_[0-9a-z]{26}/) ?? [];
  for (const approver of approvers) await approver.approve(request);
  expect(await tofu('destroy', '-auto-approve'), /1 destroyed/);
}

async function lifeOfResources(desk: Desk, program: string): Promise<void> {
  const { privateKey, publicKey } = await ringPair();
  desk.write('payroll.key', privateKey);
  const files = { 'main.tf': main, 'payroll.pem': publicKey };
  const { tofu } = await workspace(desk, program, 'tofu-provider', files);
  const unchanged = () => tofu('plan', '-detailed-exitcode');

  expect(await tofu('apply', '-auto-approve'), /7 added, 0 changed, 0 destroyed/);
  await unchanged();
  const secret = desk.write('secret.kms', Buffer.from(await tofu('output', '-raw', 'secret'), 'base64'));
  const opened = await desk.run('kms', ['decrypt', '--private-key', desk.path('payroll.key'), secret], {
    env: desk.own(desk.root.key),
  });
  expect(opened.stdout, /^kms_[0-9A-Za-z]{49}\n?$/);
  expect(await tofu('output', '-raw', 'invite'), /\/console\/invite\?token=/);

  // Drift is seen, and mended.
  await desk.kms('account', 'update', 'billing', '--notes', 'by hand');
  expect(await tofu('plan'), /notes += "by hand" -> "nightly"/);
  expect(await tofu('apply', '-auto-approve'), /0 added, 1 changed, 0 destroyed/);
  expect(await desk.kms('account', 'show', 'billing'), /nightly/);

  // Gone by hand, so made again.
  await desk.kms('user', 'delete', 'ada', '--yes');
  expect(await tofu('apply', '-auto-approve'), /1 added, 0 changed, 0 destroyed/);

  // A value that is not known in the plan stays unknown; what cannot change is replaced.
  expect(await tofu('apply', '-auto-approve', '-var', 'notes=weekly'), /0 added, 2 changed, 0 destroyed/);
  const other = ['-var', 'notes=weekly', '-var', 'type=aes128-gcm'];
  expect(await tofu('plan', ...other), /type += "aes256-gcm" -> "aes128-gcm" # forces replacement/);
  expect(await tofu('apply', '-auto-approve', ...other), /1 added, 0 changed, 1 destroyed/);
  expect(await desk.kms('key', 'show', 'vault'), /aes128-gcm/);

  // Import by name and by id.
  for (const id of ['billing', (await tofu('output', '-raw', 'account')).trim()]) {
    await tofu('state', 'rm', 'kms_account.billing');
    await tofu('import', 'kms_account.billing', id);
  }
  await tofu('apply', '-auto-approve');
  await unchanged();

  expect(await tofu('destroy', '-auto-approve'), /7 destroyed/);
  await desk.refused('kms', ['account', 'show', 'billing'], { env: desk.own(desk.root.key) });
}

async function ringPair(): Promise<{ privateKey: string; publicKey: string }> {
  const { generateKeyPairSync } = await import('node:crypto');
  const pem = { type: 'pkcs8', format: 'pem' } as const;
  return generateKeyPairSync('x25519', { privateKeyEncoding: pem, publicKeyEncoding: { type: 'spki', format: 'pem' } });
}
