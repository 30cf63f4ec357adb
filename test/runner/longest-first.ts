import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Test files that take longest, the longest first; most of them wait. If one of them began last, it would run
 * alone at the end. A fresh clone has no times of earlier runs to sort the files by.
 */
const LONGEST = [
  'e2e/console/frame.test.ts',
  'test/operations/alerts.test.ts',
  'test/nodes/tampered-redis.test.ts',
  'test/faults/content-log.test.ts',
  'test/nodes/secret-change.test.ts',
  'test/faults/store-reads.test.ts',
  'src/accounts/ledger/sequences.test.ts',
  'test/operations/stop.test.ts',
  'src/accounts/ledger/changed-accounts.test.ts',
  'test/operations/reload.test.ts',
  'test/batches/file-store.test.ts',
  'test/batches/provider-batches.test.ts',
  'e2e/console/first-run.test.ts',
  'test/nodes/content-log.test.ts',
  'test/nodes/own-limits.test.ts',
  'test/faults/guard-services.test.ts',
  'test/nodes/hostile-messages.test.ts',
  'src/store/kept-store.test.ts',
  'test/nodes/locked-rows.test.ts',
  'test/nodes/idempotency.test.ts',
  'test/management/import.test.ts',
  'test/nodes/background-loans.test.ts',
  'e2e/console/sign-in.test.ts',
  'test/commands/import.test.ts',
  'test/nodes/responses.test.ts',
  'test/nodes/batches.test.ts',
  'test/faults/content-bucket.test.ts',
  'test/nodes/provider-limits.test.ts',
  'e2e/console/keys.test.ts',
  'test/management/content-search.test.ts',
  'test/commands/migrate.test.ts',
  'test/faults/provider-batches-changed.test.ts',
  'test/batches/hostile-results.test.ts',
  'src/accounts/ledger/waiting-law.test.ts',
  'test/faults/authentication-matrix.test.ts',
  'test/faults/guard-service-streams.test.ts',
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
