import { directiveMembers } from '../directive.ts'
import { type Fields, asFields, asString } from '../fields.ts'
import { malformed, Refusal } from '../refusal.ts'
import { estimateTokens } from '../tokens.ts'
import type { Upstream } from '../upstream.ts'
import { BatchWork, type BatchWorkServices, type LineFormat, newId } from './batch-work.ts'
import type { StepFault } from './behaviour.ts'
import { type Answer, type Exchange, pageAfter, type Route, serveRoutes } from './exchange.ts'
import { listElements } from './list-elements.ts'
import type { BatchApi } from './serve-batches.ts'
import type { Phase, SimulatedBatch } from './simulated-batch.ts'

const MAX_LINES = 100_000
const MAX_BODY_BYTES = 268_435_456
const ENDPOINT = '/v1/messages'
const CUSTOM_ID = /^[\w-]{1,64}$/
const USUALLY_LISTED = 20

/** Anthropic's words for phases. All others are `ended`. */
const STATUS: Readonly<Partial<Record<Phase, string>>> = {
  validating: 'in_progress',
  in_progress: 'in_progress',
  finalizing: 'in_progress',
  cancelling: 'canceling',
}

/** Anthropic's message batches. */
export class MessageBatches implements BatchApi {
  readonly work: BatchWork
  readonly #routes: readonly Route[]

  constructor(upstream: Upstream, services: Omit<BatchWorkServices, 'format'>) {
    this.work = new BatchWork({ format: formatOf(upstream), ...services })
    const all = /^\/v1\/messages\/batches$/
    const one = /^\/v1\/messages\/batches\/([^/]+)$/
    this.#routes = [
      {
        method: 'POST',
        path: all,
        step: 'create',
        answer: (exchange, _, fault) => this.#create(exchange, fault),
      },
      { method: 'GET', path: all, step: 'list', answer: (exchange) => this.#list(exchange) },
      {
        method: 'GET',
        path: one,
        step: 'get',
        answer: (exchange, [id = '']) => this.#answer(exchange, this.work.find(exchange.account, id)),
      },
      {
        method: 'DELETE',
        path: one,
        step: 'delete',
        answer: async ({ account }, [id = '']) => {
          const batch = this.work.find(account, id)
          if (!batch.isOver) throw malformed('The batch is still processing; cancel it first.')
          await this.work.forget(batch)
          return { json: { id, type: 'message_batch_deleted' } }
        },
      },
      {
        method: 'POST',
        path: /^\/v1\/messages\/batches\/([^/]+)\/cancel$/,
        step: 'cancel',
        answer: (exchange, [id = '']) => {
          const batch = this.work.find(exchange.account, id)
          if (!batch.cancel()) throw malformed('The batch has ended and cannot be canceled.')
          return this.#answer(exchange, batch)
        },
      },
      {
        method: 'GET',
        path: /^\/v1\/messages\/batches\/([^/]+)\/results$/,
        step: 'content',
        answer: ({ account }, [id = '']) => {
          const batch = this.work.find(account, id)
          if (!batch.isOver)
            throw new Refusal('unknown_object', 'The batch has no results before it has ended.')
          return { pieces: this.work.results(batch), contentType: 'application/x-jsonl' }
        },
      },
    ]
  }

  serve(exchange: Exchange): Promise<boolean> {
    return serveRoutes(this.#routes, this.work.control, 'messages', exchange)
  }

  async #create(exchange: Exchange, fault?: StepFault): Promise<Answer> {
    const { account, request } = exchange
    const input = await this.work.contents.keep(requestsOf(limited(request)))
    const tokens = estimateTokens(input.bytes)
    if (input.bytes === 0) throw malformed('requests: at least one request is required')
    if (this.work.exceedsTokens(account, tokens)) throw malformed('Too many tokens are being processed')
    const made = {
      id: newId('msgbatch_'),
      account,
      createdMs: this.work.now(),
      endpoint: ENDPOINT,
      stated: {},
      tokens,
    }
    return this.#answer(exchange, this.work.make(made, input, fault))
  }

  #answer(exchange: Exchange, batch: SimulatedBatch): Answer {
    return { json: objectOf(batch, originOf(exchange)) }
  }

  #list(exchange: Exchange): Answer {
    const { account, query } = exchange
    const all = this.work.batches(account).map((batch) => objectOf(batch, originOf(exchange)))
    const before = query.get('before_id')
    const limit = Number(query.get('limit') ?? USUALLY_LISTED)
    const ordered = before === null ? all : all.toReversed()
    const found = pageAfter(ordered, ({ id }) => asString(id), before ?? query.get('after_id'), limit)
    const data = before === null ? found.page : found.page.toReversed()
    const ids = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
    return { json: { data, has_more: found.hasMore, ...ids } }
  }
}

/** The requests of a body, as lines. Throws `Refusal` if an id is not valid or is used twice. */
async function* requestsOf(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  const ids = new Set<string>()
  for await (const text of listElements(body)) {
    const place = `requests.${ids.size}`
    let id: unknown
    try {
      id = asFields(JSON.parse(text)).custom_id
    } catch {
      throw malformed('The request body is not valid JSON')
    }
    if (typeof id !== 'string' || !CUSTOM_ID.test(id))
      throw malformed(`${place}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
    if (ids.has(id)) throw malformed(`${place}.custom_id: the custom_id is used twice`)
    ids.add(id)
    if (ids.size > MAX_LINES) throw malformed(`requests: at most ${MAX_LINES} requests are allowed`)
    // Line ends in JSON are between its tokens only.
    yield Buffer.from(`${text.replaceAll(/[\r\n]+/g, ' ')}\n`)
  }
}

async function* limited(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.length
    if (bytes > MAX_BODY_BYTES) throw new Refusal('too_large', 'Request exceeds the maximum size')
    yield piece
  }
}

function formatOf(upstream: Upstream): LineFormat {
  return {
    maxLines: MAX_LINES,
    upstreamOf: () => upstream,
    readLine: ({ custom_id: customId, params }) => ({
      customId: asString(customId),
      body: asFields(params),
    }),
    answered: ({ customId, body, status, answer }) => ({
      custom_id: customId,
      result:
        status === 200
          ? { type: 'succeeded', message: withTier(answer, body) }
          : { type: 'errored', error: answer },
    }),
    unanswered: (customId, how) => ({
      custom_id: customId,
      result: { type: how === 'expired' ? 'expired' : 'canceled' },
    }),
  }
}

/** States the tier of batches in a message, unless a directive names another one. */
function withTier(message: Fields, body: Fields): Fields {
  if (message.usage === undefined || directiveMembers(body).has('tier')) return message
  return { ...message, usage: { ...asFields(message.usage), service_tier: 'batch' } }
}

function objectOf(batch: SimulatedBatch, origin: string): Fields {
  const { made, phase, lines, isOver } = batch
  const counts = { processing: isOver ? 0 : lines.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 }
  if (isOver) {
    const { done } = batch
    counts.errored = done.filter(({ isError }) => isError).length
    counts.succeeded = done.length - counts.errored
    const left = lines.length - done.length
    if (phase === 'expired') counts.expired = left
    else counts.canceled = left
  }
  return {
    id: made.id,
    type: 'message_batch',
    processing_status: STATUS[phase] ?? 'ended',
    request_counts: counts,
    created_at: time(made.createdMs),
    expires_at: time(batch.expiresMs),
    ended_at: time(batch.endedMs),
    cancel_initiated_at: time(batch.cancelMs),
    archived_at: null,
    results_url: isOver ? `${origin}/v1/messages/batches/${made.id}/results` : null,
  }
}

function originOf({ request }: Exchange): string {
  return `http://${request.headers.host ?? 'localhost'}`
}

function time(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
