import { withCredibleTotal } from '@sluice/wire/reported-usage'
import type { StatedService } from '@sluice/wire/service-tier'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import { MEASURED_UNITS } from '../domain/price.ts'
import type { ChargedUsage } from './dialects/passthrough.ts'
import type { RunningCall } from './running-call.ts'
import { outputMaximum } from './estimate.ts'
import { hasImplausibleTokens, hasImplausibleUnits, isImplausible } from './plausible-usage.ts'
import { type ChargeBasis, NOTHING_DELIVERED_CHARGE, type PricedUsage, priceUsage } from './price-usage.ts'
import type { AttemptTarget } from './request-stages.ts'
import { type CallRate, withCacheLifetimeOfSentRequest } from './service-tier-rates.ts'
import { pricingInputsAt } from './tool-pricing.ts'

/** What is noted about a response when it is priced. */
interface PricingNotes {
  /** Records how the response was served, for its charge and its row in the usage log. */
  noteServed(target: AttemptTarget, stated: StatedService | undefined): CallRate
  /** Records that the reported usage is not believed, and warns the operator. */
  noteImplausible(target: AttemptTarget): void
}

/** Prices the response of a target by its `credibleBasis`. Without a target or a response, the charge is 0 (`NOTHING_DELIVERED`). */
export function priceResponse(
  call: RunningCall,
  notes: PricingNotes,
  target: AttemptTarget | undefined,
  basis: ChargeBasis | undefined,
): PricedUsage | Promise<PricedUsage> {
  if (!basis || !target) return NOTHING_DELIVERED_CHARGE
  const { rate } = notes.noteServed(target, call.statedService(basis.served))
  const inputs = { ...pricingInputsAt(call, target), rate }
  if (isImplausible(call, target, basis)) {
    notes.noteImplausible(target)
    const priced = priceUsage(inputs, { ...basis, reported: undefined, tools: [] })
    return Promise.resolve(priced).then((counted) => ({ ...counted, quota: call.hold.amount }))
  }
  if (basis.ending === 'failed')
    return Promise.resolve(priceUsage(inputs, basis)).then((priced) => ({
      ...priced,
      quota: Math.min(priced.quota, call.hold.amount),
    }))
  return priceUsage(inputs, basis)
}

/**
 * Returns the usage that was measured for a charge, or what is left of it if it is implausible. The charge is
 * then what the call held. The tokens of an estimate were counted, but its units may be the provider's own.
 */
export function plausibleMeasure(
  call: RunningCall,
  notes: PricingNotes,
  target: AttemptTarget,
  { usage, isEstimate }: Pick<ChargedUsage, 'usage' | 'isEstimate'>,
): { readonly usage: Usage; readonly held?: number } {
  const isPlausible =
    !hasImplausibleUnits(call, usage) && (isEstimate || !hasImplausibleTokens(call, target, usage))
  if (isPlausible) return { usage }
  notes.noteImplausible(target)
  const bounds = call.plan.request.measured?.bounds
  const units = Object.fromEntries(
    MEASURED_UNITS.map(({ count }) => [count, Math.min(usage[count], bounds?.[count] ?? usage[count])]),
  )
  return { usage: { ...NO_USAGE, ...units }, held: call.hold.amount }
}

/**
 * Removes an implausible token total from the basis of a charge: one above the maximum of output tokens that
 * was sent to the target. The ignored total is written to the call's log line.
 */
export function credibleBasis(
  { incoming, plan }: RunningCall,
  target: AttemptTarget,
  basis: ChargeBasis,
): ChargeBasis {
  const reported = basis.reported && withCacheLifetimeOfSentRequest(basis.reported, target)
  if (!reported?.byTotal) return reported === basis.reported ? basis : { ...basis, reported }
  const credible = withCredibleTotal(reported, outputMaximum(plan.dialect.endpoint, target.plan))
  if (credible === reported) return reported === basis.reported ? basis : { ...basis, reported }
  incoming.record.ignoredTotal = reported.byTotal.total
  return { ...basis, reported: credible }
}
