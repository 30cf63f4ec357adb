import { withCredibleTotal } from '../protocols/reported-usage.ts'
import type { Call, Target } from './call.ts'
import { outputMaximum } from './estimate.ts'
import type { ChargeBasis } from './priced-usage.ts'

/**
 * The basis of a charge without a total of tokens that cannot be true, by the maximum that was sent to the
 * target; the call's line in the log then has that total.
 */
export function credibleBasis(
  { dialect, record }: Call,
  { request }: Target,
  basis: ChargeBasis,
): ChargeBasis {
  const { reported } = basis
  if (!reported?.byTotal) return basis
  const kept = withCredibleTotal(reported, outputMaximum(dialect.endpoint, request))
  if (kept === reported) return basis
  record.ignoredTotal = reported.byTotal.total
  return { ...basis, reported: kept }
}
