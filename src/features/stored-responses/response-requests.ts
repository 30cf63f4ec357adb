import { sendResponsePieces, TransportError } from '@sluice/http1'
import { readItemQuery, IdReplacer, usageOfResponse } from '@sluice/wire/responses'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { OperatorHold } from '../../accounts/ledger/operator-hold.ts'
import type { Settings } from '../../domain/settings.ts'
import { MAX_PREVIOUS_RESPONSES, type StoredResponse } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import { answerHeaders } from '../../http/answer-headers.ts'
import type { StoreRead, StoreReads } from '../../limits/store-reads.ts'
import { requestStreamedResponse } from '../../upstreams/exchange.ts'
import type { UpstreamClient } from '../../upstreams/upstream-client.ts'
import type { CallLimits } from '../../call/call-limits.ts'
import { failureOfAnswer } from '../../call/failure.ts'
import type { LifeCycle } from '../../call/life-cycle.ts'
import type { KeptAnswerCheck } from '../../call/feature.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import type { BackgroundCalls } from './background-calls.ts'
import type { Replay } from './replay.ts'
import { accountOf, type ResponseAccount } from './response-account.ts'
import { itemSource, storedItemPage } from './response-items.ts'
import type { ResponseStore } from './response-store.ts'

/** Bytes of memory that are reserved while a response is sent part by part. */
const PARTS_BYTES = 4 * 1024 * 1024
/** Query parameters that are forwarded for streams, in addition to the common ones. */
const OF_STREAMS = ['stream', 'starting_after'] as const

/** Services that requests for stored responses need. */
export interface ResponseRequestServices {
  readonly settings: () => Settings
  readonly responses: ResponseStore
  readonly background: BackgroundCalls
  readonly upstreams: UpstreamClient
  readonly limits: CallLimits
  readonly reads: StoreReads
  readonly lifeCycle: Pick<LifeCycle, 'kept'>
}

/** One request for a stored response. */
export interface StoredResponseRequest {
  readonly incoming: IncomingCall
  readonly settings: Settings
  /** Access to the store for this request; it ends when the client has received the response. */
  readonly reading: StoreRead
  readonly response: StoredResponse
  /** Whether the gateway itself keeps the response's content. */
  readonly isKept: boolean
  /** Replaces the ids in the response's bytes by those that the client knows. */
  readonly ids: IdReplacer
  /**
   * Whether all ids in the response can be replaced. False if the response that it continues no longer
   * exists.
   */
  readonly hasAllIds: boolean
  readonly query: URLSearchParams
  /** Checks the response before it is sent; undefined if it is sent as it is. */
  readonly check: KeptAnswerCheck | undefined
}

/**
 * Handles requests for stored responses by id. Such a request is free, and is sent to the provider account
 * that created the response.
 */
export class ResponseRequests {
  readonly #services: ResponseRequestServices

  constructor(services: ResponseRequestServices) {
    this.#services = services
  }

  /** Finds a response of the caller, and counts the request against the caller's limits. */
  async find(incoming: IncomingCall, caller: Caller, id: string): Promise<StoredResponseRequest> {
    const settings = this.#services.settings()
    const reading = this.#services.reads.of(caller.user.id)
    onLeft(incoming, () => reading.end())
    await reading.begin()
    const known = await this.#services.responses.facts(caller.user.id, id)
    if (!known) throw new GatewayError('not_found', 'there is no response with this id')
    const { response } = known
    const { url } = incoming.request
    const at = url.indexOf('?')
    const { limits } = this.#services
    const model = settings.models.get(response.model)
    await limits.enter(settings, caller, model)
    await limits.countModel({ isUncounted: true }, model)
    incoming.record.model = response.model
    return {
      incoming,
      settings,
      reading,
      response,
      isKept: known.contentBytes > 0,
      ...(await this.#idsOf(response)),
      query: new URLSearchParams(at < 0 ? '' : url.slice(at + 1)),
      check: this.#services.lifeCycle.kept({ incoming, caller, settings, ...response }),
    }
  }

  /** Responds with the current state of the response. */
  async retrieve(request: StoredResponseRequest): Promise<void> {
    const { incoming, reading, response, isKept, query } = request
    if (isKept) {
      if (query.get('stream') === 'true') throw notStreamed()
      await reading.hold(PARTS_BYTES)
      const parts = this.#services.responses.text(response.userId, response.id, 'response').parts()
      if (!request.check) return answerPieces(incoming, parts)
      const { bytes } = await readBodyBeginning(request, asPieces(parts))
      return this.#answer(request, bytes)
    }
    return this.#passOn(request, 'GET', '')
  }

  /**
   * Returns what is needed to stream the response again; undefined if the client requests its current state
   * instead.
   */
  replayOf(request: StoredResponseRequest): Replay | undefined {
    const { reading, response, isKept, query, ids } = request
    if (isKept || query.get('stream') !== 'true') return undefined
    // A stream that starts after an event lacks the text before it, so guards would miss a match that begins
    // there.
    if (request.check?.concernsAnswer && query.has('starting_after')) throw notGuarded("'starting_after'")
    // From here on, the upstream is read, so access to the store is no longer needed.
    reading.end()
    return {
      account: this.account(request),
      model: response.model,
      path: `/responses/${encodeURIComponent(response.upstreamId)}${forwardedQuery(query, OF_STREAMS)}`,
      ids,
      previousId: response.previousId,
      note: (stream) => this.#services.background.streamed.begin(response.id, stream),
      onEnd: (status, usage) => this.#services.background.note(response, status, usage),
    }
  }

  /** Deletes the response, also at its upstream. */
  async remove(request: StoredResponseRequest): Promise<void> {
    const { incoming, response, isKept } = request
    const { background, responses } = this.#services
    if (!isKept) {
      // The usage is read before the deletion, because afterwards nobody could find out what the response
      // cost.
      const isOver =
        response.callId === null ||
        (await background.see(response, await readAtUpstream(this.#upstream(request), request, 'GET', '')))
      if (!isOver)
        throw new GatewayError('invalid_request', 'this response is still being made: cancel it first')
      const pieces = await openAtUpstream(this.#upstream(request), request, 'DELETE', '')
      // The client may have left, and with it the memory to keep what is read.
      while (!(await pieces.next()).done);
    }
    await responses.remove(response.userId, response.id)
    answer(
      incoming,
      Buffer.from(JSON.stringify({ id: response.id, object: 'response.deleted', deleted: true })),
    )
  }

  /** Cancels a response that is generated in the background. */
  async cancel(request: StoredResponseRequest): Promise<void> {
    if (request.isKept)
      throw new GatewayError(
        'invalid_request',
        'only a response that is made in the background can be cancelled',
      )
    return this.#passOn(request, 'POST', '/cancel')
  }

  /** Responds with a page of the input items of the response. */
  async inputItems(request: StoredResponseRequest): Promise<void> {
    const { incoming, reading, response, isKept, ids, query } = request
    // The items contain earlier answers as the model generated them, without the changes that guards made.
    if (request.check?.concernsAnswer) throw notGuarded("'input_items'")
    await reading.hold(PARTS_BYTES)
    if (!isKept)
      return answerPieces(
        incoming,
        renamedPieces(ids, await openAtUpstream(this.#upstream(request), request, 'GET', '/input_items')),
      )
    const wanted = readItemQuery(query)
    const links = await this.#services.responses.chain(response.userId, response.id, Number.MAX_SAFE_INTEGER)
    const withContent = links.slice(0, MAX_PREVIOUS_RESPONSES).filter(({ bytes }) => bytes !== null)
    const { responses } = this.#services
    const sources = withContent.toReversed().flatMap(({ id }) => {
      const input = itemSource(responses, response.userId, id, 'input')
      return id === response.id ? [input] : [input, itemSource(responses, response.userId, id, 'response')]
    })
    return answerPieces(incoming, storedItemPage(sources, wanted))
  }

  /** Sends a response that the provider stores to the client; a large one is forwarded as it arrives. */
  async #passOn(
    request: StoredResponseRequest,
    method: 'GET' | 'POST',
    below: '' | '/cancel',
  ): Promise<void> {
    const { incoming, response, ids, hasAllIds, check } = request
    const pieces = await openAtUpstream(this.#upstream(request), request, method, below)
    const { bytes, rest } = await readBodyBeginning(
      request,
      pieces,
      hasAllIds && !check ? PARTS_BYTES : undefined,
    )
    // The response is too large to be read as a whole. If it is a background response, the next poll settles
    // its call.
    if (rest) return answerPieces(incoming, renamedPieces(ids, rest, bytes))
    await this.#services.background.see(response, bytes)
    return this.#answer(request, renamed(request, bytes))
  }

  /** Sends a response after it was checked. */
  async #answer({ incoming, check }: StoredResponseRequest, body: Buffer): Promise<void> {
    if (!check?.concernsAnswer) return answer(incoming, body)
    const checked = await check.check(body)
    // The client left while the response was checked.
    if (checked) answer(incoming, checked.body, checked.headers)
  }

  async #idsOf({
    id,
    userId,
    upstreamId,
    previousId,
  }: StoredResponse): Promise<Pick<StoredResponseRequest, 'ids' | 'hasAllIds'>> {
    const ids = new IdReplacer()
    ids.add(upstreamId, id)
    const previous = previousId === null ? undefined : await this.#services.responses.find(userId, previousId)
    if (previous) ids.add(previous.upstreamId, previous.id)
    return { ids, hasAllIds: previousId === null || previous !== undefined }
  }

  #upstream(request: StoredResponseRequest): {
    readonly upstreams: UpstreamClient
    readonly account: ResponseAccount
  } {
    return { upstreams: this.#services.upstreams, account: this.account(request) }
  }

  /** The provider account of a response that the provider stores. Throws if its channel no longer exists. */
  account({ settings, response }: StoredResponseRequest): ResponseAccount {
    const account = accountOf(response, settings, this.#services.responses)
    if (account) return account
    throw new GatewayError('not_found', 'the channel that made this response is not configured any more')
  }
}

// The previous response may have been deleted from the store, together with its upstream's id. The body
// contains that id, so it is taken from there.
function renamed({ ids, response: { previousId } }: StoredResponseRequest, body: Buffer): Buffer {
  if (previousId !== null) ids.add(usageOfResponse(body).previousId, previousId)
  return ids.whole(body)
}

function notGuarded(what: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `${what} cannot be used with this API key, because guards check its answers`,
  )
}

function notStreamed(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `Invalid 'stream': this response was not made in the background.`,
  )
}

function answer(
  { id, response }: IncomingCall,
  body: Buffer,
  more: Readonly<Record<string, string>> = {},
): void {
  if (response.isAborted) return
  response.writeHead(200, { ...headersOf(id), ...more, 'content-length': String(body.length) }).end(body)
}

function answerPieces({ id, response }: IncomingCall, pieces: AsyncIterable<string | Buffer>): Promise<void> {
  return sendResponsePieces(response, headersOf(id), pieces)
}

function headersOf(id: string) {
  return {
    ...answerHeaders(id, 'responses'),
    'content-type': 'application/json',
    'cache-control': 'no-store',
  }
}

async function* asPieces(parts: AsyncIterable<string | Buffer>): ResponsePieces {
  for await (const part of parts) yield Buffer.from(part)
}

async function* renamedPieces(ids: IdReplacer, pieces: ResponsePieces, before?: Buffer): ResponsePieces {
  if (before) yield ids.push(before)
  for await (const piece of pieces) yield ids.push(piece)
  yield ids.rest()
}

/** Maximum bytes of a response that is read as a whole, and of an error. */
const MAX_BYTES = 64 * 1024 * 1024
const MAX_ERROR_BYTES = 1024 * 1024
/**
 * Number of copies in memory of a response that is read as a whole: its pieces, its text, and the parsed
 * objects.
 */
const COPIES = 3
/**
 * Query parameters that are forwarded to the upstream. Others are not, because the gateway does not know
 * their effect.
 */
const PASSED_ON = ['include', 'include[]', 'limit', 'order', 'after'] as const
const NOTHING = Buffer.alloc(0)
/** Context for reading errors of upstreams: all these requests have the responses dialect. */
const SPOKEN = { protocol: 'responses' } as const

/** The body of a response, piece by piece as it arrives. */
export type ResponsePieces = AsyncGenerator<Buffer, void, undefined>

/** A request about a response that an upstream stores. */
interface UpstreamContext {
  readonly incoming: IncomingCall
  readonly reading: StoreRead
  readonly response: StoredResponse
  readonly ids: IdReplacer
  readonly query: URLSearchParams
  readonly check?: KeptAnswerCheck | undefined
}

/** The upstream of a response. */
interface Upstream {
  readonly upstreams: UpstreamClient
  readonly account: ResponseAccount
}

/** Resolves to the whole body of a response. Memory for it is allocated as it arrives. */
export async function readAtUpstream(
  upstream: Upstream,
  request: UpstreamContext,
  method: 'GET' | 'DELETE' | 'POST',
  below: string,
): Promise<Buffer> {
  const { bytes } = await readBodyBeginning(request, await openAtUpstream(upstream, request, method, below))
  return bytes
}

/**
 * The beginning of a body, and the pieces that follow it (`rest`); undefined if the beginning is the whole
 * body.
 */
export interface BodyBeginning {
  readonly bytes: Buffer
  readonly rest: ResponsePieces | undefined
}

/**
 * Reads a body up to the piece that exceeds `wholeBytes`; memory is allocated as it arrives. Without
 * `wholeBytes` the whole body is read, and it is an error if it exceeds `MAX_BYTES`.
 */
export async function readBodyBeginning(
  { reading }: Pick<UpstreamContext, 'reading'>,
  pieces: ResponsePieces,
  wholeBytes = Number.POSITIVE_INFINITY,
): Promise<BodyBeginning> {
  const chunks = new ChunkList()
  try {
    while (chunks.length <= wholeBytes) {
      const { done, value } = await pieces.next()
      if (done) return { bytes: chunks.take(), rest: undefined }
      await reading.hold(COPIES * value.length)
      chunks.add(value)
      if (chunks.length > MAX_BYTES) throw failed()
    }
  } catch (error) {
    await pieces.return()
    throw error
  }
  return { bytes: chunks.take(), rest: pieces }
}

/** Resolves to the body of a successful response as it arrives. Rejects with the error for the client. */
export async function openAtUpstream(
  { upstreams, account }: Upstream,
  request: UpstreamContext,
  method: 'GET' | 'DELETE' | 'POST',
  below: string,
): Promise<ResponsePieces> {
  const { incoming, response } = request
  const { channel } = account
  incoming.record.channel = channel.name
  incoming.response.needsUpstream()
  const hold = new OperatorHold(incoming.id)
  const path = `/responses/${encodeURIComponent(response.upstreamId)}${below}${forwardedQuery(request.query)}`
  const came = await requestStreamedResponse(
    upstreams,
    { hold, ...account },
    { method, protocol: 'responses', path, headers: ['accept', 'application/json'], body: NOTHING },
    channel.timeouts.total,
    // A change is made, whether or not its client waits for the answer.
    incoming.request.method === 'GET' ? (cancel) => onLeft(incoming, cancel) : undefined,
  ).catch(unanswered)
  hold.settle()
  const { status, pieces, retryAfter, headers } = came
  if (status >= 200 && status <= 299) return answered(pieces)
  const failure = failureOfAnswer(
    { channel, client: 'responses', request: SPOKEN, features: request.check },
    { status, body: request.ids.inProse(await beginning(pieces)), head: { retryAfter, headers } },
  )
  throw failure.refusal ?? failed()
}

/** The query for an upstream: known parameters and those in `more`. */
export function forwardedQuery(query: URLSearchParams, more: readonly string[] = []): string {
  const passed = new URLSearchParams()
  for (const name of [...PASSED_ON, ...more])
    for (const value of query.getAll(name)) passed.append(name, value)
  return passed.size === 0 ? '' : `?${passed.toString()}`
}

/** Calls a function when the client has its answer or has left. */
function onLeft({ response }: IncomingCall, then: () => void): void {
  response.onClosed(then)
  // If the client left before `onClosed` was called, its listener is not called.
  if (response.isAborted) then()
}

/** Yields the body of a response. If it breaks off, throws the error for the client. */
async function* answered(pieces: ResponsePieces): ResponsePieces {
  try {
    yield* pieces
  } catch (error) {
    unanswered(error)
  }
}

async function beginning(pieces: ResponsePieces): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const piece of pieces) {
      chunks.push(piece)
      length += piece.length
      if (length > MAX_ERROR_BYTES) break
    }
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
  }
  return Buffer.concat(chunks)
}

function unanswered(error: unknown): never {
  if (!(error instanceof TransportError)) throw error
  throw new GatewayError('upstream_error', 'the channel that made this response did not answer')
}

function failed(): GatewayError {
  return new GatewayError('upstream_error', 'the channel that made this response failed')
}
