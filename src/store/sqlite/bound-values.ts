import type { SQLInputValue } from 'node:sqlite'
import { refuseNul } from '../refuse-nul.ts'

/**
 * Returns values in the form that the SQLite driver accepts. Throws `invalid_request` if a text contains NUL.
 */
export function boundValues(values: readonly unknown[]): readonly SQLInputValue[] {
  refuseNul(values)
  return values as readonly SQLInputValue[]
}
