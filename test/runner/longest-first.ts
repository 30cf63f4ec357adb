import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Test files that take longest, the longest first; most of them wait. If one of them began last, it would run
 * alone at the end. A fresh clone has no times of earlier runs to sort the files by.
 */
const LONGEST = [
  'e2e/console/frame.test.ts',
  'src/accounts/ledger/sequences.test.ts',
  'test/faults/slow-clients.test.ts',
  'test/commands/data-folder.test.ts',
  'test/operations/package.test.ts',
  'test/faults/responses-background.test.ts',
  'test/commands/import.test.ts',
  'test/operations/stop.test.ts',
  'test/nodes/kill.test.ts',
  'test/faults/channel-health.test.ts',
  'src/accounts/ledger/leased-accounts.test.ts',
  'test/faults/authentication-matrix.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/nodes/several-nodes.test.ts',
  'test/commands/tokens.test.ts',
  'test/faults/unrequested-responses.test.ts',
  'test/faults/fairness-bodies.test.ts',
  'test/nodes/redis-away.test.ts',
  'test/commands/migrate.test.ts',
  'test/faults/live-streams.test.ts',
  'test/faults/fairness-slots.test.ts',
  'test/faults/upstream-dialects.test.ts',
  'test/faults/overload.test.ts',
  'test/faults/kill.test.ts',
  'test/routing/served-tiers-cut.test.ts',
  'test/guards/request-law.test.ts',
  'test/responses/kept.test.ts',
  'test/streams/early-stream.test.ts',
  'test/guards/answer-law.test.ts',
  'test/streams/keep-alive.test.ts',
  'packages/screen/src/linear.slow.test.ts',
]

/** Sorts test files so that the longest ones begin first. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((path) => moduleId.endsWith(`/${path}`))
      return at < 0 ? LONGEST.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
