import type { Call, CallSums } from '../../api/calls.ts'
import type { Paged } from '../../api/paged.ts'
import { useFormats } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { unlistedCalls, mergedSums } from './merged-calls.ts'

/** The sums of all calls that a filter finds, including those that ended in the meantime. */
export function CallTotals({
  sums,
  page,
  live,
  isByStatus,
}: {
  readonly sums: CallSums | undefined
  readonly page: Paged<Call> | undefined
  readonly live: readonly Call[]
  /** Whether the list is filtered by how calls ended. */
  readonly isByStatus: boolean
}) {
  const { logs } = useTexts()
  const { count, money, exact } = useFormats()
  if (!sums) return <div role="status" aria-label={logs.totals} />
  const listed = page?.items ?? []
  const merged = mergedSums(sums, live, listed)
  // The sums only count answered calls, but with a filter for failed ones their number is wanted.
  const calls = isByStatus && page ? page.total + unlistedCalls(live, listed).length : merged.requests
  const tokens = merged.prompt_tokens + merged.completion_tokens
  return (
    <div role="status" aria-label={logs.totals} title={exact(merged.quota)}>
      {logs.totalsText(
        logs.callCount(calls, count(calls)),
        logs.tokenCount(count(tokens)),
        money(merged.quota),
      )}
    </div>
  )
}
