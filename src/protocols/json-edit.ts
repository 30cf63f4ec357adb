import type { ScannedObject } from './json-scan.ts'

/** Changes to top-level members; `replace` holds JSON text and adds what is absent. */
export interface Edits {
  readonly remove: readonly string[]
  readonly replace: ReadonlyMap<string, string>
}

/** The bytes with these changes and no others; the same Buffer where nothing changes. */
export function edit(_bytes: Buffer, _scan: ScannedObject, _changes: Edits): Buffer {
  throw new Error('not yet')
}
