import type { Agent } from 'undici'
import type { Options } from '../domain/options.ts'
import { GatewayError } from '../errors.ts'
import type { PoolClient } from '../limits/fair-pool.ts'
import { type SlotEntry, FairSemaphore } from '../limits/fair-semaphore.ts'
import type { Conversation, MediaPart, Part, Turn } from '@sluice/wire/conversation'
import { pictureType } from '@sluice/wire/media-source'
import { MediaUnavailable } from '../upstreams/media-unavailable.ts'

/** Maximum number of files that are fetched at the same time, for all calls together. */
const MAX_FETCHES = 16
/** Fraction of the `MAX_FETCHES` slots that one API key may occupy. */
const MAX_PART_OF_KEY = 1 / 2
/** Maximum number of files that may wait until they can be fetched. */
const MAX_WAITING = 10_000
/** Maximum number of different URLs of one request. */
const MAX_URLS = 200
/** Maximum bytes of all files that the URLs of one request lead to; the same as for a request body. */
const MAX_TOTAL_BYTES = 32 * 1024 * 1024
/** Bytes of memory for each byte of a file: for its base64 form, and for the request that contains it. */
const BYTES_PER_BYTE = 2 * (4 / 3)
/** Media types that do not state what a file contains. */
const GENERIC_TYPES: ReadonlySet<string> = new Set(['', 'application/octet-stream', 'binary/octet-stream'])

/** Where a request has a file: in a message, or in the result of a tool. */
export type MediaPlace = 'input' | 'tool_results'

/** The call on whose behalf files are fetched. */
export interface MediaRequester {
  /** Id of the API key whose call needs the files. */
  readonly client: PoolClient
  /** Allocates memory until the call ends. Throws `overloaded` if none is left for the client. */
  takeMemory(bytes: number): void
  /**
   * Calls the listener once when the client has left, immediately if it already has. The returned function
   * unsubscribes.
   */
  onClientGone(listener: () => void): () => void
  /**
   * Set if files are checked that were fetched. Resolves to the file to send.
   */
  readonly checked?: ((file: MediaPart, place: MediaPlace) => Promise<MediaPart>) | undefined
}

/** Fetches media that a client gives by URL, if the upstream's dialect needs them inside the request. */
export class MediaFetcher {
  readonly #options: () => Options['media']
  readonly #slots: FairSemaphore
  #agent: Agent | undefined
  #agentFor: Options['media'] | undefined

  /** `nowMs`: a monotonic clock in milliseconds. */
  constructor(options: () => Options['media'], nowMs: () => number) {
    this.#options = options
    this.#slots = new FairSemaphore({
      max: () => MAX_FETCHES,
      aloneShare: MAX_PART_OF_KEY,
      waiting: () => MAX_WAITING,
      waitMs: () => options().timeout,
      nowMs,
    })
  }

  /**
   * Returns the conversation in which the media for which `mustFetch` returns true are replaced by their
   * content. Throws `invalid_request` with the reason if there are too many or a fetch failed, and `overloaded` if a
   * fetch could not begin in time. Fetches end when the client leaves.
   */
  async inline(
    conversation: Conversation,
    mustFetch: (part: MediaPart) => boolean,
    requester: MediaRequester,
  ): Promise<Conversation> {
    const media = conversation.turns.flatMap(({ parts }) => parts.flatMap(mediaIn))
    if (media.length === 0) return conversation
    const fetched = media.filter(mustFetch)
    refuseManyUrls(fetched)
    const batch = new MediaBatch(requester)
    const inlined = async (part: Part, place: 'input' | 'tool_results' = 'input'): Promise<Part> => {
      if (part.kind === 'media') {
        if (!mustFetch(part)) return this.#withType(part)
        const file = await this.#withFetched(part, batch)
        return requester.checked ? requester.checked(file, place) : file
      }
      if (part.kind !== 'tool-result') return part
      const parts = await Promise.all(part.parts.map((one) => inlined(one, 'tool_results')))
      return { ...part, parts: parts as typeof part.parts }
    }
    const unsubscribe = requester.onClientGone(() => batch.abort())
    try {
      // A file that cannot be fetched ends the call, after which no other one may be checked.
      await Promise.all(fetched.map((part) => this.#withFetched(part, batch)))
      const turns = await Promise.all(
        conversation.turns.map(
          async (turn): Promise<Turn> => ({
            ...turn,
            parts: await Promise.all(turn.parts.map((part) => inlined(part))),
          }),
        ),
      )
      return { ...conversation, turns }
    } finally {
      unsubscribe()
    }
  }

  async close(): Promise<void> {
    await this.#agent?.destroy()
  }

  async #withFetched(part: MediaPart, batch: MediaBatch): Promise<MediaPart> {
    if (part.source.kind !== 'url') return part
    const { url, mediaType } = part.source
    // A URL that occurs twice is fetched once.
    return { ...part, source: await batch.once(url, () => this.#fetch(url, mediaType ?? '', batch)) }
  }

  async #fetch(url: string, mediaType: string, batch: MediaBatch): Promise<Inline> {
    const entry = batch.enter(this.#slots)
    try {
      if (entry.decided) await entry.decided
      if (!entry.isIn)
        throw batch.isLate ? new MediaUnavailable('other URLs of this request took too long') : tooMany()
      // Imported on demand: this module and its HTTP client are large, and few requests have URLs.
      const { fetchMedia } = await import('../upstreams/fetch-media.ts')
      const { max_bytes: maxBytes, timeout: timeoutMs } = this.#options()
      const signal = batch.start(timeoutMs)
      const limit = Math.min(maxBytes, batch.bytesLeft)
      const { bytes, mediaType: served } = await fetchMedia(url, await this.#currentAgent(), {
        maxBytes: limit,
        signal,
        take: (bytes) => batch.take(bytes),
      })
      batch.add(bytes.length)
      const stated = isSpecific(served) ? served : mediaType
      const data = bytes.toString('base64')
      return { kind: 'inline', mediaType: await mediaTypeOf(stated, data), data }
    } catch (error) {
      batch.abort()
      if (!(error instanceof MediaUnavailable)) throw error
      throw new GatewayError('invalid_request', `${truncatedUrl(url)} cannot be fetched: ${error.message}`, {
        cause: error,
      })
    } finally {
      batch.leave(entry)
    }
  }

  async #withType(part: MediaPart): Promise<MediaPart> {
    if (part.source.kind !== 'inline') return part
    const { data, mediaType: stated } = part.source
    const mediaType = await mediaTypeOf(stated, data)
    return mediaType === stated ? part : { ...part, source: { ...part.source, mediaType } }
  }

  // Returns the HTTP agent that fetches files. It is replaced when the operator changes its options.
  async #currentAgent(): Promise<Agent> {
    const { createGuardedAgent } = await import('../upstreams/ssrf-guard.ts')
    const options = this.#options()
    if (!this.#agent || this.#agentFor !== options) {
      void this.#agent?.close()
      this.#agent = createGuardedAgent(options.allow_private_networks, options.timeout, 'clients')
      this.#agentFor = options
    }
    return this.#agent
  }
}

type Inline = Extract<MediaPart['source'], { kind: 'inline' }>

/** The fetches of one request. */
class MediaBatch {
  readonly #requester: MediaRequester
  readonly #fetches = new Map<string, Promise<Inline>>()
  readonly #entries = new Set<SlotEntry>()
  readonly #aborted = new AbortController()
  #signal: AbortSignal | undefined
  #bytes = 0

  constructor(requester: MediaRequester) {
    this.#requester = requester
  }

  /** Requests one of the `MAX_FETCHES` slots for a file. After `abort`, none is granted. */
  enter(slots: FairSemaphore): SlotEntry {
    const entry = slots.enter(this.#requester.client)
    if (this.isAborted) entry.leave()
    else this.#entries.add(entry)
    return entry
  }

  /** Releases the slot of a file that was fetched. */
  leave(entry: SlotEntry): void {
    this.#entries.delete(entry)
    entry.leave()
  }

  get isAborted(): boolean {
    return this.#aborted.signal.aborted
  }

  /**
   * Whether a file was not fetched because of its own request: the request's other files had used up the
   * time, or the request was aborted.
   */
  get isLate(): boolean {
    return this.isAborted || this.#signal !== undefined
  }

  /**
   * Returns the signal that ends each fetch. All fetches of a request share one timeout, so that a request
   * with many slow URLs does not block others.
   */
  start(timeoutMs: number): AbortSignal {
    return (this.#signal ??= AbortSignal.any([this.#aborted.signal, AbortSignal.timeout(timeoutMs)]))
  }

  /** Ends all fetches, because one of them failed or the client left. */
  abort(): void {
    this.#aborted.abort()
    // The signal ends the fetches that have begun; those that wait for a slot must leave the queue.
    for (const entry of this.#entries) if (!entry.isIn) entry.leave()
  }

  /** Allocates memory for bytes that have arrived. */
  take(bytes: number): void {
    // The call may have ended, and its memory must not grow after that.
    if (this.isAborted) throw new MediaUnavailable('another URL of this request failed')
    this.#requester.takeMemory(Math.ceil(bytes * BYTES_PER_BYTE))
  }

  /** Number of bytes of this request's files that may still arrive. */
  get bytesLeft(): number {
    return MAX_TOTAL_BYTES - this.#bytes
  }

  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_TOTAL_BYTES) {
      throw new MediaUnavailable(
        `the files of this request are together larger than ${MAX_TOTAL_BYTES} bytes`,
      )
    }
  }

  once(url: string, fetch: () => Promise<Inline>): Promise<Inline> {
    let fetching = this.#fetches.get(url)
    if (!fetching) this.#fetches.set(url, (fetching = fetch()))
    return fetching
  }
}

function refuseManyUrls(parts: readonly MediaPart[]): void {
  const urls = new Set(parts.flatMap(({ source }) => (source.kind === 'url' ? [source.url] : [])))
  if (urls.size <= MAX_URLS) return
  throw new GatewayError(
    'invalid_request',
    `expected at most ${MAX_URLS} different URLs of files in a request, found ${urls.size}`,
  )
}

function tooMany(): GatewayError {
  return new GatewayError('overloaded', 'too many files are being fetched at the moment; try again', {
    retryAfter: 1,
  })
}

function mediaIn(part: Part): readonly MediaPart[] {
  if (part.kind === 'media') return [part]
  return part.kind === 'tool-result' ? part.parts.flatMap(mediaIn) : []
}

/** Whether a media type states what a file contains; a family such as `image/*` does not. */
function isSpecific(mediaType: string): boolean {
  return !GENERIC_TYPES.has(mediaType) && !mediaType.includes('*')
}

// Pictures have the type of their bytes. Other types are detected only if they are not stated.
async function mediaTypeOf(mediaType: string, data: string): Promise<string> {
  const picture = pictureType(data)
  if (picture !== undefined || isSpecific(mediaType)) return picture ?? mediaType
  // Imported on demand, because few types must be detected.
  const { fileTypeFromBuffer } = await import('file-type')
  return (await fileTypeFromBuffer(Buffer.from(data, 'base64')))?.mime ?? 'application/octet-stream'
}

function truncatedUrl(url: string): string {
  return url.length <= 200 ? url : `${url.slice(0, 200)}…`
}
