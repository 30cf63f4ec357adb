import { withCredibleTotal } from '../protocols/reported-usage.ts'
import type { Call, Target } from './call.ts'
import { outputMaximum } from './estimate.ts'
import { type ChargeBasis, NOTHING, type PricedUsage, priceUsage } from './priced-usage.ts'
import { pricingAt } from './target-tools.ts'

/** The charge of a response of the target; nothing without one. */
export function priceResponse(
  call: Call,
  target: Target | undefined,
  basis: ChargeBasis | undefined,
): PricedUsage | Promise<PricedUsage> {
  return basis && target ? priceUsage(pricingAt(call, target), credibleBasis(call, target, basis)) : NOTHING
}

/**
 * The basis of a charge without a total of tokens that cannot be true, by the maximum that was sent to the
 * target; the call's line in the log then has that total.
 */
function credibleBasis({ dialect, record }: Call, { request }: Target, basis: ChargeBasis): ChargeBasis {
  const { reported } = basis
  if (!reported?.byTotal) return basis
  const kept = withCredibleTotal(reported, outputMaximum(dialect.endpoint, request))
  if (kept === reported) return basis
  record.ignoredTotal = reported.byTotal.total
  return { ...basis, reported: kept }
}
