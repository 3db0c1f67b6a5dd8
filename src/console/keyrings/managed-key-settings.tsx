// The settings of a managed key that can be changed.
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { Client } from '../../client/client.ts';
import { FieldProblems } from '../error-text.ts';
import { Confirm } from '../parts/dialog.tsx';
import { Check, Field, JsonField } from '../parts/fields.tsx';
import { objectIn } from '../parts/object-in.ts';
import { useState } from '../parts/state.ts';
import { Facts, Json } from '../parts/values.tsx';
import { type Dependents, VersionUse } from './managed-key-use.tsx';
import { versionWords } from './managed-key-words.ts';
import { AgeField, type FieldReader, RingSettings, ringKinds, servesFor } from './ring-page.tsx';

interface SettingsProps {
  readonly api: Client;
  readonly ring: ManagedKey;
  readonly dependents: Dependents;
  readonly onChanged: (key: ManagedKey) => void;
}

/** A new minimum version, about which the user is being asked. */
interface Asked {
  readonly least: number;
  readonly answer: (isConfirmed: boolean) => void;
}

export function ManagedKeySettings({ api, ring, dependents, onChanged }: SettingsProps) {
  const [asked, setAsked] = useState<Asked | undefined>(undefined);
  const words = versionWords(ring.uses);
  const { minDecryptVersion, minEncryptVersion, latestVersion, exportable, deletionAllowed, rotateAfter, tags } = ring;
  const isConfirmed = async (least: number): Promise<boolean> => {
    const answer = await new Promise<boolean>((resolve) => setAsked({ least, answer: resolve }));
    setAsked(undefined);
    return answer;
  };
  const save = async (read: FieldReader): Promise<void> => {
    const input = inputIn(read, ring);
    const { minDecryptVersion: least = 0 } = input;
    if (least > minDecryptVersion && !(await isConfirmed(least))) {
      throw new FieldProblems({}, 'Nothing has been saved.');
    }
    onChanged((await api.configureManagedKey(input)).key);
  };
  const settings = (
    <RingSettings
      kind={ringKinds.managedKey}
      name={ring.name}
      onSave={save}
      fields={
        <>
          {words && (
            <Field
              key="reads"
              name="minDecryptVersion"
              label={`${words.reads} from version`}
              hint={`What older versions made is refused until you lower this again; at most ${latestVersion}.`}
              value={String(minDecryptVersion)}
              isRequired
            />
          )}
          {words && (
            <Field
              key="makes"
              name="minEncryptVersion"
              label={`${words.makes} from version`}
              hint="0: with any version that is not refused."
              value={String(minEncryptVersion)}
              isRequired
            />
          )}
          <AgeField
            label="Age at which a version is replaced"
            hint="The next use after that makes a new version first."
            value={rotateAfter}
          />
          {exportable && (
            <Check
              key="exportable"
              name="exportable"
              label="May be exported"
              hint="Once you take this away, nobody can give it back."
              isOn
            />
          )}
          <Check
            name="deletionAllowed"
            label="May be deleted"
            hint="Software that has the flag for it can then delete it too."
            isOn={deletionAllowed}
          />
          <JsonField
            name="tags"
            label="Tags"
            hint={'A JSON object of texts, such as {"team": "payments"}; at most 50.'}
            value={tags}
          />
        </>
      }
      shown={
        <Facts
          key="show"
          facts={[
            words && [`${words.reads} from version`, minDecryptVersion],
            words && [`${words.makes} from version`, minEncryptVersion === 0 ? 'any' : minEncryptVersion],
            ['Age at which a version is replaced', servesFor(rotateAfter)],
            ['May be exported', exportable ? 'yes' : 'no'],
            ['May be deleted', deletionAllowed ? 'yes' : 'no'],
            ['Tags', <Json value={tags} />],
          ]}
        />
      }
    />
  );
  return (
    <>
      {settings}
      {asked && (
        <Confirm
          key="ask"
          title={`Refuse versions before ${asked.least}?`}
          action="Refuse them"
          kind="danger"
          onClose={() => asked.answer(false)}
          onConfirm={async () => asked.answer(true)}
        >
          <p>Programs cannot read or verify anything that these versions made, until you lower this again.</p>
          <VersionUse of={dependents} first={minDecryptVersion} end={asked.least} />
        </Confirm>
      )}
    </>
  );
}

function inputIn(read: FieldReader, { name, latestVersion, uses, exportable }: ManagedKey) {
  const tags = objectIn(read.values, 'tags');
  if (Object.values(tags).some((value) => typeof value !== 'string')) read.note('tags', 'Enter a text for every tag.');
  const most = Math.max(1, latestVersion);
  const versions = versionWords(uses) && {
    minDecryptVersion: read.wholeNumber('minDecryptVersion', 1, most),
    minEncryptVersion: read.wholeNumber('minEncryptVersion', 0, latestVersion),
  };
  if (versions && versions.minEncryptVersion !== 0 && versions.minEncryptVersion < versions.minDecryptVersion) {
    read.note('minEncryptVersion', 'Enter 0, or at least the version above.');
  }
  const config = {
    key: name,
    ...versions,
    deletionAllowed: read.values.isOn('deletionAllowed'),
    ...(exportable && !read.values.isOn('exportable') && { exportable: false }),
    rotateAfter: read.rotateAfter(),
    tags,
  };
  read.check();
  return config;
}
