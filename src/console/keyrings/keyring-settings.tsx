// KeyringSettings is a keyring's configuration: after how many encrypts and at what age of its key it rotates by itself,
// and the properties of the ring and of its keys to come.
import type { KeyRingConfig } from '../../api/keyrings.ts';
import type { Client } from '../../client/client.ts';
import { ageText, parseAge } from '../../model/ages.ts';
import { FieldProblems } from '../error-text.ts';
import { Button, CancelButton } from '../parts/button.tsx';
import { Check, Field, JsonField } from '../parts/fields.tsx';
import { Form, objectIn } from '../parts/form.tsx';
import { Loaded, toast } from '../parts/messages.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { Facts, Json } from '../parts/values.tsx';

interface KeyringSettingsProps {
  readonly api: Client;
  readonly name: string;
}

export function KeyringSettings({ api, name }: KeyringSettingsProps) {
  const answer = useAnswer((signal) => api.getConfig({ ringname: name }, { signal }));
  const [isEditing, setEditing] = useState(false);
  return (
    <section data-panel>
      <div data-bar>
        <h2>Settings</h2>
        {!isEditing && answer.is === 'ready' && (
          <Button kind="quiet" needs={`keyring.${name}.config`} onClick={() => setEditing(true)}>
            Change settings
          </Button>
        )}
      </div>
      <Loaded
        of={answer}
        show={({ config }) =>
          isEditing ? (
            <Editor
              key="edit"
              config={config}
              onClose={() => setEditing(false)}
              onSave={async (change) => {
                answer.set(await api.putConfig({ ringname: name, config: change }));
                setEditing(false);
                toast('The settings are saved.');
              }}
            />
          ) : (
            <Shown key="show" config={config} />
          )
        }
      />
    </section>
  );
}

function Shown({ config }: { readonly config: KeyRingConfig }) {
  return (
    <Facts
      facts={[
        ['Encrypts per key', config.algos.aes256.maxEncryptCount.toLocaleString('en')],
        ['A key serves for', config.rotateAfter === null ? 'any time' : ageText(config.rotateAfter * 1000)],
        ['Files open without the service', config.offlineDecrypt ? 'yes, with the private key alone' : 'no'],
        ['Properties', <Json value={config.props} />],
        ['Properties of keys to come', <Json value={config.key.props} />],
      ]}
    />
  );
}

/** Milliseconds. */
const leastAge = 3_600_000;

interface EditorProps {
  readonly config: KeyRingConfig;
  readonly onSave: (config: KeyRingConfig) => Promise<void>;
  readonly onClose: () => void;
}

function Editor({ config, onSave, onClose }: EditorProps) {
  return (
    <Form
      action="Save settings"
      busy="Saving…"
      onSubmit={async (values) => {
        const text = values.text('maxEncryptCount');
        const maxEncryptCount = Number(text);
        if (!/^[0-9]+$/.test(text) || maxEncryptCount < 1 || !Number.isSafeInteger(maxEncryptCount)) {
          throw new FieldProblems({ maxEncryptCount: 'This has to be a whole number of at least 1.' });
        }
        const age = values.text('rotateAfter').trim();
        const milliseconds = age === '' ? undefined : parseAge(age);
        if (age !== '' && (milliseconds === undefined || milliseconds < leastAge)) {
          throw new FieldProblems({ rotateAfter: 'This has to be an age of at least 1h, such as 12h or 90d.' });
        }
        await onSave({
          props: objectIn(values, 'props'),
          key: { props: objectIn(values, 'keyProps') },
          algos: { aes256: { maxEncryptCount } },
          rotateAfter: milliseconds === undefined ? null : milliseconds / 1000,
          offlineDecrypt: values.isOn('offlineDecrypt'),
        });
      }}
      beside={<CancelButton onClick={onClose} />}
    >
      <Field
        name="maxEncryptCount"
        label="Encrypts per key"
        hint="The encrypt after that rotates the keyring first."
        value={String(config.algos.aes256.maxEncryptCount)}
        isRequired
      />
      <Field
        name="rotateAfter"
        label="Age at which a key is replaced"
        hint="Such as 12h or 90d; nothing: at no age. The first encrypt after that rotates the keyring first."
        value={config.rotateAfter === null ? '' : ageText(config.rotateAfter * 1000)}
      />
      <Check
        name="offlineDecrypt"
        label="Files that are encrypted without the private key also open without the service"
        hint="Then whoever has the private key opens them alone, with no permission and no record. It holds for files to come."
        isOn={config.offlineDecrypt}
      />
      <JsonField name="props" label="Properties" value={config.props} />
      <JsonField
        name="keyProps"
        label="Properties of keys to come"
        hint="A JSON object. Keys that are there already keep theirs."
        value={config.key.props}
      />
    </Form>
  );
}
