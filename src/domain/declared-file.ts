import type { Json } from './json.ts'

/** A setting in the configuration file, with its line. */
export interface DeclaredLine {
  /** Path of the setting in the file, such as `options.retries`. */
  readonly path: string
  /** Number of the line in the file, starting at 1. */
  readonly line: number
  /** The value as written in the file; `set` for a secret. */
  readonly value: Json
}

/** The settings that the configuration file declares. */
export interface DeclaredFile {
  /** Name of the file without folders; empty if there is no file. */
  readonly file: string
  readonly items: readonly DeclaredLine[]
}
