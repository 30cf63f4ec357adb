import type { ImageForm } from './image-price.ts'
import type { Usage } from './usage.ts'

/** One request of a call to an upstream. */
export interface AttemptEntry {
  readonly channel: string
  /** Position of the key among those of the channel, from 0. */
  readonly key_index: number
  /** Milliseconds from the start of the call. */
  readonly started_ms: number
  readonly duration_ms: number
  /** Status of the upstream's response; null if none came. */
  readonly status: number | null
  /** Cause of its failure in a few fixed words; null if it was answered. */
  readonly cause: string | null
}

/** Facts that the charge of a call depends on, beside the counts of its row. */
export interface ChargeDetail {
  /** Parts of the tokens read from a cache that stand for audio and for images. */
  readonly audio_cached?: number
  readonly image_cached?: number
  /** Size and quality of its images. */
  readonly size?: string | undefined
  readonly quality?: string | undefined
}

/** Facts that a charge depends on beside the counts, as JSON; undefined where there are none. */
export function chargeDetailText(
  { audioCacheRead = 0, imageCacheRead = 0, images }: Usage,
  form: ImageForm | undefined,
): string | undefined {
  const hasForm = images > 0 && form?.size !== undefined
  if (audioCacheRead === 0 && imageCacheRead === 0 && !hasForm) return undefined
  return JSON.stringify({
    ...(audioCacheRead > 0 && { audio_cached: audioCacheRead }),
    ...(imageCacheRead > 0 && { image_cached: imageCacheRead }),
    ...(hasForm && form),
  } satisfies ChargeDetail)
}
