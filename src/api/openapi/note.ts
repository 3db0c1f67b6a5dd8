// What the description says of an endpoint beyond its declaration: prose, examples that the fields alone do not give, and the errors
// that are its own.

export interface Note {
  /** Paragraphs. */
  readonly description: readonly string[];
  /** What each path parameter is here, where that is not what it is everywhere. */
  readonly params?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  /** A request body that works, where the examples of all fields together do not. */
  readonly body?: unknown;
  /** An answer, where the examples of all fields together say something else. */
  readonly answer?: unknown;
  /** Messages of its own errors, by status. */
  readonly problems?: Readonly<Record<number, readonly string[]>>;
  /** Whole bodies of errors, where they are no messages. */
  readonly errorExamples?: Readonly<Record<number, unknown>>;
  /** Works while the appliance is sealed. */
  readonly whileSealed?: true;
  /** Belongs to no tenant: every host answers it. */
  readonly tenantless?: true;
}
