// KeyringSettings edits a keyring's configuration: the number of encrypts and the key age at which it rotates
// automatically, and the properties of the ring and of its future keys.
import type { KeyRingConfig } from '../../api/keyrings.ts';
import type { Client } from '../../client/client.ts';
import { Check, Field, JsonField } from '../parts/fields.tsx';
import { objectIn } from '../parts/object-in.ts';
import { Facts, Json } from '../parts/values.tsx';
import { AgeField, RingSettings, ringKinds, servesFor } from './ring-page.tsx';

interface KeyringSettingsProps {
  readonly api: Client;
  readonly name: string;
  readonly config: KeyRingConfig;
  readonly onSaved: (config: KeyRingConfig) => void;
}

export function KeyringSettings({ api, name, config, onSaved }: KeyringSettingsProps) {
  return (
    <RingSettings
      kind={ringKinds.keyring}
      name={name}
      onSave={async (read) => {
        const change = {
          algos: { aes256: { maxEncryptCount: read.wholeNumber('maxEncryptCount', 1) } },
          rotateAfter: read.rotateAfter(),
          offlineDecrypt: read.values.isOn('offlineDecrypt'),
        };
        read.check();
        const props = objectIn(read.values, 'props');
        const key = { props: objectIn(read.values, 'keyProps') };
        onSaved((await api.putConfig({ ringname: name, config: { ...change, props, key } })).config);
      }}
      fields={
        <>
          <Field
            name="maxEncryptCount"
            label="Encrypts per key"
            hint="After this many, the keyring rotates by itself."
            value={String(config.algos.aes256.maxEncryptCount)}
            isRequired
          />
          <AgeField
            label="Age at which a key is replaced"
            hint="At that age, the next encrypt rotates the keyring."
            value={config.rotateAfter}
          />
          <Check
            name="offlineDecrypt"
            label="Files encrypted without the private key also open without the service"
            hint="The private key alone then opens them, without permission and without a record. Applies to future files."
            isOn={config.offlineDecrypt}
          />
          <JsonField name="props" label="Properties" value={config.props} />
          <JsonField
            name="keyProps"
            label="Properties of future keys"
            hint="A JSON object. Existing keys keep theirs."
            value={config.key.props}
          />
        </>
      }
      shown={
        <Facts
          key="show"
          facts={[
            ['Encrypts per key', config.algos.aes256.maxEncryptCount.toLocaleString('en')],
            ['Age at which a key is replaced', servesFor(config.rotateAfter)],
            ['Offline decryption', config.offlineDecrypt ? 'on: the private key alone opens files' : 'off'],
            ['Properties', <Json value={config.props} />],
            ['Properties of future keys', <Json value={config.key.props} />],
          ]}
        />
      }
    />
  );
}
