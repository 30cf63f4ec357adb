import type { Agent } from 'undici'
import type { Options } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { Client } from '../limits/shared-pool.ts'
import { type SlotEntry, SharedSlots } from '../limits/shared-slots.ts'
import type { Conversation, MediaPart, Part, Turn } from '../protocols/conversation.ts'
import { MediaUnavailable } from '../upstreams/media-unavailable.ts'

/** Fetches under way at one time, all calls together; no key has more than half of them. */
const MAX_FETCHES = 16
const MAX_PART_OF_KEY = 1 / 2
/** Fetches that may wait for their turn. */
const MAX_WAITING = 10_000
/** Bytes that the URLs of one request may bring in all: as many as a request itself may have. */
const MAX_TOTAL_BYTES = 32 * 1024 * 1024
/** Types that say nothing of the bytes. */
const GENERIC_TYPES: ReadonlySet<string> = new Set(['', 'application/octet-stream', 'binary/octet-stream'])

/** The caller on whose behalf files are fetched. */
export interface MediaRequester {
  /** The id of the token. */
  readonly client: Client
  /** Tells once when the caller is gone, at once if it is; what comes back takes that back. */
  onGone(listener: () => void): () => void
}

/**
 * Brings media that a caller names by URL into the request itself, where the upstream's protocol needs them
 * there.
 */
export class Media {
  readonly #options: () => Options['media']
  readonly #slots: SharedSlots
  #agent: Agent | undefined
  #agentFor: Options['media'] | undefined

  /** `nowMs`: a clock that never goes back. */
  constructor(options: () => Options['media'], nowMs: () => number) {
    this.#options = options
    this.#slots = new SharedSlots({
      max: () => MAX_FETCHES,
      aloneShare: MAX_PART_OF_KEY,
      waiting: () => MAX_WAITING,
      waitMs: () => options().timeoutMs,
      nowMs,
    })
  }

  /**
   * The conversation with everything inline that `mustFetch`. Errors: `invalid_request` where something could
   * not be had, saying why; `overloaded` where no fetch could begin in time. It ends when the caller is gone.
   */
  async inline(
    conversation: Conversation,
    mustFetch: (part: MediaPart) => boolean,
    asker: MediaRequester,
  ): Promise<Conversation> {
    if (!conversation.turns.some(({ parts }) => parts.some(hasMedia))) return conversation
    const haul = new MediaBatch(asker.client)
    const inlined = async (part: Part): Promise<Part> => {
      if (part.kind === 'media') return mustFetch(part) ? this.#withFetched(part, haul) : this.#withType(part)
      if (part.kind !== 'tool-result') return part
      const parts = await Promise.all(part.parts.map(inlined))
      return { ...part, parts: parts as typeof part.parts }
    }
    const unheed = asker.onGone(() => haul.abort())
    try {
      const turns = await Promise.all(
        conversation.turns.map(
          async (turn): Promise<Turn> => ({
            ...turn,
            parts: await Promise.all(turn.parts.map(inlined)),
          }),
        ),
      )
      return { ...conversation, turns }
    } finally {
      unheed()
    }
  }

  async close(): Promise<void> {
    await this.#agent?.destroy()
  }

  async #withFetched(part: MediaPart, haul: MediaBatch): Promise<MediaPart> {
    if (part.source.kind !== 'url') return part
    const { url, mediaType } = part.source
    // A URL that is named twice is fetched once.
    return { ...part, source: await haul.once(url, () => this.#fetch(url, mediaType ?? '', haul)) }
  }

  async #fetch(url: string, mediaType: string, haul: MediaBatch): Promise<Inline> {
    const entry = haul.enter(this.#slots)
    try {
      if (entry.decided) await entry.decided
      if (!entry.isIn)
        throw haul.isLate ? new MediaUnavailable('what else is named took too long') : tooMany()
      // With the client that it needs it is large: loaded where somebody names a URL.
      const { fetchMedia } = await import('../upstreams/fetch-media.ts')
      const { maxBytes, timeoutMs } = this.#options()
      const signal = haul.start(timeoutMs)
      const limit = Math.min(maxBytes, haul.bytesLeft)
      const { bytes, mediaType: served } = await fetchMedia(url, await this.#currentAgent(), limit, signal)
      haul.add(bytes.length)
      const told = isSpecific(served) ? served : mediaType
      return { kind: 'inline', mediaType: await mediaTypeOf(told, bytes), data: bytes.toString('base64') }
    } catch (error) {
      haul.abort()
      if (!(error instanceof MediaUnavailable)) throw error
      throw new GatewayError('invalid_request', `${truncatedUrl(url)} cannot be fetched: ${error.message}`, {
        cause: error,
      })
    } finally {
      haul.leave(entry)
    }
  }

  async #withType(part: MediaPart): Promise<MediaPart> {
    if (part.source.kind !== 'inline' || isSpecific(part.source.mediaType)) return part
    const { data } = part.source
    return {
      ...part,
      source: { ...part.source, mediaType: await mediaTypeOf('', Buffer.from(data, 'base64')) },
    }
  }

  // Made anew when the operator changes what it depends on.
  async #currentAgent(): Promise<Agent> {
    const { guardedAgent } = await import('../upstreams/guarded-agent.ts')
    const options = this.#options()
    if (!this.#agent || this.#agentFor !== options) {
      void this.#agent?.close()
      this.#agent = guardedAgent(options.allowPrivateNetworks, options.timeoutMs)
      this.#agentFor = options
    }
    return this.#agent
  }
}

type Inline = Extract<MediaPart['source'], { kind: 'inline' }>

/** What one request brings in. */
class MediaBatch {
  readonly #client: Client
  readonly #fetches = new Map<string, Promise<Inline>>()
  readonly #entries = new Set<SlotEntry>()
  readonly #aborted = new AbortController()
  #signal: AbortSignal | undefined
  #bytes = 0

  constructor(client: Client) {
    this.#client = client
  }

  /** Takes a slot for a fetch, or has it wait for one; a haul that was given up has none. */
  enter(slots: SharedSlots): SlotEntry {
    const entry = slots.enter(this.#client)
    if (this.isAborted) entry.leave()
    else this.#entries.add(entry)
    return entry
  }

  /** Gives the slot of a fetch back. */
  leave(entry: SlotEntry): void {
    this.#entries.delete(entry)
    entry.leave()
  }

  get isAborted(): boolean {
    return this.#aborted.signal.aborted
  }

  /** Whether a fetch that waits does so for others of the same request, or for nobody. */
  get isLate(): boolean {
    return this.isAborted || this.#signal !== undefined
  }

  /**
   * What each fetch is to heed. From the first one on all of them together have as long as one may take, so
   * that a request that names many slow ones does not keep others waiting.
   */
  start(timeoutMs: number): AbortSignal {
    return (this.#signal ??= AbortSignal.any([this.#aborted.signal, AbortSignal.timeout(timeoutMs)]))
  }

  /** One of them failed, and so will the request, or its caller is gone: the others are of no use. */
  abort(): void {
    this.#aborted.abort()
    // The fetches that were begun end by that.
    for (const entry of this.#entries) if (!entry.isIn) entry.leave()
  }

  /** Bytes that may still come. */
  get bytesLeft(): number {
    return MAX_TOTAL_BYTES - this.#bytes
  }

  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_TOTAL_BYTES) {
      throw new MediaUnavailable(`all that this request names is larger than ${MAX_TOTAL_BYTES} bytes`)
    }
  }

  once(url: string, fetch: () => Promise<Inline>): Promise<Inline> {
    let fetching = this.#fetches.get(url)
    if (!fetching) this.#fetches.set(url, (fetching = fetch()))
    return fetching
  }
}

function tooMany(): GatewayError {
  return new GatewayError('overloaded', 'too many files are being fetched at the moment; try again', {
    retryAfter: 1,
  })
}

function hasMedia(part: Part): boolean {
  return (
    part.kind === 'media' || (part.kind === 'tool-result' && part.parts.some(({ kind }) => kind === 'media'))
  )
}

/** A family such as `image/*` is no type: no upstream takes one. */
function isSpecific(mediaType: string): boolean {
  return !GENERIC_TYPES.has(mediaType) && !mediaType.includes('*')
}

// A type that nobody tells is read off the first bytes.
async function mediaTypeOf(mediaType: string, bytes: Buffer): Promise<string> {
  if (isSpecific(mediaType)) return mediaType
  // Loaded where a type must be found out, which is seldom.
  const { fileTypeFromBuffer } = await import('file-type')
  return (await fileTypeFromBuffer(bytes))?.mime ?? 'application/octet-stream'
}

function truncatedUrl(url: string): string {
  return url.length <= 200 ? url : `${url.slice(0, 200)}…`
}
