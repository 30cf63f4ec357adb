import { type OutgoingBody, TransportError } from '@sluice/http1'
import { parseRecord } from '@sluice/wire/json/record'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Hold } from '../../../domain/hold.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import { requestStreamedResponse } from '../../../upstreams/exchange.ts'
import type { WireRequest } from '../../../upstreams/provider.ts'
import { retryAfterMs } from '../../../upstreams/retry-after.ts'
import type { UpstreamClient } from '../../../upstreams/upstream-client.ts'
import { linesOf } from '../piece-reader.ts'

/** Maximum size of an object of a provider, and milliseconds until it must have arrived. */
const MAX_OBJECT_BYTES = 4 * 1_048_576
const OBJECT_MS = 60_000
/** Milliseconds until a file must have been deleted. */
const DELETION_MS = 10_000
/** Milliseconds until the content of a file must have been sent or read. */
const CONTENT_MS = 3_600_000
/** Maximum milliseconds that a provider may ask to wait. */
const MAX_RETRY_AFTER_MS = 3_600_000
/** Maximum bytes without a complete line, as a multiple of the maximum size of a line. */
const MAX_PASSED = 4
/** Maximum number of pages of a list that are read. */
const MAX_PAGES = 1_000

/** Where batches of a channel are: its address with one of its keys. */
export interface ConnectionFacts {
  readonly upstreams: UpstreamClient
  /** Nothing is asked without a hold. */
  readonly hold: Hold
  readonly channel: Channel
  readonly key: string
  readonly protocol: ProtocolName
  /** Headers of all requests; names and values alternate. */
  readonly headers: readonly string[]
}

/** What a provider refused, with its words. */
export class ProviderRefused extends Error {
  readonly status: number
  readonly body: Buffer
  readonly retryAfterMs: number | undefined

  constructor(status: number, body: Buffer, retryAfter: string | undefined) {
    super(`the provider answered with status ${status}`)
    this.status = status
    this.body = body
    const ms = retryAfterMs(retryAfter, Date.now())
    this.retryAfterMs = ms === undefined ? undefined : Math.min(MAX_RETRY_AFTER_MS, ms)
  }

  /** Whether the provider reports that the file or batch does not exist. */
  get isUnknown(): boolean {
    return this.status === 404 || this.status === 410
  }

  /** Whether the provider would refuse the same request again. */
  get isFinal(): boolean {
    return FINAL.has(this.status) && !isFullQueue(this.body)
  }
}

/** Statuses by which a provider refuses to make a batch. */
const FINAL: ReadonlySet<number> = new Set([400, 401, 403, 404])

/** Whether the words say that other batches have to end before. */
export function isFullQueue(words: Buffer | string): boolean {
  return words.includes('token_limit_exceeded')
}

interface ContentToSend {
  readonly path: string
  /** Headers of this request alone. */
  readonly headers?: readonly string[]
  readonly body: OutgoingBody
  readonly contentType: string
}

/** Asks the API of a channel for its batches and files. Rejects with `ProviderRefused` or `TransportError`. */
export class BatchConnection {
  readonly #facts: ConnectionFacts

  constructor(facts: ConnectionFacts) {
    this.#facts = facts
  }

  get channel(): Channel {
    return this.#facts.channel
  }

  /** The same channel, with another path in its address. */
  below(pathOf: (path: string) => string): BatchConnection {
    const { channel } = this.#facts
    const url = new URL(channel.base_url)
    url.pathname = pathOf(url.pathname)
    return new BatchConnection({
      ...this.#facts,
      channel: { ...channel, base_url: url.href.replace(/\/$/, '') },
    })
  }

  get(path: string): Promise<Record<string, unknown>> {
    return this.#object({ method: 'GET', path, body: NO_BYTES }, OBJECT_MS)
  }

  /**
   * Reads a list page by page, until `next` returns undefined instead of the path of the next page. Rejects if the list is
   * endless, because an object that was not found may still exist.
   */
  async *pages(
    first: string,
    next: (page: Record<string, unknown>) => string | undefined,
  ): AsyncGenerator<Record<string, unknown>, void, undefined> {
    const seen = new Set<string>()
    for (let path: string | undefined = first; path !== undefined; ) {
      if (seen.has(path) || seen.size === MAX_PAGES) throw new TransportError('a list has no end', false)
      seen.add(path)
      const page = await this.get(path)
      yield page
      path = next(page)
    }
  }

  async remove(path: string): Promise<void> {
    const { status, retryAfter, pieces } = await this.#ask(
      { method: 'DELETE', path, body: NO_BYTES },
      DELETION_MS,
    )
    const bytes = await bytesOf(pieces)
    if (!isSuccess(status)) throw new ProviderRefused(status, bytes, retryAfter)
  }

  post(path: string, body?: object): Promise<Record<string, unknown>> {
    return this.#object({ path, ...jsonBody(body) }, OBJECT_MS)
  }

  send(content: ContentToSend): Promise<Record<string, unknown>> {
    return this.#object(content, CONTENT_MS)
  }

  /** Resolves to the headers of the answer that are read. */
  async head(
    path: string,
    body: object,
    headers: readonly string[],
  ): Promise<Readonly<Record<string, string>>> {
    const answer = await this.#ask({ path, headers, ...jsonBody(body) }, OBJECT_MS)
    const bytes = await bytesOf(answer.pieces)
    if (!isSuccess(answer.status)) throw new ProviderRefused(answer.status, bytes, answer.retryAfter)
    return answer.headers
  }

  /**
   * Reads the non-empty lines of a content; a line of more than `maxBytes` is undefined. Reading ends after `MAX_PASSED`
   * times `maxBytes` bytes without a complete line, because the content may be endless.
   */
  async *lines(path: string, maxBytes: number): AsyncGenerator<Buffer | undefined, void, undefined> {
    let passed = 0
    const pieces = this.#read(path)
    async function* counted(): AsyncGenerator<Buffer, void, undefined> {
      for await (const piece of pieces) {
        passed += piece.length
        if (passed > MAX_PASSED * maxBytes) return
        yield piece
      }
    }
    for await (const { bytes } of linesOf(counted(), maxBytes)) {
      passed = 0
      yield bytes
    }
  }

  /** Reads a content piece by piece. */
  async *#read(path: string): AsyncGenerator<Buffer, void, undefined> {
    const { status, retryAfter, pieces } = await this.#ask(
      { method: 'GET', path, body: NO_BYTES },
      CONTENT_MS,
    )
    if (!isSuccess(status)) throw new ProviderRefused(status, await bytesOf(pieces), retryAfter)
    yield* pieces
  }

  async #object(asked: Asked, timeoutMs: number): Promise<Record<string, unknown>> {
    const { status, retryAfter, pieces } = await this.#ask(asked, timeoutMs)
    const bytes = await bytesOf(pieces)
    if (!isSuccess(status)) throw new ProviderRefused(status, bytes, retryAfter)
    const found = parseRecord(bytes.toString())
    if (!found) throw new TransportError('the answer is not a JSON object', false)
    return found
  }

  #ask(asked: Asked, timeoutMs: number): ReturnType<typeof requestStreamedResponse> {
    const { upstreams, hold, channel, key, protocol, headers } = this.#facts
    const all = ['accept', '*/*', ...headers, ...(asked.headers ?? [])]
    const recipient = { hold, channel, key: { value: key } }
    return requestStreamedResponse(upstreams, recipient, { ...asked, protocol, headers: all }, timeoutMs)
  }
}

/** What is asked of a provider. */
type Asked = Pick<WireRequest, 'method' | 'path' | 'body' | 'contentType'> & {
  readonly headers?: readonly string[]
}

const NO_BYTES = Buffer.alloc(0)

function jsonBody(body: object | undefined): Pick<Asked, 'body' | 'contentType'> {
  return { body: body ? Buffer.from(JSON.stringify(body)) : NO_BYTES, contentType: 'application/json' }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

/** The id of an object that a provider has made. Without it, nothing is known of the object. */
export function idIn({ id }: Record<string, unknown>): string {
  if (typeof id === 'string' && id !== '') return id
  throw new TransportError('the answer has no id', false)
}

async function bytesOf(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const found: Buffer[] = []
  let length = 0
  for await (const piece of pieces) {
    found.push(piece)
    length += piece.length
    if (length > MAX_OBJECT_BYTES) break
  }
  return Buffer.concat(found)
}
