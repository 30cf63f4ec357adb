import type { SQLInputValue } from 'node:sqlite'
import { refuseNul } from '../refuse-nul.ts'

/** Converts values for the driver. Throws `invalid_request` if one is a text that contains NUL. */
export function boundValues(values: readonly unknown[]): readonly SQLInputValue[] {
  refuseNul(values)
  return values as readonly SQLInputValue[]
}
