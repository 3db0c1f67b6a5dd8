// Kubernetes at the socket of `kms kubernetes-plugin`: first the client of its KMS plugins alone, then its API server
// with etcd, set up as in docs/kubernetes.md.
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, connect as dial, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.ts';
import { type Desk, expect } from '../desk.ts';
import {
  debianPrograms,
  debianVersion,
  goLibraryProgram,
  goProgram,
  goVersion,
  kubernetesPrograms,
} from '../install.ts';
import { type Client, scenario } from './client.ts';

/** A plugin for the ring at this server, with an API key that has the guide's flags. */
async function pluginOf(desk: Desk, ring: string, server = desk.url) {
  const file = desk.path(`${ring}.key`);
  await desk.kms('keyring', 'create', ring, '--private-key-out', file);
  const { key, keyid } = await desk.token(...['read', 'encrypt', 'decrypt'].map((what) => `keyring.${ring}.${what}`));
  const path = desk.path(`${ring}.sock`);
  const socket = `unix://${path}`;
  const start = async (privateKey = file) => {
    const env = { ...desk.own(key), KMS_SERVER: server, KMS_PRIVATE_KEY: privateKey };
    const command = ['kms', 'kubernetes-plugin', '--ring', ring, '--listen', socket];
    const plugin = desk.start('sh', ['-c', 'echo $$ >"$0"; exec "$@"', desk.path(`${ring}.pid`), ...command], { env });
    await plugin.until('the plugin listens', async () => plugin.output().includes('listening on'));
    return plugin;
  };
  /** Kills it, as the kernel does when memory runs out. */
  const kill = () => desk.run('kill', ['-KILL', readFileSync(desk.path(`${ring}.pid`), 'utf8').trim()]);
  return { socket, keyid, start, kill };
}

export const kubernetes: Client = {
  name: 'kubernetes',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('kubernetes');
    return {
      version: await goVersion('k8s.io/kms'),
      scenarios: [
        scenario('k8s.io/kms’s client: status, encrypt, decrypt, what was altered; after a rotation', async (desk) => {
          const { socket, start } = await pluginOf(desk, 'etcd-client');
          const plugin = await start();
          try {
            for (let turn = 0; turn < 2; turn++) {
              await desk.run(program, [], { env: { SOCKET: socket } });
              await desk.kms('keyring', 'rotate', 'etcd-client');
            }
          } finally {
            await plugin.end();
          }
        }),
      ],
    };
  },
};

const guide = readFileSync(new URL('../../../docs/kubernetes.md', import.meta.url), 'utf8');

/** The guide's YAML blocks, in order: the encryption configuration, part of the API server's pod, the plugin's pod. */
const [encryption = '', podPart = '', pluginPod = ''] = [...guide.matchAll(/^```yaml\n(.*?)^```$/gms)].map(
  ([, text = '']) => text,
);

/** The API server's pod, completed with what kubeadm usually has in it. */
const apiServerPod = `apiVersion: v1
kind: Pod
metadata: { name: kube-apiserver, namespace: kube-system }
${podPart.replace('- command:', '- name: kube-apiserver\n      image: kube-apiserver\n      command:')}`;

/** A relay to the appliance that can be cut. */
async function relay(to: string) {
  const { hostname, port } = new URL(to);
  const open = new Set<Socket>();
  let cut = false;
  const server = createServer((socket) => {
    if (cut) return void socket.destroy();
    const other = dial(Number(port), hostname);
    for (const [one, into] of [
      [socket, other],
      [other, socket],
    ] as const) {
      open.add(one);
      one.on('error', () => one.destroy()).on('close', () => into.destroy() && open.delete(one));
      one.pipe(into);
    }
  });
  const at = await freePort();
  await once(server.listen(at, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${at}`,
    /** Refuses connections from now on, or lets them through again. */
    cut(now: boolean): void {
      cut = now;
      if (cut) for (const socket of open) socket.destroy();
    },
    close(): void {
      this.cut(true);
      server.close();
    },
  };
}

/** etcd, and an API server, which encrypts with the plugin behind the socket if one is given. */
async function clusterOf(desk: Desk, programs: string, name: string, socket?: string) {
  const file = (text: string): string => desk.path(`${name}-${text}`);
  const [client, peer, port] = [await freePort(), await freePort(), await freePort()];
  const [etcdUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
  const etcd = desk.start('etcd', [
    ...['--data-dir', file('etcd'), '--initial-cluster', `default=${peerUrl}`],
    ...['--listen-client-urls', etcdUrl, '--advertise-client-urls', etcdUrl],
    ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
  ]);
  await etcd.until('etcd serves', async () => (await fetch(`${etcdUrl}/health`)).ok);
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  desk.write(`${name}-service.pub`, publicKey.export({ type: 'spki', format: 'pem' }));
  desk.write(`${name}-service.key`, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  desk.write(`${name}-tokens`, 'token,admin,1,system:masters\n');
  if (socket) desk.write(`${name}-encryption.yaml`, encryption.replace('unix:///run/kms-kubernetes/kms.sock', socket));
  const kubectl = async (args: string, stdin = ''): Promise<string> => {
    const at = [`--server=https://127.0.0.1:${port}`, '--insecure-skip-tls-verify', '--token=token'];
    return (await desk.run(`${programs}/kubectl`, [...at, ...args.split(' ')], { stdin })).stdout;
  };
  const startApi = () =>
    desk.start(`${programs}/kube-apiserver`, [
      `--etcd-servers=${etcdUrl}`,
      ...['--bind-address=127.0.0.1', `--secure-port=${port}`, `--cert-dir=${file('certificates')}`],
      ...['--service-account-issuer=https://kubernetes.default.svc', '--service-cluster-ip-range=10.0.0.0/24'],
      `--service-account-key-file=${file('service.pub')}`,
      `--service-account-signing-key-file=${file('service.key')}`,
      ...['--authorization-mode=RBAC', `--token-auth-file=${file('tokens')}`],
      // No controller makes service accounts here.
      '--disable-admission-plugins=ServiceAccount',
      ...(socket ? [`--encryption-provider-config=${file('encryption.yaml')}`] : []),
    ]);
  let api = startApi();
  const ready = () => api.until('the API server is ready', () => kubectl('get --raw /readyz'));
  await ready();
  return {
    kubectl,
    ready,
    /** Stops the API server and starts another, which need not become ready. */
    async restart(): Promise<void> {
      await api.end();
      api = startApi();
      await api.until('the API server answers', () => kubectl('get --raw /version'));
    },
    makeSecret: (secret: string, password: string) =>
      kubectl(`create secret generic ${secret} --from-literal=password=${password}`),
    passwordOf: async (secret: string) =>
      Buffer.from(await kubectl(`get secret ${secret} -o jsonpath={.data.password}`), 'base64').toString(),
    isRefused: (secret: string) =>
      kubectl(`get secret ${secret}`).then(
        () => Promise.reject(new Error(`expected a refusal of the Secret ${secret}`)),
        () => undefined,
      ),
    /** The bytes that etcd stores for a Secret. */
    async stored(secret: string): Promise<Buffer> {
      const key = Buffer.from(`/registry/secrets/default/${secret}`).toString('base64');
      const asked = await fetch(`${etcdUrl}/v3/kv/range`, { method: 'POST', body: JSON.stringify({ key }) });
      return Buffer.from((await asked.json()).kvs[0].value, 'base64');
    },
    async end(): Promise<void> {
      await api.end();
      await etcd.end();
    },
  };
}

/** Retries once a second for as long as the API server may use a cached status. */
async function within(seconds: number, what: string, look: () => Promise<boolean>): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    if (await look().catch(() => false)) return;
    await delay(1000);
  }
  throw new Error(`not within ${seconds} s: ${what}`);
}

/**
 * Logs in with tokens that the API server issues, as the kubelet asks for them for a pod. The keys are pinned, as the
 * guide to workloads has it.
 */
async function tokensOfAccounts(desk: Desk, programs: string): Promise<void> {
  const cluster = await clusterOf(desk, programs, 'pods');
  try {
    for (const account of ['orders', 'other']) await cluster.kubectl(`create serviceaccount ${account}`);
    const issued = async (account: string, audience: string): Promise<string> =>
      desk.write('token', await cluster.kubectl(`create token ${account} --audience=${audience} --duration=10m`));
    const keys = desk.write('cluster.jwks', await cluster.kubectl('get --raw /openid/v1/jwks'));
    await desk.kms('key', 'create', 'orders');
    await desk.kms('account', 'create', 'shop');
    const made = ['--account', 'shop', '--name', 'pods', '--without-secret', '--flag', 'key.orders.datakey', '--json'];
    const { keyid } = JSON.parse(await desk.kms('apikey', 'create', ...made));
    const issuer = ['--issuer', 'https://kubernetes.default.svc', '--audience', 'kms', '--jwks-file', keys];
    const trust = ['--name', 'pod', '--subject', 'system:serviceaccount:default:orders', ...issuer, '--json'];
    const { id } = JSON.parse(await desk.kms('apikey', 'proof', 'add', keyid, 'jwt', ...trust));
    const login = ['apikey', 'login', 'pods', '--server', desk.url, '--token-file'];
    const session = await desk.run('kms', [...login, await issued('orders', 'kms')]);
    const env = desk.own(session.stdout.trim());
    await desk.run('kms', ['key', 'datakey', 'orders'], { env });
    expect(await desk.kms('activity', 'search', '--keyid', keyid, '--json'), /system:serviceaccount:default:orders/);
    for (const [account, audience] of [
      ['other', 'kms'],
      ['orders', 'vault'],
    ] as const) {
      await desk.refused('kms', [...login, await issued(account, audience)]);
    }
    await desk.kms('apikey', 'proof', 'disable', keyid, id, '--yes');
    await desk.refused('kms', ['key', 'datakey', 'orders'], { env });
  } finally {
    await cluster.end();
  }
}

const deploy = new URL('../../../docs/deploy/', import.meta.url);

/** The plain manifest is the chart with the values of its guide, and the API server accepts all that is there. */
async function filesToDeploy(desk: Desk, programs: string, helm: string): Promise<void> {
  const manifest = (name: string): string => readFileSync(new URL(`kubernetes/${name}.yaml`, deploy), 'utf8');
  const chart = fileURLToPath(new URL('chart', deploy));
  const template = ['template', 'kms', chart, '--kube-version', kubernetesVersion];
  const values = ['appliance.id=APPLIANCE', 'appliance.url=https://kms.example', `appliance.store=${exampleStore}`];
  const given = (list: readonly string[]) => list.flatMap((value) => ['--set', value]);
  const render = async (...more: string[]) =>
    (await desk.run(helm, [...template, '--namespace', 'kms', ...given([...values, ...more])])).stdout;
  const plain = (await render()).replace(/^# Source: .*\n/gm, '').replace(/^.*managed-by: .*\n/gm, '');
  if (!manifest('appliance').endsWith(plain))
    throw new Error(`docs/deploy/kubernetes/appliance.yaml is not:\n${plain}`);
  const all = ['vault=8200', 'aws=8300', 'kmip=5696'].map((port) => `ports.${port}`);
  const whole = await render(...all, 'networkPolicy.from[0].team=shop', 'env.KMS_LOG_LEVEL=debug', 'replicas=3');
  await desk.refused(helm, template);
  const cluster = await clusterOf(desk, programs, 'deploy');
  try {
    for (const name of ['kms', 'shop']) await cluster.kubectl(`create namespace ${name}`);
    for (const [text, count] of [
      [whole, 5],
      [manifest('appliance'), 4],
      [manifest('plugin'), 1],
      [manifest('workload'), 2],
    ] as const) {
      const namespace = text.includes('namespace: ') ? '' : ' -n kms';
      const told = await cluster.kubectl(`create${namespace} --dry-run=server --validate=strict -o name -f -`, text);
      expect(told, new RegExp(`^(\\S+\\n){${count}}$`));
    }
  } finally {
    await cluster.end();
  }
}

const kubernetesVersion = 'v1.37.2';
const exampleStore = 'postgres://kms@db.example/kms?sslrootcert=/etc/kms/store/ca.pem';

const keyIdIn = (stored: Buffer): string => /key_[0-9a-z]{26}/.exec(stored.toString('latin1'))?.[0] ?? '';

export const apiServer: Client = {
  name: 'kube-apiserver',
  from: 'Go',
  onlyIfNamed: true,
  async install() {
    await debianPrograms({ etcd: 'etcd-server' });
    const programs = await kubernetesPrograms(kubernetesVersion, 'kube-apiserver', 'kubectl');
    const helm = await goProgram('helm.sh/helm/v3/cmd/helm', 'v3.16.4');
    return {
      version: `${kubernetesVersion} with etcd ${await debianVersion('etcd-server')}`,
      scenarios: [
        scenario(
          'Secrets in etcd: encrypted, read, after a restart, after a rotation, written again; the guide’s pods',
          async (desk) => {
            const { socket, start } = await pluginOf(desk, 'etcd');
            const plugin = await start();
            const cluster = await clusterOf(desk, programs, 'first', socket);
            try {
              await cluster.makeSecret('before', 'hunter2-before');
              const stored = await cluster.stored('before');
              expect(stored.toString('latin1'), /^k8s:enc:kms:v2:kms:\n/);
              expect(keyIdIn(stored), /^key_/);
              if (stored.includes('hunter2') || stored.includes('password')) throw new Error('etcd has the password');
              expect(await cluster.passwordOf('before'), /^hunter2-before$/);
              await cluster.restart();
              await cluster.ready();
              expect(await cluster.passwordOf('before'), /^hunter2-before$/);
              await desk.kms('keyring', 'rotate', 'etcd');
              const { activeKey } = JSON.parse(await desk.kms('keyring', 'show', 'etcd', '--json')).ring;
              await cluster.makeSecret('after', 'hunter2-after');
              await within(90, 'the API server writes with the new key', async () => {
                await cluster.kubectl(`annotate --overwrite secret after written=${Date.now()}`);
                return keyIdIn(await cluster.stored('after')) === activeKey;
              });
              expect(await cluster.passwordOf('before'), /^hunter2-before$/);
              if ((await cluster.stored('before')).compare(stored) !== 0) throw new Error('an old Secret was touched');
              await cluster.kubectl('replace -f -', await cluster.kubectl('get secrets -A -o json'));
              expect(keyIdIn(await cluster.stored('before')), new RegExp(activeKey));
              expect(await cluster.passwordOf('before'), /^hunter2-before$/);
              for (const pod of [pluginPod, apiServerPod]) {
                expect(await cluster.kubectl('create --dry-run=server -o name -f -', pod), /^pod\/k[\w-]+\n$/);
              }
            } finally {
              await cluster.end();
              await plugin.end();
            }
          },
        ),
        scenario('the appliance away, the plugin killed, another private key, the API key revoked', async (desk) => {
          const way = await relay(desk.url);
          const { socket, keyid, start, kill } = await pluginOf(desk, 'etcd-2', way.url);
          await desk.kms('keyring', 'create', 'another', '--private-key-out', desk.path('another.key'));
          let plugin = await start();
          const cluster = await clusterOf(desk, programs, 'second', socket);
          const isUnwell = (because: RegExp) =>
            within(90, `its health check fails: ${because}`, () =>
              cluster.kubectl('get --raw /healthz/kms-providers').then(
                () => false,
                ({ message }: Error) => because.test(message),
              ),
            );
          try {
            await cluster.makeSecret('kept', 'hunter2-kept');
            way.cut(true);
            await isUnwell(/cannot reach/);
            expect(await cluster.passwordOf('kept'), /^hunter2-kept$/);
            expect(await cluster.kubectl('get --raw /livez'), /^ok$/);
            await cluster.restart();
            await isUnwell(/cannot reach/);
            await cluster.isRefused('kept');
            way.cut(false);
            await cluster.ready();
            expect(await cluster.passwordOf('kept'), /^hunter2-kept$/);
            await kill();
            plugin = await start();
            await cluster.restart();
            await cluster.ready();
            expect(await cluster.passwordOf('kept'), /^hunter2-kept$/);
            await plugin.end();
            plugin = await start(desk.path('another.key'));
            await cluster.restart();
            await isUnwell(/the private key does not open key_/);
            await cluster.isRefused('kept');
            await plugin.end();
            plugin = await start();
            await cluster.ready();
            // A keyring in use can't be deleted.
            await desk.refused('kms', ['keyring', 'delete', 'etcd-2', '--yes'], { env: desk.own(desk.root.key) });
            await desk.kms('apikey', 'revoke', keyid);
            await isUnwell(/Unauthenticated desc = the credential is not known, no longer valid/);
            await desk.kms('keyring', 'delete', 'etcd-2', '--yes');
            await cluster.restart();
            await cluster.isRefused('kept');
          } finally {
            await cluster.end();
            await plugin.end();
            way.close();
          }
        }),
        scenario('the files to deploy the appliance, its plugin and programs: rendered by Helm, and accepted', (desk) =>
          filesToDeploy(desk, programs, helm),
        ),
        scenario('the token of a service account gets a data key, with no secret, until its trust ends', (desk) =>
          tokensOfAccounts(desk, programs),
        ),
      ],
    };
  },
};
