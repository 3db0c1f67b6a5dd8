// The commands that let other software use the appliance: `kms age …`, `kms age-plugin …`, `kms tofu-key`, `kms
// tofu-provider …` and `kms kubernetes-plugin`.
import { argument, command, directory, hidden, path, required, text, toggle } from './declaration.ts';

export const age = {
  recipient: command(
    'recipient',
    'print the recipient of a keyring for `age -r`; it holds no secret, and needs the flag keyring.<ringname>.read',
    ['kms age recipient payroll', 'kms age recipient payroll >> .age-recipients'],
    {
      '<RING>': argument('ring'),
    },
  ),
  identity: command(
    'identity',
    'print the identity of a keyring for `age -i`: it says where the appliance and the private key are',
    ['kms age identity payroll > payroll.identity', 'kms age identity payroll --private-key payroll.pem'],
    {
      '<RING>': argument('ring'),
      '--private-key': path('FILE', "use the ring's private key in this file (default: where `keyring create` put it)"),
      '--with-private-key': toggle('put the private key itself into the identity, which is then just as secret'),
    },
  ),
};

export const agePlugin = {
  install: command(
    'install',
    'give this executable its second name, age-plugin-kms, under which age finds it',
    ['kms age-plugin install', 'kms age-plugin install --dir ~/.local/bin'],
    {
      '--dir': directory('DIR', 'a directory in PATH (default: where this executable is)'),
    },
  ),
};

export const tofu = {
  tofuKey: command(
    'tofu-key',
    'give OpenTofu the keys of its state: the command of its key provider `external`',
    ['kms tofu-key --ring infra < metadata.json'],
    {
      '--ring': required(text('NAME', 'the keyring (required)', 'ring')),
      '--private-key': path('FILE', "the ring's private key, PEM or base64 (default: where `keyring create` put it)"),
    },
  ),
};

export const tofuProvider = {
  install: command(
    'install',
    'put this executable where OpenTofu and Terraform find it as the provider `kms`',
    ['kms tofu-provider install', 'kms tofu-provider install --dir ./mirror'],
    {
      '--dir': directory('DIR', 'a file system mirror of providers (default: ~/.terraform.d/plugins)'),
    },
  ),
};

export const kubernetes = {
  kubernetesPlugin: command(
    'kubernetes-plugin',
    'serve as the KMS plugin (v2) of a Kubernetes API server: encrypt its keys with a keyring',
    ['kms kubernetes-plugin --ring etcd --listen unix:///run/kms/kubernetes.sock'],
    {
      '--ring': required(text('NAME', 'the keyring (required)', 'ring')),
      '--listen': required(text('unix:///PATH', 'the socket that the API server connects to (required)')),
      '--private-key': path('FILE', "the ring's private key, PEM or base64 (default: where `keyring create` put it)"),
    },
  ),
};

export const plugged = {
  speak: hidden('__age-plugin', {
    '--age-plugin': text('NAME', 'the state machine that age asks for'),
    '--private-key': path('FILE', "the ring's private key"),
  }),
};

export const provided = {
  provide: hidden<object>('__terraform-provider', {}),
};
