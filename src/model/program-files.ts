// The program's files for people: the console, the API description and the guides.

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

/** A document for people who run or use the program. */
export interface Guide {
  readonly name: string;
  readonly title: string;
  /** Markdown. */
  readonly text: string;
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
