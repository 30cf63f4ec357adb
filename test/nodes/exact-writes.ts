import { expect } from 'vitest'
import type { TokenChange } from './token-history.ts'
import type { WritesReport } from './writes-and-charges.ts'

/** Whether a change moved quota that nobody used: what only a management write may do. */
const isByHand = ({ moved, used }: TokenChange): boolean => moved + used !== 0

/** What is promised of writes that run beside charges. */
export function expectExactWrites(report: WritesReport): void {
  const { broken, set, ofSet, ofSwitched, ofDoomed, afterDeletion, left } = report
  expect(broken).toEqual([])
  // What was set was set, and nothing else moved it but charges; so that what is left is the last number less
  // what came after.
  expect(ofSet.filter(isByHand).map(({ remain }) => remain)).toEqual(set)
  const last = ofSet.findLastIndex(isByHand)
  const chargedAfter = ofSet.slice(last + 1).reduce((sum, { used }) => sum + used, 0)
  expect(left).toBe((set.at(-1) ?? 0) - chargedAfter)
  // Off and on again is not money.
  expect(ofSwitched.filter(isByHand)).toEqual([])
  for (const changes of ofDoomed) {
    expect(changes.filter(isByHand)).toEqual([])
    // No charge brings a token back.
    const deletedAt = changes.findIndex(({ deleted }) => deleted)
    if (deletedAt >= 0) expect(changes.slice(deletedAt).every(({ deleted }) => deleted)).toBe(true)
  }
  expect(afterDeletion.length).toBeGreaterThan(0)
  for (const status of afterDeletion) expect(status).toBe(401)
}
