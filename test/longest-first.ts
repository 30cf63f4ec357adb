import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files that take longest, the longest first; most of them wait. One that began last would run on alone: a
 * fresh clone has no times of earlier runs by which the others are ordered.
 */
const LONGEST = [
  'test/commands/data-folder.test.ts',
  'test/operations/package.test.ts',
  'test/faults/kill-mutant.test.ts',
  'src/ledger/leased-accounts.test.ts',
  'test/operations/stop.test.ts',
  'test/faults/slow-clients.test.ts',
  'test/fuzz/mutants.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/regular-expressions.test.ts',
  'test/faults/channel-health.test.ts',
  'test/operations/tutorials.test.ts',
  'test/commands/import.test.ts',
  'test/nodes/kill.test.ts',
  'test/faults/authentication-matrix.test.ts',
  'test/commands/tokens.test.ts',
]

/** Orders test files: the longest ones begin first. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((path) => moduleId.endsWith(`/${path}`))
      return at < 0 ? LONGEST.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
