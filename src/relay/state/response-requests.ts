import type { Caller } from '../../auth/caller.ts'
import type { Settings } from '../../domain/settings.ts'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import { OperatorHold } from '../../ledger/operator-hold.ts'
import {
  itemPage,
  itemQuery,
  joinedArrays,
  RenamedIds,
  usageOfResponse,
} from '../../protocols/responses/index.ts'
import { idHeaders } from '../../server/id-headers.ts'
import { exchangeWhole } from '../../upstreams/exchange-whole.ts'
import type { UpstreamClient } from '../../upstreams/upstream-client.ts'
import type { IncomingCall } from '../incoming-call.ts'
import type { CallLimits } from '../call-limits.ts'
import { failureOfStatus } from '../failure.ts'
import { accountOf, type ResponseAccount } from './account-of.ts'
import type { BackgroundCalls } from './background-calls.ts'
import { outputOf } from './continued.ts'
import type { Replay } from './replay.ts'
import type { ResponseStore } from './response-store.ts'

/** Bytes of a response that is passed on. */
const MAX_BYTES = 64 * 1024 * 1024
/** Parameters of a query that are passed on; others might mean something to an upstream alone. */
const PASSED_ON = ['include', 'include[]', 'limit', 'order', 'after'] as const
const PASSED_ON_TO_STREAMS = ['stream', 'starting_after'] as const
const NOTHING = Buffer.alloc(0)
/** The dialect of all these requests. */
const SPOKEN = { protocol: 'responses' } as const

/** Services that requests for stored responses need. */
export interface ResponseRequestParts {
  readonly settings: () => Settings
  readonly responses: ResponseStore
  readonly background: BackgroundCalls
  readonly upstreams: UpstreamClient
  readonly limits: CallLimits
}

/** One request for a stored response. */
export interface Asked {
  readonly incoming: IncomingCall
  readonly settings: Settings
  readonly response: StoredResponse
  /** Ids of the response's bytes as its client knows them. */
  readonly ids: RenamedIds
  readonly query: URLSearchParams
}

/** Requests for responses by their ids. They cost nothing, and go to the account that made the response. */
export class ResponseRequests {
  readonly #parts: ResponseRequestParts

  constructor(parts: ResponseRequestParts) {
    this.#parts = parts
  }

  /** Finds a response of the caller's, and takes the request off the caller's limits. */
  async find(incoming: IncomingCall, caller: Caller, id: string): Promise<Asked> {
    const settings = this.#parts.settings()
    const response = await this.#parts.responses.find(caller.user.id, id)
    if (!response) throw new GatewayError('not_found', 'there is no response with this id')
    const { url } = incoming.request
    const at = url.indexOf('?')
    await this.#parts.limits.enter(settings, caller, settings.models.get(response.model))
    incoming.record.model = response.model
    return {
      incoming,
      settings,
      response,
      ids: await this.#idsOf(response),
      query: new URLSearchParams(at < 0 ? '' : url.slice(at + 1)),
    }
  }

  /** Answers with the response as it stands. */
  async retrieve(asked: Asked): Promise<void> {
    const { incoming, response, query } = asked
    if (response.content) {
      if (query.get('stream') === 'true') throw notStreamed()
      return answer(incoming, Buffer.from(response.content.response))
    }
    const body = await this.#ask(asked, 'GET', '')
    await this.#parts.background.see(response, body)
    return answer(incoming, renamed(asked, body))
  }

  /** The stream that a client asks to see again; undefined where it asks for the response as it stands. */
  replayOf(asked: Asked): Replay | undefined {
    const { response, query, ids } = asked
    if (response.content || query.get('stream') !== 'true') return undefined
    return {
      account: this.account(asked),
      model: response.model,
      path: `/responses/${encodeURIComponent(response.upstreamId)}${passedOn(query, [...PASSED_ON, ...PASSED_ON_TO_STREAMS])}`,
      ids,
      previousId: response.previousId,
      note: (stream) => this.#parts.background.streamed.begin(response.id, stream),
      onEnd: (status, usage) => this.#parts.background.note(response, status, usage),
    }
  }

  /** Deletes the response, at its upstream too. */
  async remove(asked: Asked): Promise<void> {
    const { incoming, response } = asked
    const { background, responses } = this.#parts
    if (!response.content) {
      // A deleted response can no longer tell what it cost.
      const isOver =
        response.callId === null || (await background.see(response, await this.#ask(asked, 'GET', '')))
      if (!isOver)
        throw new GatewayError('invalid_request', 'this response is still being made: cancel it first')
      await this.#ask(asked, 'DELETE', '')
    }
    await responses.remove(response.userId, response.id)
    answer(
      incoming,
      Buffer.from(JSON.stringify({ id: response.id, object: 'response.deleted', deleted: true })),
    )
  }

  /** Cancels a response that is made in the background. */
  async cancel(asked: Asked): Promise<void> {
    const { incoming, response } = asked
    if (response.content)
      throw new GatewayError(
        'invalid_request',
        'only a response that is made in the background can be cancelled',
      )
    const body = await this.#ask(asked, 'POST', '/cancel')
    await this.#parts.background.see(response, body)
    return answer(incoming, renamed(asked, body))
  }

  /** Answers with a page of the items that the response was made from. */
  async inputItems(asked: Asked): Promise<void> {
    const { incoming, response, query } = asked
    if (!response.content)
      return answer(incoming, asked.ids.whole(await this.#ask(asked, 'GET', '/input_items')))
    const wanted = itemQuery(query)
    const chain = await this.#parts.responses.chain(response.userId, response.id)
    const items = chain.toReversed().flatMap(({ id, content }) => {
      if (!content) return []
      return id === response.id ? [content.input] : [content.input, outputOf(content.response)]
    })
    answer(incoming, itemPage(joinedArrays(items), wanted))
  }

  async #idsOf({ id, userId, upstreamId, previousId }: StoredResponse): Promise<RenamedIds> {
    const ids = new RenamedIds()
    ids.add(upstreamId, id)
    const previous = previousId === null ? undefined : await this.#parts.responses.find(userId, previousId)
    if (previous) ids.add(previous.upstreamId, previous.id)
    return ids
  }

  /** The account of a native response; throws where its channel is gone. */
  account({ settings, response }: Asked): ResponseAccount {
    const account = accountOf(response, settings, this.#parts.responses)
    if (account) return account
    throw new GatewayError('not_found', 'the channel that made this response is not configured any more')
  }

  async #ask(asked: Asked, method: 'GET' | 'DELETE' | 'POST', below: string): Promise<Buffer> {
    const { incoming, response } = asked
    const account = this.account(asked)
    const { channel } = account
    incoming.record.channel = channel.name
    incoming.response.needsUpstream()
    const hold = freeHold(asked)
    const path = `/responses/${encodeURIComponent(response.upstreamId)}${below}${passedOn(asked.query)}`
    const came = await exchangeWhole(
      this.#parts.upstreams,
      { hold, ...account },
      { method, protocol: 'responses', path, headers: ['accept', 'application/json'], body: NOTHING },
      { maxBytes: MAX_BYTES, timeoutMs: channel.timeouts.totalMs },
    )
    hold.settle()
    if ('failure' in came)
      throw new GatewayError('upstream_error', 'the channel that made this response did not answer')
    const { status, body, retryAfter } = came
    if (status >= 200 && status <= 299) return body
    const failure = failureOfStatus(
      { channel, prepared: SPOKEN },
      status,
      asked.ids.inProse(body),
      retryAfter,
    )
    throw failure.refusal ?? new GatewayError('upstream_error', 'the channel that made this response failed')
  }
}

/** Permission for requests that nobody is charged for. */
function freeHold({ incoming, response }: Asked): OperatorHold {
  return new OperatorHold({
    id: incoming.id,
    model: response.model,
    requestedModel: response.model,
    channel: response.channel,
    group: response.group,
    stream: false,
    priceVersion: '',
    kind: 'responses',
    startedMs: incoming.startedMs,
    promptAmount: 0,
  })
}

// The row of the response before it may be gone, and with it the id that the upstream calls it by.
function renamed({ ids, response: { previousId } }: Asked, body: Buffer): Buffer {
  if (previousId !== null) ids.add(usageOfResponse(body).previousId, previousId)
  return ids.whole(body)
}

function passedOn(query: URLSearchParams, names: readonly string[] = PASSED_ON): string {
  const passed = new URLSearchParams()
  for (const name of names) for (const value of query.getAll(name)) passed.append(name, value)
  return passed.size === 0 ? '' : `?${passed.toString()}`
}

function notStreamed(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `Invalid 'stream': this response was not made in the background.`,
  )
}

function answer({ id, response }: IncomingCall, body: Buffer): void {
  if (response.isAborted) return
  const headers = { ...idHeaders(id, false), 'content-type': 'application/json', 'cache-control': 'no-store' }
  response.writeHead(200, { ...headers, 'content-length': String(body.length) }).end(body)
}
