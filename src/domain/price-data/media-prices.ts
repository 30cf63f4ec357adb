import type { Decimal } from '../decimal.ts'
import type { ImagePrices, Price } from '../price.ts'
import type { DataSource } from './vendor-service.ts'

/** Prices of a model that @pydantic/genai-prices does not contain. */
export type NonTokenPrices = Partial<Pick<Price, 'characters' | 'second' | 'image'>>

/** A vendor's prices for images, speech and audio, by model name without a date. */
interface VendorPrices extends DataSource {
  readonly models: Readonly<Record<string, NonTokenPrices>>
}

const usd = (millionths: number): Decimal => ({ digits: BigInt(millionths), scale: 6 })

/** The price of a model that speaks text, in USD per million characters. */
const spoken = (dollars: number): NonTokenPrices => ({ characters: { digits: BigInt(dollars), scale: 0 } })

/** The price of a model for audio, in thousandths of a US dollar per minute. */
const perMinute = (thousandths: number): NonTokenPrices => ({
  second: { digits: BigInt((thousandths * 100_000) / 60), scale: 8 },
})

/**
 * The price of a model for images, in thousandths of a US dollar per image, by size and quality. For `auto`,
 * the price of the most expensive result applies.
 */
const images = (thousandths: Readonly<Record<string, number>>): NonTokenPrices => ({
  image: Object.fromEntries(
    Object.entries(thousandths).map(([form, price]) => [form, usd(price * 1000)]),
  ) satisfies ImagePrices,
})

/**
 * The price of a model for images by quality: thousandths of a US dollar for a square image and for any other
 * shape.
 */
const byQuality = (prices: Readonly<Record<string, readonly [number, number]>>): NonTokenPrices =>
  images(
    Object.fromEntries(
      Object.entries(prices).flatMap(([quality, [square, oblong]]) => [
        [`1024x1024/${quality}`, square],
        [`1024x1536/${quality}`, oblong],
        [`1536x1024/${quality}`, oblong],
      ]),
    ),
  )

const OPENAI: VendorPrices = {
  source: 'developers.openai.com/api/docs/models, and the pages in docs/configuration.md',
  date: '2026-11-23',
  models: {
    'tts-1': spoken(15),
    'tts-1-hd': spoken(30),
    // Responses with plain audio report no tokens, so this is the vendor's own estimate per minute.
    'gpt-4o-mini-tts': perMinute(15),
    'gpt-4o-transcribe': perMinute(6),
    'gpt-4o-transcribe-diarize': perMinute(6),
    'gpt-4o-mini-transcribe': perMinute(3),
    'dall-e-2': images({ '256x256': 16, '512x512': 18, '1024x1024': 20 }),
    'dall-e-3': images({
      default: 40,
      '1024x1024': 40,
      '1024x1792': 80,
      '1792x1024': 80,
      '1024x1024/hd': 80,
      '1024x1792/hd': 120,
      '1792x1024/hd': 120,
    }),
    'gpt-image-1': byQuality({ low: [11, 16], medium: [42, 63], high: [167, 250] }),
    'gpt-image-1-mini': byQuality({ low: [5, 6], medium: [11, 15], high: [36, 52] }),
    'gpt-image-1.5': byQuality({ low: [9, 13], medium: [34, 50], high: [133, 200] }),
  },
}

const GOOGLE: VendorPrices = {
  source: 'ai.google.dev/gemini-api/docs/pricing',
  date: '2026-11-23',
  models: {
    'imagen-4.0-generate-001': images({ default: 40 }),
    'imagen-4.0-ultra-generate-001': images({ default: 60 }),
    'imagen-4.0-fast-generate-001': images({ default: 20 }),
  },
}

const XAI: VendorPrices = {
  source: 'the copies in docs/configuration.md',
  date: '2026-11-23',
  models: {
    'grok-2-image': images({ default: 70 }),
    'grok-imagine-image': images({ default: 20 }),
  },
}

/**
 * Published prices that are missing from the price data, by vendor; compared in November 2026 with the pages
 * that `docs/configuration.md: Prices` names.
 */
export const MEDIA_PRICES: Readonly<Record<string, VendorPrices>> = {
  openai: OPENAI,
  google: GOOGLE,
  'x-ai': XAI,
}

/** Matches a date or a month and day at the end of a model name: `-2025-12-16`, `-1106`. */
const DATE = /-(?:\d{4}-\d{2}-\d{2}|\d{4})$/

/** A vendor's prices for images, speech and audio for a model; undefined if it has none. */
export function mediaPrices(vendor: string, name: string): NonTokenPrices | undefined {
  const prices = MEDIA_PRICES[vendor]?.models
  if (!prices) return undefined
  const found = [name, name.replace(DATE, '')].find((spelling) => Object.hasOwn(prices, spelling))
  return found === undefined ? undefined : prices[found]
}

/** Names of a vendor's models whose price is only in this list. */
export function mediaModels(vendor: string): readonly string[] {
  return Object.keys(MEDIA_PRICES[vendor]?.models ?? {})
}

/** The prices in this file as text, which is hashed into the version of the built-in prices. */
export const MEDIA_PRICES_TEXT = JSON.stringify(MEDIA_PRICES, (_, value: unknown) =>
  typeof value === 'bigint' ? String(value) : value,
)
