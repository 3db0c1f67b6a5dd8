// CertificateFields ask which client certificates prove an API key: a new one from this service, one that there is, or
// those of an authority with a certain name.
import type { InputOf } from '../../client/client.ts';
import { FieldProblems } from '../error-text.ts';
import { Field, Select, TextArea } from '../parts/fields.tsx';
import type { FormValues } from '../parts/form.tsx';
import { useState } from '../parts/state.ts';

const sources = [
  ['issue', 'This service issues one'],
  ['one', 'The program has one already'],
  ['authority', 'A certificate authority of ours issues them'],
] as const;
type Source = (typeof sources)[number][0];

export function CertificateFields() {
  const [source, setSource] = useState<Source>('issue');
  return (
    <>
      <Select
        name="source"
        label="Where does the certificate come from?"
        options={sources}
        value={source}
        onChange={(next) => setSource(sourceOf(next))}
      />
      {source === 'issue' && (
        <Field
          key="days"
          name="days"
          label="Days until it expires"
          type="number"
          value="90"
          hint="1 to 825. Its private key is shown once."
          isRequired
        />
      )}
      {source === 'one' && (
        <TextArea
          key="one"
          name="certificate"
          label="Certificate"
          hint="As PEM. A renewed certificate with the same key proves it too."
          isRequired
          isCode
        />
      )}
      {source === 'authority' && (
        <>
          <TextArea key="ca" name="ca" label="Certificate of the authority" hint="As PEM." isRequired isCode />
          <Field
            key="san"
            name="san"
            label="Name in the certificates"
            hint="Such as dns:payroll.example.org or spiffe://example.org/payroll."
            isRequired
          />
        </>
      )}
    </>
  );
}

/** The certificates that were chosen. Throws `FieldProblems`. */
export function certificatesIn(values: FormValues): Partial<InputOf<'addProof'>> {
  switch (sourceOf(values.text('source'))) {
    case 'one':
      return { certificate: values.exactly('certificate') };
    case 'authority':
      return { ca: values.exactly('ca'), san: values.text('san') };
    case 'issue': {
      const days = Number(values.text('days'));
      if (Number.isInteger(days) && days >= 1 && days <= 825) return { issue: true, days };
      throw new FieldProblems({ days: 'Enter 1 to 825 days.' });
    }
  }
}

function sourceOf(text: string): Source {
  return sources.find(([source]) => source === text)?.[0] ?? 'issue';
}
