// The files of the program that browsers are given: the console, and the description of the API.

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
  /** HTML, which leads to the pages, and like them refers to the three below. */
  readonly page: Bytes;
  /** HTML by name. */
  readonly pages: ReadonlyMap<string, Bytes>;
  readonly style: Bytes;
  readonly script: Bytes;
  readonly icon: Bytes;
}
