import { expect } from 'vitest'
import type { TokenChange } from './token-history.ts'
import type { WritesReport } from './writes-and-charges.ts'

/** Whether a change moved quota without use, which only a management write may do. */
const isByHand = ({ moved, used }: TokenChange): boolean => moved + used !== 0

/** Asserts the promises on writes beside charges. */
export function expectExactWrites(report: WritesReport): void {
  const { broken, set, ofSet, ofSwitched, ofDoomed, afterDeletion, left } = report
  expect(broken).toEqual([])
  // The balance was set as requested, and otherwise changed by charges only: it is the last setting minus
  // later charges.
  expect(ofSet.filter(isByHand).map(({ remain }) => remain)).toEqual(set)
  const last = ofSet.findLastIndex(isByHand)
  const chargedAfter = ofSet.slice(last + 1).reduce((sum, { used }) => sum + used, 0)
  expect(left).toBe((set.at(-1) ?? 0) - chargedAfter)
  // Disabling and enabling does not change balances.
  expect(ofSwitched.filter(isByHand)).toEqual([])
  for (const changes of ofDoomed) {
    expect(changes.filter(isByHand)).toEqual([])
    // No charge restores a deleted token.
    const deletedAt = changes.findIndex(({ deleted }) => deleted)
    if (deletedAt >= 0) expect(changes.slice(deletedAt).every(({ deleted }) => deleted)).toBe(true)
  }
  expect(afterDeletion.length).toBeGreaterThan(0)
  for (const status of afterDeletion) expect(status).toBe(401)
}
