// The program's files for browsers: the console, and the API description.

type Bytes = Uint8Array<ArrayBuffer>;

export interface ConsoleFiles {
  readonly script: ConsoleFile;
  readonly style: ConsoleFile;
  readonly icon: ConsoleFile;
}

export interface ConsoleFile {
  /** Changes with the content. */
  readonly name: string;
  readonly contentType: string;
  readonly content: Bytes;
}

export interface DescriptionFiles {
  /** OpenAPI 3.1, JSON. */
  readonly document: Bytes;
  /** HTML index that links to the pages; like them, it refers to the three files below. */
  readonly page: Bytes;
  /** HTML by name. */
  readonly pages: ReadonlyMap<string, Bytes>;
  readonly style: Bytes;
  readonly script: Bytes;
  readonly icon: Bytes;
}
