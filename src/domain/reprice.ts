import type { Usage } from '@sluice/wire/usage'
import { charge } from './charge.ts'
import type { Decimal } from './decimal.ts'
import { type ImageForm, MEASURED_UNITS, type Price, type Rate } from './price.ts'
import type { PricedTool } from './tool-use.ts'

/** The counts that a settled call was charged for. */
export interface ChargedCounts {
  readonly usage: Usage
  readonly form: ImageForm
  readonly tools: readonly PricedTool[]
}

/** The charge of a settled call at another rate, by the rules of a charge. */
export function chargeAt(rate: Rate, { usage, form, tools }: ChargedCounts): number {
  const repriced = tools.map((tool) => ({ ...tool, price: priceOfUse(rate.price, tool, form) ?? tool.price }))
  return charge(rate, usage, form, repriced)
}

/** What a price states for a use; undefined where it states nothing, so that the recorded price stays. */
function priceOfUse(price: Price, { kind }: PricedTool, form: ImageForm): Decimal | undefined {
  const unit = MEASURED_UNITS.find(({ line }) => line === kind)
  if (unit) return unit.priceOf(price, form)
  return (price.tools as Readonly<Record<string, Decimal | undefined>>)[kind]
}
