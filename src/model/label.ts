// Label is a short name that an operator gives to an appliance, such as prod, so that people see which one is before
// them. It is public: it is told before anybody logs in.

export const labelColours = ['red', 'amber', 'green', 'blue', 'grey'] as const;
type LabelColour = (typeof labelColours)[number];

export interface Label {
  readonly text: string;
  /** Absent: grey. */
  readonly colour?: LabelColour;
}

export const longestLabel = 24;
/** Printable characters; spaces within, not around. */
const printable = /^[^\p{C}\p{Z}](?:[^\p{C}\p{Zl}\p{Zp}]*[^\p{C}\p{Z}])?$/u;

export function isLabel(text: string): boolean {
  return printable.test(text) && [...text].length <= longestLabel;
}
