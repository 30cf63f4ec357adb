import { isMore, ZERO } from '../domain/decimal.ts'
import { imagePrice } from '../domain/image-price.ts'
import type { Price } from '../domain/price.ts'
import type { PricedTool } from '../domain/tool-use.ts'
import type { Usage } from '../domain/usage.ts'
import type { ArrivedMedia, ArrivedPicture } from '../protocols/arrived-media.ts'

/** Tokens of a second of sound where seconds have no price. */
const TOKENS_PER_SECOND = 20
const NOTHING: readonly PricedTool[] = []

/** Prices of media. */
export type MediaPrices = Pick<Price, 'second' | 'image'>

/** Usage of a response with its media. */
interface UsageWithMedia {
  readonly usage: Usage
  /** Media that have a price of their own; the usage has no tokens for them. */
  readonly media: readonly PricedTool[]
  /** Output tokens if all media were tokens. */
  readonly allTokens: number
}

/**
 * Adds the media that arrived to a counted usage: sound by its duration and pictures by their size where they
 * have a price, as tokens where they have none.
 */
export function withMedia(
  { second, image }: MediaPrices,
  usage: Usage,
  arrived: ArrivedMedia | undefined,
): UsageWithMedia {
  if (!arrived || (arrived.seconds === 0 && arrived.pictures.length === 0))
    return { usage, media: NOTHING, allTokens: usage.output }
  const { pictures } = arrived
  const seconds = Math.ceil(arrived.seconds)
  const soundTokens = Math.ceil(arrived.seconds * TOKENS_PER_SECOND)
  const pictureTokens = pictures.reduce((sum, { tokens }) => sum + tokens, 0)
  const hasSecondPrice = isMore(second, ZERO)
  const hasImagePrice = Object.values(image).some((price) => isMore(price, ZERO))
  const audioOutput = hasSecondPrice ? 0 : soundTokens
  const imageOutput = hasImagePrice ? 0 : pictureTokens
  return {
    usage: {
      ...usage,
      output: usage.output + audioOutput + imageOutput,
      audioOutput,
      imageOutput,
      seconds,
      images: pictures.length,
    },
    media: [
      ...(hasSecondPrice && seconds > 0 ? [{ kind: 'second', count: seconds, price: second } as const] : []),
      ...(hasImagePrice ? pricedPictures(pictures, image) : []),
    ],
    allTokens: usage.output + soundTokens + pictureTokens,
  }
}

/** Pictures by their sizes. */
function pricedPictures(pictures: readonly ArrivedPicture[], prices: Price['image']): PricedTool[] {
  const bySize = Map.groupBy(pictures, ({ size }) => size)
  return [...bySize].map(([size, { length: count }]) => ({
    kind: 'image',
    count,
    price: imagePrice(prices, { size }),
  }))
}
