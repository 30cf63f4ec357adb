import { charge } from '../domain/charge.ts'
import { imageRate } from '../domain/image-price.ts'
import type { Rate } from '../domain/price.ts'
import { NO_USAGE, type Usage } from '../domain/usage.ts'
import type { ArrivedMedia } from '../protocols/arrived-media.ts'

/** Tokens of a second of sound where seconds have no price. */
const TOKENS_PER_SECOND = 20

/** Usage of a stream with its media. */
interface UsageWithMedia {
  readonly usage: Usage
  /** Quota units of media that have a price of their own; the usage has no tokens for them. */
  readonly mediaQuota: number
  /** Output tokens if all media were tokens. */
  readonly allTokens: number
}

/**
 * Adds the media that arrived to a counted usage: sound by its duration and pictures by their size where they
 * have a price, as tokens where they have none.
 */
export function withMedia(rate: Rate, usage: Usage, arrived: ArrivedMedia | undefined): UsageWithMedia {
  if (!arrived || (arrived.seconds === 0 && arrived.pictures.length === 0))
    return { usage, mediaQuota: 0, allTokens: usage.output }
  const { pictures } = arrived
  const seconds = Math.ceil(arrived.seconds)
  const soundTokens = Math.ceil(arrived.seconds * TOKENS_PER_SECOND)
  const pictureTokens = pictures.reduce((sum, { tokens }) => sum + tokens, 0)
  const audioOutput = rate.second > 0n ? 0 : soundTokens
  const imageOutput = rate.image.dearest > 0n ? 0 : pictureTokens
  // The price of a call is in the charge of the tokens.
  const priced = { ...rate, request: 0n, free: true }
  const ofSound = rate.second > 0n ? charge(priced, { ...NO_USAGE, seconds }) : 0
  const ofPictures = pictures
    .filter(({ size }) => imageRate(rate.image, { size }) > 0n)
    .reduce((sum, { size }) => sum + charge(priced, { ...NO_USAGE, images: 1 }, { size }), 0)
  return {
    usage: {
      ...usage,
      output: usage.output + audioOutput + imageOutput,
      audioOutput,
      imageOutput,
      seconds,
      images: pictures.length,
    },
    mediaQuota: ofSound + ofPictures,
    allTokens: usage.output + soundTokens + pictureTokens,
  }
}
