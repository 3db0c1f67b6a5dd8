// The provider: its settings, which name the appliance as the options of `kms` do, and a resource and a data source for
// each kind of configuration as code.

import { configurationSchema, type KindName } from '../../api/configuration.ts';
import { KmsError } from '../../errors.ts';
import { deskAt } from '../as-code/desk.ts';
import type { Desk, Kind, Workplace } from '../as-code/kind.ts';
import { kinds } from '../as-code/kind-table.ts';
import { isMark, markForm } from '../as-code/mark.ts';
import type { Cli } from '../command.ts';
import { type Connection, openConnection } from '../connect.ts';
import { defaultProfile } from '../profiles.ts';
import { namedDirectory, namedRemote } from '../target.ts';
import { type Attributes, attributesOf, type FieldSchema } from './attributes.ts';
import type { SecretPlace } from './kept-secrets.ts';
import { proofResource } from './proof-resource.ts';
import { dataSourceOf, type KindOptions, resourceOf } from './resource.ts';
import type { Provider } from './service.ts';
import { hasUnknown, type ObjectValue } from './values.ts';

/** Kinds that may have secrets. */
const secretive: ReadonlySet<KindName> = new Set(['apikey', 'user']);

const text = (about: string) => ({ about, field: '', type: 'string', origin: 'optional' }) as const;

/** Fields that stay as they were when the object was made: another value makes another object. */
const fixedFields: Readonly<Partial<Record<KindName, readonly string[]>>> = {
  'managed-key': ['type', 'uses', 'derived', 'origin', 'exportable'],
};

/** Those that are options of every command have their names. */
const settings: Attributes = {
  server: text('the address of the appliance; or set `KMS_SERVER`'),
  profile: text('the appliance that `kms profile add` saved under this name; or set `KMS_PROFILE`'),
  api_key_file: text('a file with the API key for `server`; or set `KMS_API_KEY_FILE`, or `KMS_API_KEY` to the key'),
  ca_file: text('certificate authorities to trust for `server`, PEM; or set `KMS_CA_FILE`'),
  client_cert: text('the client certificate to show to `server`, PEM; or set `KMS_CLIENT_CERT`'),
  client_key: text('its private key, PEM; or set `KMS_CLIENT_KEY`'),
  tenant: text('the tenant, if the appliance is the one of this machine (`KMS_DATA`); or set `KMS_TENANT`'),
  managed_by: text('the mark `managedBy` in the `props` of what is made; `opentofu` if absent'),
  allow_used: {
    about: '`true`: managed keys that were used in the last 24 hours may be suspended and deleted',
    field: '',
    type: 'bool',
    origin: 'optional',
  },
  any_flag: {
    about: '`true`: permissions are accepted that grant nothing in the appliance, for a program of your own',
    field: '',
    type: 'bool',
    origin: 'optional',
  },
};

const options = ['server', 'profile', 'api_key_file', 'ca_file', 'client_cert', 'client_key', 'tenant'] as const;

interface KmsProvider {
  readonly provider: Provider;
  close(): Promise<void>;
}

export function kmsProvider(cli: Cli): KmsProvider {
  let configured: ObjectValue = {};
  let opened: Promise<Opened> | undefined;

  /** Connects once, and again after a failure. */
  function connected(): Promise<Opened> {
    opened ??= openAppliance(cli, configured).catch((error) => {
      opened = undefined;
      throw error;
    });
    return opened;
  }

  async function open(secrets: SecretPlace): Promise<Workplace> {
    const { desk } = await connected();
    const place: Workplace = {
      ...desk,
      // Read each time: other resources change them.
      list: (name) => kinds[name].list(place),
      asked: async () => [],
      goesOn: false,
      ...secrets,
    };
    return place;
  }

  const isLocal = async () => (await connected()).connection.way !== 'network';
  const isAnyFlag = () => configured.any_flag === true;
  const schemas = schemasOfKinds();
  const all = Object.values(kinds).map((kind) => optionsFor(kind, schemas, { open, isLocal, isAnyFlag }));
  const named = <T>(made: (options: KindOptions) => T): Record<string, T> =>
    Object.fromEntries(all.map((each) => [`kms_${each.kind.name.replaceAll('-', '_')}`, made(each)]));
  return {
    provider: {
      about: 'Accounts, API keys, keyrings, managed keys and users of a kms appliance.',
      attributes: settings,
      problems: ({ managed_by: mark }) =>
        typeof mark !== 'string' || isMark(mark) ? [] : [{ path: ['managed_by'], message: `managed_by: ${markForm}` }],
      async configure(config) {
        configured = config;
      },
      resources: { ...named(resourceOf), kms_apikey_proof: proofResource(proofAttributes(all), open) },
      dataSources: named(dataSourceOf),
    },
    async close() {
      await (await opened?.catch(() => undefined))?.connection.close();
    },
  };
}

type Appliance = Pick<KindOptions, 'open' | 'isLocal' | 'isAnyFlag'>;

function optionsFor(kind: Kind, schemas: Schemas, appliance: Appliance): KindOptions {
  const { description: about = '', properties: whole = {} } = schemas[kind.name] ?? {};
  const { kind: _kind, name: _name, ...properties } = whole;
  return {
    kind,
    about,
    fields: attributesOf(properties, schemas, () => 'either'),
    hasSecrets: secretive.has(kind.name),
    fixed: new Set(fixedFields[kind.name]),
    ...appliance,
  };
}

type Schemas = Readonly<Record<string, FieldSchema>>;

/** Schemas of the kinds, and of what they refer to. */
function schemasOfKinds(): Schemas {
  // Cast: the declarations of the API use no more of JSON Schema.
  const { definitions } = configurationSchema() as { definitions: Schemas };
  return definitions;
}

/** Attributes of an entry of `proofs` of API keys. */
function proofAttributes(all: readonly KindOptions[]): Attributes {
  return all.find(({ kind }) => kind.name === 'apikey')?.fields.proofs?.nested?.attributes ?? {};
}

interface Opened {
  readonly connection: Connection;
  readonly desk: Desk;
}

async function openAppliance(cli: Cli, config: ObjectValue): Promise<Opened> {
  const managedBy = typeof config.managed_by === 'string' ? config.managed_by : 'opentofu';
  if (!isMark(managedBy)) throw new KmsError('invalid', `managed_by of the provider: ${markForm}`);
  const connection = await connectionFor(cli, config);
  try {
    return {
      connection,
      desk: await deskAt(cli, connection, { managedBy, isUsedAllowed: config.allow_used === true }),
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** The named appliance: configurations may be others' work, and none makes a directory be opened or looked for. */
async function connectionFor(cli: Cli, config: ObjectValue): Promise<Connection> {
  const given = options.flatMap((name) => {
    const value = config[name] ?? null;
    if (hasUnknown(value)) throw new KmsError('invalid', `${name} of the provider is not known yet`);
    return typeof value === 'string' ? [[`--${name.replaceAll('_', '-')}`, value] as const] : [];
  });
  const meant = cli.withOptions(cli.io, new Map(given));
  const isNamed = namedRemote(meant) !== undefined || namedDirectory(meant) !== undefined;
  if (!isNamed && (await defaultProfile(cli.io)) === undefined) {
    throw new KmsError('usage', 'the provider is not told which appliance is meant', {
      hint: 'set its server or profile, KMS_SERVER, or KMS_DATA for the one of this machine',
    });
  }
  return openConnection(meant, true);
}
