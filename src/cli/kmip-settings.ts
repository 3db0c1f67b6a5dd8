// The settings of software that speaks KMIP, by product, for one client: `kms kmip client create` writes them beside
// its certificate, and docs/kmip-settings.md has them for an example.

export interface KmipPlace {
  /** Where the client reaches the KMIP server. */
  readonly host: string;
  readonly port: number;
  /** Name of the API key, of letters, digits and `._-`. */
  readonly name: string;
}

interface Address extends KmipPlace {
  /** Host and port in one. */
  readonly address: string;
}

interface Product {
  readonly name: string;
  settings(place: Address): string;
}

/** An IPv6 address has brackets only where the port follows it. */
function addressOf(place: KmipPlace): Address {
  const { host, port } = place;
  return { ...place, host: host.replace(/^\[(.*)\]$/, '$1'), address: `${host}:${port}` };
}

/** Fenced text of a language. */
function code(language: string, ...lines: readonly string[]): string {
  return [`\`\`\`${language}`, ...lines, '```'].join('\n');
}

const mongodb: Product = {
  name: 'MongoDB Enterprise, Percona Server for MongoDB',
  settings: ({ address, host, port }) =>
    `It wants certificate and key in one file: \`cat client.crt client.key > client.pem\`. In \`mongod.conf\`:

${code(
  'yaml',
  'security:',
  '  enableEncryption: true',
  '  kmip:',
  `    serverName: ${host}`,
  `    port: ${port}`,
  '    clientCertificateFile: /etc/mongod/client.pem',
  '    serverCAFile: /etc/mongod/server-ca.pem',
)}

The first start makes a key, and later ones get it. Client-side encryption of a driver has the provider \`kmip\` with
\`endpoint: "${address}"\` and the driver's TLS options (\`tlsCertificateKeyFile\`, \`tlsCAFile\`) for it.`,
};

const perconaMysql: Product = {
  name: 'Percona Server for MySQL',
  settings: ({ host, port, name }) =>
    `In \`component_keyring_kmip.cnf\` beside the plugins, with
\`{"components": "file://component_keyring_kmip"}\` in \`mysqld.my\`:

${code(
  'json',
  '{',
  `  "server_addr": "${host}", "server_port": "${port}",`,
  '  "client_ca": "/etc/mysql/kmip/client.crt", "client_key": "/etc/mysql/kmip/client.key",',
  `  "server_ca": "/etc/mysql/kmip/server-ca.pem", "object_group": "${name}"`,
  '}',
)}`,
};

const pgTde: Product = {
  name: 'PostgreSQL with pg_tde (Percona)',
  settings: ({ host, port, name }) =>
    `${code(
      'sql',
      'SELECT pg_tde_add_global_key_provider_kmip(',
      `  '${name}', '${host}', ${port}, '/etc/kmip/client.crt', '/etc/kmip/client.key', '/etc/kmip/server-ca.pem');`,
    )}

It never destroys keys.`,
};

const openbao: Product = {
  name: 'OpenBao (seal)',
  settings: ({ address }) =>
    `Make the key first: \`kms key create unseal\`, whose id \`kms key show unseal\` tells, and give the client
\`--flag key.unseal.read --flag key.unseal.encrypt --flag key.unseal.decrypt\`. An RSA key of the uses encrypt and
decrypt works as well, with \`encrypt_alg = "RSA_OAEP_SHA256"\`.

${code(
  'hcl',
  'seal "kmip" {',
  `  endpoint    = "${address}"`,
  '  kms_key_id  = "mkey_…"',
  '  ca_cert     = "/etc/openbao/server-ca.pem"',
  '  client_cert = "/etc/openbao/client.crt"',
  '  client_key  = "/etc/openbao/client.key"',
  '}',
)}`,
};

const vcenter: Product = {
  name: 'VMware vCenter',
  settings: ({ host, port }) =>
    `Configure, Security, Key Providers: Add Standard Key Provider, with the key server \`${host}\`, port ${port}. Then
select it: Establish Trust, Make vCenter trust KMS; and Make KMS trust vCenter, KMS certificate and private key, with
\`client.crt\` and \`client.key\`. vCenter 7 may need \`kms serve --kmip-old-ciphers\`. It never destroys keys.`,
};

const synology: Product = {
  name: 'Synology DSM',
  settings: ({ host, port }) =>
    `Control Panel, Security, Certificate: import \`client.key\`, \`client.crt\` and, as the intermediate certificate,
\`ca.crt\`. In Settings there, choose it for KMIP. Then Control Panel, Security, KMIP, Remote Key Client: \`${host}\`,
port ${port}, and \`server-ca.pem\` as the server's authority.`,
};

const qnap: Product = {
  name: 'QNAP QuTS hero and QTS',
  settings: ({ host, port }) =>
    `On the page for an external key server (KMIP): \`${host}\`, port ${port}, \`client.crt\` as the client's certificate
with \`client.key\` as its private key, and \`server-ca.pem\` as the authority.`,
};

const netapp: Product = {
  name: 'NetApp ONTAP',
  settings: ({ address, name }) =>
    `${code(
      'text',
      'security certificate install -vserver CLUSTER -type client',
      'security certificate install -vserver CLUSTER -type server-ca',
      `security key-manager external enable -vserver CLUSTER -key-servers ${address} \\`,
      `  -client-cert ${name} -server-ca-certs kms`,
    )}

The first command asks for \`client.crt\` and \`client.key\`, the second for \`server-ca.pem\`, and both for the names that
the third uses. Up to four servers may be named: the nodes of one appliance.`,
};

const veeam: Product = {
  name: 'Veeam Backup & Replication',
  settings: ({ host, port }) =>
    `On the backup server, import \`client.p12\` into the machine's store (Local Computer, Personal) with the password in
\`client.p12.password\`, and \`server-ca.pem\` into its trusted authorities. Then Credentials & Passwords, Key Management
Servers, Add: \`${host}\`, port ${port}, and both certificates.`,
};

const fortios: Product = {
  name: 'Fortinet FortiOS',
  settings: ({ host, port, name }) =>
    `System, Certificates: import \`client.p12\` as a certificate named \`${name}\`, and \`server-ca.pem\` as a CA certificate.
Then:

${code(
  'text',
  'config vpn kmip-server',
  '    edit "kms"',
  '        config server-list',
  '            edit 1',
  `                set server "${host}"`,
  `                set port ${port}`,
  `                set cert "${name}"`,
  '                set username "fortigate"',
  '                set password "any"',
  '            next',
  '        end',
  '    next',
  'end',
)}

The user name and password are sent and do no harm: the certificate says who it is.`,
};

const rook: Product = {
  name: 'Rook (Ceph)',
  settings: ({ address, host }) =>
    `${code(
      'sh',
      'kubectl -n rook-ceph create secret generic kmip-client --from-file=CA_CERT=server-ca.pem \\',
      '  --from-file=CLIENT_CERT=client.crt --from-file=CLIENT_KEY=client.key',
    )}

In the CephCluster, for encrypted OSDs:

${code(
  'yaml',
  'spec:',
  '  security:',
  '    kms:',
  '      connectionDetails:',
  '        KMS_PROVIDER: kmip',
  `        KMIP_ENDPOINT: ${address}`,
  `        TLS_SERVER_NAME: ${host}`,
  '      tokenSecretName: kmip-client',
)}

ceph-csi has the same settings, and in its secret also \`UNIQUE_IDENTIFIER\`: the id of a key that was made and activated
beforehand, such as a managed key.`,
};

/** In the order of the page. */
const products: readonly Product[] = [
  mongodb,
  perconaMysql,
  pgTde,
  openbao,
  vcenter,
  veeam,
  synology,
  qnap,
  netapp,
  fortios,
  rook,
];

/** The sections of all products, in Markdown. */
export function kmipSettings(place: KmipPlace): string {
  return products.map(({ name, settings }) => `## ${name}\n\n${settings(addressOf(place))}\n`).join('\n');
}

/** The page that stands beside a client's certificate. */
export function clientPage(place: KmipPlace): string {
  const { host, port, name } = addressOf(place);
  return `# The client ${name} of KMIP

The server is ${host}, port ${port}. \`server-ca.pem\` below is the authority of the server's certificate, or the
certificate itself if it signs itself: what \`kms serve\` was given as \`--kmip-tls-cert\` or \`--tls-cert\`. It is not
\`ca.crt\`, which signed the client's certificate.

| file | what it is |
|---|---|
| \`client.crt\`, \`client.key\` | certificate and private key, PEM |
| \`ca.crt\` | the authority that signed the certificate |
| \`client.p12\` | all three as PKCS #12; its password is in \`client.p12.password\` |

${kmipSettings(place)}`;
}
