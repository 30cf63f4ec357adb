import type { ConnectionOptions } from 'node:tls'

/** Functions that the program passes in, because it reads its own database and configuration with them. */
export interface SourceReaders {
  readonly postgres: PostgresConnections
  readonly configuration: ConfigurationReader
}

/** How connections to PostgreSQL are opened, with the TLS and the timeouts that their URLs state. */
export interface PostgresConnections {
  /** Whether a text is the URL of a PostgreSQL database. */
  isUrl(text: string): boolean
  /**
   * Calls `connect` without TLS, or with it, as the URL allows, until it resolves. `start` sets the timeouts,
   * `statementMs` if the URL states none; undefined if there is nothing to set. Rejects with a sentence for the
   * operator.
   */
  open<Connected>(
    url: string,
    statementMs: number,
    connect: (connectionString: string, ssl: ConnectionOptions | false) => Promise<Connected>,
  ): Promise<{ readonly connected: Connected; readonly start: string | undefined }>
  /** The error of a connection as a sentence for the operator; other errors unchanged. */
  explain(error: unknown): unknown
}

/** How configuration files are read. */
export interface ConfigurationReader {
  /** Reads a file. Throws a sentence that says why it is not a text. */
  text(path: string): string
  /** Parses YAML of an untrusted author, in which levels and aliases must be limited. */
  parse(text: string): ParsedConfiguration
}

/** A configuration as a tree, with the first error in it. */
export interface ParsedConfiguration {
  readonly tree: ConfigurationNode
  readonly error: { readonly line: number; readonly message: string } | undefined
}

/** A node of a configuration: nothing, a list, a scalar with its text in the file, or a mapping. */
export type ConfigurationNode =
  | undefined
  | readonly ConfigurationNode[]
  | { readonly value: string | number | boolean; readonly source: string }
  | { readonly names: readonly string[]; readonly nodes: readonly ConfigurationNode[] }
