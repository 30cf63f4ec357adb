import type { Channel } from '../records/channel.ts'
import { UPSTREAM_PROTOCOLS } from '../protocols.ts'
import { LISTED_TOOLS, toolVendor } from '../tool-price.ts'
import { CONTEXT_LENGTHS } from './context-lengths.ts'
import { vendorServiceOfChannel } from './index.ts'
import { MEDIA_PRICES, mediaPrices } from './media-prices.ts'
import { RETIREMENTS } from './retired-models.ts'
import type { DataSource } from './vendor-service.ts'

/** A kind of fact about a model that the built-in data contain. */
type StatedFact = 'price' | 'media' | 'service' | 'tools' | 'context' | 'end'

/** A source of built-in data that applies to a model, and the kind of fact that it states. */
export interface AppliedPriceSource extends Pick<DataSource, 'source' | 'date'> {
  readonly of: StatedFact
}

/** A model, and the facts that determine which built-in data apply to it. */
interface Subject {
  readonly model: string
  /** The model's vendor in the price data. */
  readonly vendor: string | undefined
  /** The channels that serve the model. */
  readonly channels: readonly Channel[]
  /** The source of the model's token prices; undefined if gateway.yaml declares them. */
  readonly price: DataSource | undefined
}

/** The sources of all built-in data that apply to a model, each only once. */
export function priceSourcesOf({
  model,
  vendor = '',
  channels,
  price,
}: Subject): readonly AppliedPriceSource[] {
  const found: AppliedPriceSource[] = []
  const add = (of: StatedFact, given: DataSource | undefined): void => {
    if (
      !given ||
      found.some((one) => one.of === of && one.source === given.source && one.date === given.date)
    )
      return
    found.push({ of, source: given.source, date: given.date })
  }
  add('price', price)
  if (price && mediaPrices(vendor, model)) add('media', MEDIA_PRICES[vendor])
  for (const channel of channels) {
    add('service', vendorServiceOfChannel(channel))
    for (const protocol of channel.protocol) {
      if (!UPSTREAM_PROTOCOLS[protocol].hasTools) continue
      const seller = toolVendor(channel, protocol)
      for (const tool of LISTED_TOOLS) if (tool.vendor === seller) add('tools', tool)
    }
  }
  const lengths = CONTEXT_LENGTHS.get(vendor)
  if (lengths?.models.has(model)) add('context', lengths)
  const ends = RETIREMENTS.get(vendor)
  if (ends?.models.some(({ models }) => models.test(model))) add('end', ends)
  return found
}
