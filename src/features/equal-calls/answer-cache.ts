import type { ResponseHeaders } from '@sluice/http1'
import { GatewayError } from '../../errors.ts'
import type { StartWatch } from '../../ipc/service.ts'
import { type RequestMemory, ResizableAllocation } from '../../limits/request-memory.ts'
import type { StoreReads } from '../../limits/store-reads.ts'
import type { AdmittedRequest, WaysToAnswer } from '../../call/answer-request.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { CONTENT_TYPES } from './answer-bodies.ts'
import { AnswerConversions } from './answer-conversions.ts'
import { type AnswerFacts, factsOfKeptAnswer, answerFactsOfCall } from './answer-facts.ts'
import { type CacheHitServices, CacheHits } from './cache-hits.ts'
import {
  type AnswerSource,
  type CompleteAnswer,
  EqualCalls,
  type EqualCallsPolicy,
  type MissedAnswer,
} from './equal-calls.ts'
import { cacheHitHeaders, headersSharedByHits } from './hit-headers.ts'
import type { IdempotencyClaims } from './idempotent-calls.ts'
import type { KeptAnswer, KeptAnswers } from './kept-answers.ts'
import { sharableCall } from './sharable-call.ts'
import { type AskedCall, type CachedAnswer, type CachedCall, SharedAnswer } from './shared-answer.ts'

/**
 * Kept answers with more bytes than this are read from the store separately for each client, while they are
 * sent.
 */
const MAX_READ_AT_ONCE = 1_048_576
/** Maximum number of failed calls for which an equal call waits. */
const MAX_MISSES = 3

/** Services that the answer cache needs. */
export interface AnswerCacheServices extends CacheHitServices {
  readonly answers: KeptAnswers
  readonly reads: StoreReads
  readonly memory: RequestMemory
  readonly threads: StartWatch
  readonly claims: Pick<IdempotencyClaims, 'tag'>
}

/**
 * Gives equal calls one answer: a stored one, or that of the first equal call that is running.
 * `docs/answer-cache.md`.
 */
export class AnswerCache implements EqualCallsPolicy<CachedCall, CachedAnswer, AnswerFacts, SharedAnswer> {
  readonly #services: AnswerCacheServices
  readonly #hits: CacheHits
  readonly #conversions: AnswerConversions
  readonly #calls = new EqualCalls(this)

  constructor(services: AnswerCacheServices) {
    this.#services = services
    this.#hits = new CacheHits(services)
    this.#conversions = new AnswerConversions(services)
  }

  /** Ends the thread that converts large answers. */
  close(): Promise<void> {
    return this.#conversions.close()
  }

  /**
   * Answers a call: from the store, with the answer of an equal running call, or by asking the upstream.
   */
  answer(admitted: AdmittedRequest, incoming: IncomingCall, ways: WaysToAnswer<AskedCall>): Promise<void> {
    const call = sharableCall(admitted, incoming.request.headers, (text) =>
      this.#services.claims.tag('answer', text),
    )
    if (!call) {
      this.#services.metrics.add('answerCache', 1, 'bypass')
      return ways.make(incoming, 'bypass')
    }
    const { user, token } = call.caller
    const owner = { client: user.id, key: token.id }
    const maxMisses = call.control.noCache ? 0 : MAX_MISSES
    return this.#calls.answer({ ...call, incoming, ways, owner, maxMisses })
  }

  begin(call: CachedCall): SharedAnswer {
    return new SharedAnswer(call, this.#services.memory, this.#conversions)
  }

  /** Looks for a kept answer, and reads it unless it is large. No other process is asked. */
  async claim(first: SharedAnswer): Promise<AnswerSource<CachedAnswer>> {
    const { answers, reads } = this.#services
    const { control, lookup, caller } = first.call
    const isGiven = (kept: KeptAnswer): boolean =>
      factsOfKeptAnswer(kept) !== undefined && !isTooOld(kept, control.maxAgeMs)
    const isRead = (kept: KeptAnswer): boolean => kept.bytes <= MAX_READ_AT_ONCE && isGiven(kept)
    const read = reads.of(caller.user.id)
    try {
      // If the database is unavailable, the cache counts as empty. Whether the call can be made is decided
      // elsewhere.
      const place = { kind: 'cache', key: lookup, userId: caller.user.id } as const
      const { answer: kept, pieces } = (await answers.read(place, read, isRead).catch(() => undefined)) ?? {}
      const facts = kept && factsOfKeptAnswer(kept)
      if (!facts || !isGiven(kept)) return 'make'
      if (pieces) first.replay(kept.head, pieces)
      return { kept, facts }
    } finally {
      read.end()
    }
  }

  beforeWaiting(_first: SharedAnswer, { incoming }: CachedCall): void {
    incoming.response.needsUpstream()
  }

  attach(first: SharedAnswer, call: CachedCall): Promise<MissedAnswer | undefined> {
    // The charge for a hit depends on the final cost, so bytes are sent before the end only if hits are free.
    const isLive = call.options.price.digits === 0n && first.mayBeReused(first.call.wanted, call.wanted)
    return isLive ? this.#giveLive(first, call) : this.#giveAtEnd(first, call)
  }

  async replay({ kept, facts }: CachedAnswer, first: SharedAnswer, call: CachedCall): Promise<boolean> {
    const { caller, wanted, incoming } = call
    if (isTooOld(kept, call.control.maxAgeMs)) return false
    const ageMs = Math.max(0, Date.now() - kept.createdMs)
    const { headers } = kept.head
    if (kept.bytes <= MAX_READ_AT_ONCE)
      return this.#give(await first.bodyFor(facts, wanted), facts, headers, ageMs, call)
    const read = this.#services.reads.of(caller.user.id)
    try {
      if (!first.mayBeReused(facts, wanted)) {
        await read.begin()
        await read.hold(kept.bytes)
        const body = await first.converted(facts, wanted, await this.#services.answers.pieces(kept, read))
        return await this.#give(body && [body], facts, headers, ageMs, call)
      }
      const length = { 'content-length': String(kept.bytes) }
      const head = { ...kept.head, headers: { ...headersSharedByHits(headers), ...length } }
      await this.#services.answers.send({ ...kept, head }, incoming.response, read, {
        headers: cacheHitHeaders(call, ageMs, facts),
        begin: () => this.#hits.settle(call, facts, 'complete', call.ways.repeat()),
      })
      return true
    } catch (error) {
      // The answer was removed in the meantime.
      if (error instanceof GatewayError && error.code === 'not_found') return false
      throw error
    } finally {
      read.end()
    }
  }

  async make(first: SharedAnswer, recorded: IncomingCall): Promise<void> {
    const { caller, model, ways } = first.call
    first.recorded = recorded
    first.keeping = await this.#services.answers.begin({
      kind: 'cache',
      userId: caller.user.id,
      tokenId: caller.token.id,
      model,
      onRemoved: () => (first.isRemoved = true),
    })
    this.#services.metrics.add('answerCache', 1, 'miss')
    await ways.make(recorded, first)
  }

  factsOf({ made, call }: SharedAnswer, { hasFailed }: IncomingCall): AnswerFacts | undefined {
    return hasFailed === true ? undefined : answerFactsOfCall(made?.settlement, call)
  }

  async keep(first: SharedAnswer, facts: AnswerFacts, { head, pieces }: CompleteAnswer): Promise<void> {
    const { caller, model, lookup, ttlMs, owner } = first.call
    if (!pieces || head.status !== 200) return
    // The answer of a fallback model is not kept under the name of the requested model.
    if (first.made?.model !== model) return
    if (first.isRemoved || !(await this.#conversions.mayBeKept(first.toRead(facts, pieces), owner))) return
    const createdMs = Date.now()
    const isKept = await this.#services.answers
      .keep(
        {
          kind: 'cache',
          key: lookup,
          userId: caller.user.id,
          tokenId: caller.token.id,
          model,
          head: { status: 200, headers: headersSharedByHits(head.headers) },
          facts: JSON.stringify(facts),
          pieces,
          createdMs,
          expiresMs: createdMs + ttlMs,
        },
        first.keeping,
      )
      .catch(() => false)
    this.#services.metrics.add('answerCache', 1, isKept ? 'kept' : 'not_kept')
  }

  /** Other processes are not asked: a claim is local to this process. */
  async release(): Promise<void> {}

  over({ keeping }: SharedAnswer): void {
    keeping?.end()
  }

  /** Sends the answer of a running call to another client as its bytes arrive. */
  async #giveLive(first: SharedAnswer, call: CachedCall): Promise<MissedAnswer | undefined> {
    const { incoming, routes } = call
    const { response } = incoming
    await this.#services.limits.countModel(incoming, routes.requestedModel)
    const repeat = call.ways.repeat()
    try {
      // Before a whole answer is sent, it is known whether it ended with a failure.
      const mayBegin = (): boolean => first.recorded?.hasFailed !== true
      if (!(await first.answer.attach(response, cacheHitHeaders(call, 0), mayBegin))) {
        repeat.ended(false)
        return {}
      }
    } catch (error) {
      repeat.ended(false)
      return { error }
    }
    const facts = response.isAborted ? undefined : await first.facts.promise
    const reason = response.isAborted ? 'client_gone' : facts ? 'complete' : 'cut'
    if (reason === 'cut') incoming.hasFailed = true
    await this.#hits.settle(call, facts, reason, repeat)
    return undefined
  }

  /** Waits for the end of the running call, and sends its answer in the form that the client wants. */
  async #giveAtEnd(first: SharedAnswer, call: CachedCall): Promise<MissedAnswer | undefined> {
    let isThere: boolean
    try {
      isThere = await first.waitFor(call.incoming.response)
    } catch (error) {
      return { error }
    }
    const facts = isThere ? await first.facts.promise : undefined
    const end = facts && (await first.answer.end)
    if (!facts || end?.kind !== 'complete') return {}
    const body = await first.bodyFor(facts, call.wanted)
    return (await this.#give(body, facts, end.head.headers, 0, call)) ? undefined : {}
  }

  /** Charges the call, and then sends an answer that is completely in memory. */
  async #give(
    body: readonly Buffer[] | undefined,
    facts: AnswerFacts,
    head: ResponseHeaders,
    ageMs: number,
    call: CachedCall,
  ): Promise<boolean> {
    const { owner, wanted, incoming } = call
    const held = new ResizableAllocation(this.#services.memory, owner)
    if (!body || !held.take(body.reduce((sum, { length }) => sum + length, 0))) return false
    // The memory is held until the client has read the answer.
    incoming.response.onClosed(() => held.release())
    const repeat = call.ways.repeat()
    try {
      await this.#hits.settle(call, facts, 'complete', repeat)
    } catch (error) {
      held.release()
      throw error
    }
    if (incoming.response.isAborted) {
      held.release()
      return true
    }
    incoming.response
      .writeHead(200, {
        ...headersSharedByHits(head),
        'content-type':
          wanted.form === facts.form ? (head['content-type'] ?? '') : CONTENT_TYPES[wanted.form],
        ...cacheHitHeaders(call, ageMs, facts),
      })
      .end(joined(body))
    return true
  }
}

function joined(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces
  return pieces.length === 1 && only ? only : Buffer.concat(pieces)
}

function isTooOld({ createdMs }: KeptAnswer, maxAgeMs: number | undefined): boolean {
  return maxAgeMs !== undefined && Date.now() - createdMs > maxAgeMs
}
