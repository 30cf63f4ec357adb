import type { SQLInputValue } from 'node:sqlite'
import { refuseNul } from '../refuse-nul.ts'

/** The values as the driver takes them; refused if one is text that holds NUL. */
export function boundValues(values: readonly unknown[]): readonly SQLInputValue[] {
  refuseNul(values)
  return values as readonly SQLInputValue[]
}
