import type { Call, CallSums } from '../../api/calls.ts'
import type { PageOfItems } from '../../api/page-of-items.ts'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { callCountText } from './call-count-text.ts'
import { unlistedCalls, addLiveCallsToSums } from './merge-live-calls.ts'

/** The sums of all calls that a filter selects, including calls that ended since the list was loaded. */
export function CallTotals({
  sums,
  page,
  live,
  refused,
  isByStatus,
}: {
  readonly sums: CallSums | undefined
  readonly page: PageOfItems<Call> | undefined
  readonly live: readonly Call[]
  /** The number of refused calls that the list has besides. */
  readonly refused: number
  /** Whether the list is filtered by the way in which calls ended. */
  readonly isByStatus: boolean
}) {
  const { logs } = useTexts()
  const { count, money, exact } = useFormatters()
  if (!sums) return <div role="status" aria-label={logs.totals} />
  const listed = page?.items ?? []
  const merged = addLiveCallsToSums(sums, live, listed)
  // The sums count only answered calls; with a filter for failed calls, the number of listed calls is shown
  // instead.
  const calls = isByStatus && page ? page.total + unlistedCalls(live, listed).length : merged.requests
  const hasFailed = !isByStatus && [...live, ...listed].some(({ reason }) => reason === 'failed')
  const tokens = merged.prompt_tokens + merged.completion_tokens
  return (
    <div role="status" aria-label={logs.totals} title={exact(merged.quota)}>
      {logs.totalsText(
        callCountText(logs, { calls, refused, hasFailed }, count),
        logs.tokenCount(count(tokens)),
        money(merged.quota),
      )}
    </div>
  )
}
