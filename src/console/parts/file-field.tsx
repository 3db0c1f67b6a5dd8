// A field of a form by which a file of the reader's is chosen. The file stays where it is until something reads it.
import { type FieldProps, Labelled } from './form.tsx';

export interface FileFieldProps extends Pick<FieldProps, 'name' | 'label' | 'hint' | 'isRequired'> {
  /** Undefined when none is chosen any more. */
  readonly onFile: (file: File | undefined) => void;
}

export function FileField({ name, label, hint, isRequired = false, onFile }: FileFieldProps) {
  return (
    <Labelled {...{ name, label, hint, isRequired }}>
      {(attributes) => (
        <input
          {...attributes}
          type="file"
          onChange={(event: Event) => onFile((event.target as HTMLInputElement).files?.[0])}
        />
      )}
    </Labelled>
  );
}
