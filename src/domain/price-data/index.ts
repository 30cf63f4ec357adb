import { AWS_HOST } from '@sluice/wire/aws-domains'
import type { Channel } from '../records/channel.ts'
import { ANTHROPIC } from './anthropic.ts'
import { BEDROCK } from './bedrock.ts'
import { GOOGLE } from './google.ts'
import { OPENAI } from './openai.ts'
import type { VendorServicePrices } from './vendor-service.ts'

export type { VendorServicePrices } from './vendor-service.ts'

const BY_PROVIDER: Readonly<Record<Channel['provider'], VendorServicePrices | undefined>> = {
  generic: undefined,
  azure: OPENAI,
  bedrock: BEDROCK,
  vertex: GOOGLE,
}

const BY_HOST: readonly (readonly [RegExp, VendorServicePrices])[] = [
  [/(?:^|\.)(?:openai|azure)\.com$/, OPENAI],
  [/(?:^|\.)anthropic\.com$/, ANTHROPIC],
  [/(?:^|\.)googleapis\.com$/, GOOGLE],
  [AWS_HOST, BEDROCK],
]

const known = new WeakMap<object, VendorServicePrices | 'none'>()

/**
 * The vendor whose prices of service tiers and regions apply on a channel, by the channel's provider or host;
 * undefined if none is known.
 */
export function vendorServiceOfChannel(
  channel: Pick<Channel, 'provider' | 'base_url'>,
): VendorServicePrices | undefined {
  let vendor = known.get(channel)
  if (vendor === undefined) {
    const host = URL.parse(channel.base_url)?.hostname ?? ''
    vendor = BY_PROVIDER[channel.provider] ?? BY_HOST.find(([pattern]) => pattern.test(host))?.[1] ?? 'none'
    known.set(channel, vendor)
  }
  return vendor === 'none' ? undefined : vendor
}

/**
 * The built-in prices of service tiers and regions as text. The text is hashed into the version of the
 * prices.
 */
export const SERVICE_PRICES_TEXT = JSON.stringify(
  [OPENAI, ANTHROPIC, GOOGLE, BEDROCK],
  (_, value: unknown) => (value instanceof RegExp ? value.source : value),
)
