import type { ResponseHeaders } from '@sluice/http1'
import { GatewayError } from '../../errors.ts'
import type { StartWatch } from '../../ipc/service.ts'
import { type RequestMemory, ResizableAllocation } from '../../limits/request-memory.ts'
import type { StoreRead, StoreReads } from '../../limits/store-reads.ts'
import type { IdempotencyClaims } from './idempotent-calls.ts'
import type { KeepingCall, KeptAnswer, KeptAnswers } from './kept-answers.ts'
import type { AdmittedCallReport, AdmittedRequest } from '../call-admission.ts'
import { UpstreamRefusal } from '../failure.ts'
import type { IncomingCall } from '../request-stages.ts'
import { CONTENT_TYPES, canReuseAnswerBody } from './answer-bodies.ts'
import { AnswerConversions, type AnswerToRead } from './answer-conversions.ts'
import { type AnswerFacts, factsOfKeptAnswer, answerFactsOfCall } from './answer-facts.ts'
import { cacheHitHeaders, headersSharedByHits } from './hit-headers.ts'
import { type CacheHitServices, CacheHits } from './cache-hits.ts'
import { type SharableCall, sharableCall } from './sharable-call.ts'
import { type AnswerSource, SharedAnswer } from './shared-answer.ts'

/** Answers up to this number of bytes are kept and shared. */
const MAX_BYTES = 33_554_432
/**
 * Kept answers with more bytes than this are read from the store separately for each client, while they are
 * sent.
 */
const MAX_READ_AT_ONCE = 1_048_576
/**
 * Maximum number of failed calls for which an equal call waits. After that, the waiting call gets the
 * upstream's error, or asks the upstream itself while no other call waits for it.
 */
const MAX_MISSES = 3

/** Services that the answer cache needs. */
export interface AnswerCacheServices extends CacheHitServices {
  readonly answers: KeptAnswers
  readonly reads: StoreReads
  readonly memory: RequestMemory
  readonly threads: StartWatch
  readonly claims: Pick<IdempotencyClaims, 'tag'>
}

/** Result of waiting for another call that gave no answer. */
interface MissedAnswer {
  /** The error with which the other call failed, if it did. */
  readonly error?: unknown
}

/** Makes a call to an upstream. The response in `incoming` may be a recorder instead of the client's. */
type AskUpstream = (incoming: IncomingCall, report: AdmittedCallReport) => Promise<void>

/**
 * Gives equal calls one answer: a stored one, or that of the first equal call that is running.
 * `docs/answer-cache.md`.
 */
export class AnswerCache {
  readonly #services: AnswerCacheServices
  readonly #hits: CacheHits
  readonly #conversions: AnswerConversions
  readonly #underWay = new Map<string, SharedAnswer>()

  constructor(services: AnswerCacheServices) {
    this.#services = services
    this.#hits = new CacheHits(services)
    this.#conversions = new AnswerConversions(services)
  }

  /** Ends the thread that converts large answers. */
  close(): Promise<void> {
    return this.#conversions.close()
  }

  /** Returns the call if its answer may be shared; otherwise undefined. */
  sharable(admitted: AdmittedRequest): SharableCall | undefined {
    return sharableCall(admitted, (text) => this.#services.claims.tag('answer', text))
  }

  /** Answers a call: from the store, with the answer of an equal running call, or by asking the upstream. */
  async answer(call: SharableCall, incoming: IncomingCall, ask: AskUpstream): Promise<void> {
    const mostMisses = call.equal.control.noCache ? 0 : MAX_MISSES
    for (let misses = 1; misses <= mostMisses; misses += 1) {
      const known = this.#underWay.get(call.lookup)
      if (!known) return this.#lead(call, incoming, ask)
      const missed = await this.#join(known, call, incoming)
      if (!missed || incoming.response.isAborted) return
      if (misses === mostMisses && isOfUpstream(missed.error)) throw missed.error
    }
    return this.#askAlone(call, incoming, ask)
  }

  /** Lets a call wait for the answer of the first of equal calls. */
  async #join(
    answer: SharedAnswer,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<MissedAnswer | undefined> {
    answer.enter()
    try {
      return await this.#follow(answer, call, incoming)
    } finally {
      answer.leave()
    }
  }

  /**
   * Looks for a kept answer or asks the upstream, as the first of equal calls; the others wait for it
   * meanwhile.
   */
  async #lead(call: SharableCall, incoming: IncomingCall, ask: AskUpstream): Promise<void> {
    const answer = this.#sharedAnswer(call)
    this.#underWay.set(call.lookup, answer)
    let isGiven = true
    try {
      const source = await this.#findKept(answer, call)
      answer.comesFrom(source)
      if (source === 'call') await this.#carryOut(answer, call, incoming, ask)
      else isGiven = await this.#giveKept(answer, source, call, incoming)
    } finally {
      this.#over(answer, call)
    }
    if (!isGiven) await this.#askAlone(call, incoming, ask)
  }

  /** Asks the upstream for a call that no other call waits for. */
  async #askAlone(call: SharableCall, incoming: IncomingCall, ask: AskUpstream): Promise<void> {
    const answer = this.#sharedAnswer(call)
    answer.comesFrom('call')
    try {
      await this.#carryOut(answer, call, incoming, ask)
    } finally {
      this.#over(answer, call)
    }
  }

  #over(answer: SharedAnswer, call: SharableCall): void {
    answer.comesFrom('call')
    this.#forget(answer, call)
    answer.endedAs(undefined)
    answer.leave()
  }

  /** Ensures that later calls do not wait for this answer. */
  #forget(answer: SharedAnswer, { lookup }: SharableCall): void {
    if (this.#underWay.get(lookup) === answer) this.#underWay.delete(lookup)
  }

  #sharedAnswer({ caller: { user, token }, equal, wanted }: SharableCall): SharedAnswer {
    const owner = { client: user.id, key: token.id }
    const inputs = {
      memory: this.#services.memory,
      conversions: this.#conversions,
      owner,
      maxBytes: MAX_BYTES,
    }
    return new SharedAnswer(inputs, equal.keeping, wanted)
  }

  /** Looks for a kept answer, and reads it. */
  async #findKept(answer: SharedAnswer, { equal, lookup, caller }: SharableCall): Promise<AnswerSource> {
    const { answers, reads } = this.#services
    // If the database is unavailable, the cache counts as empty. Whether the call can be made is decided
    // elsewhere.
    const kept = await answers.find('cache', lookup, caller.user.id).catch(() => undefined)
    const facts = kept && factsOfKeptAnswer(kept)
    if (!kept || !facts || isTooOld(kept, equal.control.maxAgeMs)) return 'call'
    if (kept.bytes > MAX_READ_AT_ONCE) return { kept, facts }
    const read = reads.of(caller.user.id)
    try {
      answer.replay(kept.head, await this.#pieces(kept, read))
      return { kept, facts }
    } catch {
      // The answer was removed in the meantime or cannot be read now, so the upstream is asked.
      return 'call'
    } finally {
      read.end()
    }
  }

  async #pieces(kept: KeptAnswer, read: StoreRead): Promise<Buffer[]> {
    const pieces: Buffer[] = []
    for await (const part of this.#services.answers.parts(kept, read)) pieces.push(part)
    return pieces
  }

  async #carryOut(
    answer: SharedAnswer,
    call: SharableCall,
    incoming: IncomingCall,
    ask: AskUpstream,
  ): Promise<void> {
    const { caller, request } = call
    const keeping = await this.#services.answers.begin({
      kind: 'cache',
      userId: caller.user.id,
      tokenId: caller.token.id,
      model: request.model,
      // Later calls do not wait for an answer that was removed.
      onRemoved: () => this.#forget(answer, call),
    })
    try {
      await this.#carryOutToKeep(answer, call, incoming, ask, keeping)
    } finally {
      keeping.end()
    }
  }

  async #carryOutToKeep(
    answer: SharedAnswer,
    call: SharableCall,
    incoming: IncomingCall,
    ask: AskUpstream,
    keeping: KeepingCall,
  ): Promise<void> {
    const { answer: underWay } = answer
    const report: AdmittedCallReport = {}
    this.#services.metrics.add('answerCache', 1, 'miss')
    // The error of the answer is ignored, because the same error is thrown at the end of this method.
    const attached = underWay.attach(incoming.response)?.catch(() => true)
    const recorded: IncomingCall = { ...incoming, response: underWay.recorder }
    try {
      await ask(recorded, report)
      if (!underWay.recorder.hasEnded) underWay.recorder.destroy()
    } catch (error) {
      underWay.fail(error, incoming.response)
    }
    if (recorded.isTraced) incoming.isTraced = true
    if (recorded.hasFailed !== undefined) incoming.hasFailed = recorded.hasFailed
    const end = await underWay.end
    const facts = end.kind === 'complete' ? answerFactsOfCall(report.call?.settlement, call) : undefined
    // Must come before `endedAs`, which tells waiting calls that this answer is useless.
    if (!facts) this.#forget(answer, call)
    answer.endedAs(facts)
    // Until the answer is stored, later calls get it from memory.
    if (facts && !keeping.isRemoved) this.#underWay.set(call.lookup, answer)
    if (facts && end.kind === 'complete' && end.pieces && end.head.status === 200)
      await this.#keep(call, answer.toRead(facts, end.pieces), facts, end.head.headers, report, keeping)
    if ((await attached) === false) incoming.response.destroy()
    if (end.kind === 'failed') throw end.error
  }

  async #keep(
    { caller, routes, request, lookup, ttlMs }: SharableCall,
    answer: AnswerToRead,
    facts: AnswerFacts,
    head: ResponseHeaders,
    { call }: AdmittedCallReport,
    keeping: KeepingCall,
  ): Promise<void> {
    // The answer of a fallback model is not kept under the name of the requested model.
    if (call?.plan.request.model !== routes.resolutions[0]?.name) return
    const owner = { client: caller.user.id, key: caller.token.id }
    if (keeping.isRemoved || !(await this.#conversions.mayBeKept(answer, owner))) return
    const createdMs = Date.now()
    const isKept = await this.#services.answers
      .keep(
        {
          kind: 'cache',
          key: lookup,
          userId: caller.user.id,
          tokenId: caller.token.id,
          model: request.model,
          head: { status: 200, headers: headersSharedByHits(head) },
          facts: JSON.stringify(facts),
          pieces: answer.pieces,
          createdMs,
          expiresMs: createdMs + ttlMs,
        },
        keeping,
      )
      .catch(() => false)
    this.#services.metrics.add('answerCache', 1, isKept ? 'kept' : 'not_kept')
  }

  /**
   * Gives a client the answer of another call. If there is none to give, waits for the end of that call and
   * resolves to the reason.
   */
  async #follow(
    answer: SharedAnswer,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<MissedAnswer | undefined> {
    incoming.response.needsUpstream()
    const source = await answer.source
    if (source !== 'call') {
      const isOld = isTooOld(source.kept, call.equal.control.maxAgeMs)
      return !isOld && (await this.#giveKept(answer, source, call, incoming)) ? undefined : {}
    }
    // An answer that ended with an error is not given to other calls.
    if (answer.answer.hasEnded && !(await answer.facts)) return {}
    // The charge for a hit depends on the final cost, so bytes are sent before the end only if hits are free.
    const isLive =
      call.options.price.digits === 0n &&
      canReuseAnswerBody({ keeping: answer.keeping, ...answer.given }, call.wanted)
    const missed = await (isLive
      ? this.#giveLive(answer, call, incoming)
      : this.#giveAtEnd(answer, call, incoming))
    if (missed) await answer.facts
    return missed
  }

  async #giveKept(
    answer: SharedAnswer,
    source: Exclude<AnswerSource, 'call'>,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<boolean> {
    const { kept, facts } = source
    const ageMs = Math.max(0, Date.now() - kept.createdMs)
    if (kept.bytes <= MAX_READ_AT_ONCE)
      return this.#giveWhole(answer, facts, kept.head.headers, ageMs, call, incoming)
    const read = this.#services.reads.of(call.caller.user.id)
    try {
      if (canReuseAnswerBody({ keeping: answer.keeping, ...facts }, call.wanted))
        await this.#sendKept(source, read, ageMs, call, incoming)
      else {
        await read.begin()
        await read.hold(kept.bytes)
        const pieces = await this.#pieces(kept, read)
        const body = await answer.converted(facts, call.wanted, pieces)
        return await this.#giveBody(body && [body], facts, kept.head.headers, ageMs, call, incoming)
      }
      return true
    } catch (error) {
      // The answer was removed in the meantime.
      if (error instanceof GatewayError && error.code === 'not_found') return false
      throw error
    } finally {
      read.end()
    }
  }

  /** Charges the call, and sends a large kept answer at the speed at which the client reads it. */
  async #sendKept(
    { kept, facts }: Exclude<AnswerSource, 'call'>,
    read: StoreRead,
    ageMs: number,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<void> {
    const { status, headers } = kept.head
    const head = {
      status,
      headers: { ...headersSharedByHits(headers), 'content-length': String(kept.bytes) },
    }
    await this.#services.answers.send({ ...kept, head }, incoming.response, read, {
      headers: cacheHitHeaders(call, incoming, ageMs, facts),
      begin: () => this.#hits.settle(call, incoming, facts, 'complete', this.#hits.capture(call, incoming)),
    })
  }

  /** Sends the answer of a running call to another client as its bytes arrive. */
  async #giveLive(
    answer: SharedAnswer,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<MissedAnswer | undefined> {
    const { response } = incoming
    const content = this.#hits.capture(call, incoming)
    try {
      if (!(await answer.answer.attach(response, cacheHitHeaders(call, incoming, 0)))) {
        content?.forget()
        return {}
      }
    } catch (error) {
      content?.forget()
      return { error }
    }
    const facts = response.isAborted ? undefined : await answer.facts
    const reason = response.isAborted ? 'client_gone' : facts ? 'complete' : 'cut'
    if (reason === 'cut') incoming.hasFailed = true
    await this.#hits.settle(call, incoming, facts, reason, content)
    return undefined
  }

  /** Waits for the end of the running call, and sends its answer in the form that the client wants. */
  async #giveAtEnd(
    answer: SharedAnswer,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<MissedAnswer | undefined> {
    let isThere: boolean
    try {
      isThere = await answer.waitFor(incoming.response)
    } catch (error) {
      return { error }
    }
    const facts = isThere ? await answer.facts : undefined
    const end = facts && (await answer.answer.end)
    if (!facts || end?.kind !== 'complete') return {}
    return (await this.#giveWhole(answer, facts, end.head.headers, 0, call, incoming)) ? undefined : {}
  }

  /** Charges the call, and then sends an answer that is completely in memory. */
  async #giveWhole(
    answer: SharedAnswer,
    facts: AnswerFacts,
    head: ResponseHeaders,
    ageMs: number,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<boolean> {
    const body = await answer.bodyFor(facts, call.wanted)
    return this.#giveBody(body, facts, head, ageMs, call, incoming)
  }

  async #giveBody(
    body: readonly Buffer[] | undefined,
    facts: AnswerFacts,
    head: ResponseHeaders,
    ageMs: number,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<boolean> {
    const { token, user } = call.caller
    const held = new ResizableAllocation(this.#services.memory, { client: user.id, key: token.id })
    if (!body || !held.take(body.reduce((sum, { length }) => sum + length, 0))) return false
    // The memory is held until the client has read the answer.
    incoming.response.onClosed(() => held.release())
    const content = this.#hits.capture(call, incoming)
    try {
      await this.#hits.settle(call, incoming, facts, 'complete', content)
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
          call.wanted.form === facts.form ? (head['content-type'] ?? '') : CONTENT_TYPES[call.wanted.form],
        ...cacheHitHeaders(call, incoming, ageMs, facts),
      })
      .end(joined(body))
    return true
  }
}

function joined(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces
  return pieces.length === 1 && only ? only : Buffer.concat(pieces)
}

/** Whether an upstream caused the error, so that other equal calls are likely to get it too. */
function isOfUpstream(error: unknown): boolean {
  return (
    error instanceof UpstreamRefusal || (error instanceof GatewayError && error.code === 'upstream_error')
  )
}

function isTooOld({ createdMs }: KeptAnswer, maxAgeMs: number | undefined): boolean {
  return maxAgeMs !== undefined && Date.now() - createdMs > maxAgeMs
}
