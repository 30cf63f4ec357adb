import type { Json } from './json.ts'

/** A value in the configuration file. */
export interface DeclaredLine {
  /** `options.retries`. */
  readonly path: string
  /** Beginning at 1. */
  readonly line: number
  /** `set` for a secret. */
  readonly value: Json
}

/** What the configuration file declares. */
export interface DeclaredFile {
  /** Its name without folders; empty if there is none. */
  readonly file: string
  readonly items: readonly DeclaredLine[]
}
