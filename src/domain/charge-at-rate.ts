import type { Usage } from '@sluice/wire/usage'
import { chargeOfCall } from './charge.ts'
import type { Decimal } from './decimal.ts'
import { type ImageForm, MEASURED_UNITS, type Price, type ChargeRate } from './price.ts'
import type { PricedTool } from './tool-use.ts'

/** The usage and the priced tools for which a settled call was charged. */
export interface ChargedCounts {
  readonly usage: Usage
  readonly form: ImageForm
  readonly tools: readonly PricedTool[]
}

/** What a settled call would cost at another rate, in quota units. */
export function chargeAtRate(rate: ChargeRate, { usage, form, tools }: ChargedCounts): number {
  const repriced = tools.map((tool) => ({ ...tool, price: priceOfUse(rate.price, tool, form) ?? tool.price }))
  return chargeOfCall(rate, usage, form, repriced)
}

/**
 * The price of one use of a tool or medium; undefined if the model's price does not state it, so that the
 * recorded price stays.
 */
function priceOfUse(price: Price, { kind }: PricedTool, form: ImageForm): Decimal | undefined {
  const unit = MEASURED_UNITS.find(({ line }) => line === kind)
  if (unit) return unit.priceOf(price, form)
  return (price.tools as Readonly<Record<string, Decimal | undefined>>)[kind]
}
