import type { ResponseHeaders } from '@sluice/http1'
import { writeUsageCounts } from '@sluice/wire/chat'
import { parseRecord } from '@sluice/wire/json/record'
import { promptTokens } from '@sluice/wire/usage'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { SettlementReason } from '../../domain/call-outcome.ts'
import type { KeptAnswer } from '../../domain/kept-answer.ts'
import type { CacheOptions } from '../../domain/options.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { Settlement } from '../../domain/records/usage.ts'
import type { Settings } from '../../domain/settings.ts'
import { idHeaders } from '../../http/id-headers.ts'
import { type RequestMemory, ResizableAllocation } from '../../limits/request-memory.ts'
import type { StoreReads } from '../../limits/store-reads.ts'
import type { KeptAnswers } from '../answers/kept-answers.ts'
import type { Body, FormBody } from '../body-reader.ts'
import type { Call } from '../call.ts'
import type { DialectFacts } from '../dialects/dialect.ts'
import { type CallGuards, GUARDS_HEADER } from '../guards/call-guards.ts'
import type { IncomingCall, ParsedRequest } from '../request-stages.ts'
import type { Routes } from '../routing.ts'
import { type BodyForm, CONTENT_TYPES, isSameBody, mayBeKept, type WantedBody } from './answer-bodies.ts'
import type { EqualRequest } from './answer-keeping.ts'
import { configurationVersion } from './configuration-version.ts'
import { type HitServices, Hits } from './hits.ts'
import { type AnswerFacts, type AnswerSource, SharedAnswer } from './shared-answer.ts'

/** Answers up to this size are kept and shared. */
const MAX_BYTES = 33_554_432
/** Calls that failed under a waiting one before it asks for itself, without others. */
const MAX_FAILURES = 2
/** Headers of an answer that do not belong to its call alone. */
const SHARED_HEADERS = [
  'content-type',
  'cache-control',
  'x-accel-buffering',
  'x-gateway-dropped',
  'x-gateway-model',
]

/** Reasons of calls that came to their own end. */
const WHOLE_REASONS: readonly SettlementReason[] = ['complete', 'estimated']

/** Services that the cache needs. */
export interface AnswerCacheServices extends HitServices {
  readonly answers: KeptAnswers
  readonly reads: StoreReads
  readonly memory: RequestMemory
  /** HMAC with the gateway's secret. */
  readonly tag: (text: string) => string
}

/** A request that was checked, and has passed the limits of its key, its user and its model. */
export interface AdmittedRequest {
  readonly dialect: DialectFacts
  readonly body: Body | FormBody
  readonly caller: Caller
  readonly settings: Settings
  readonly request: ParsedRequest
  readonly routes: Routes
  /** The guards that have checked the request, and check its answer; absent if none apply. */
  readonly guards?: CallGuards
}

/** A call whose answer may be kept, or shared with equal calls. */
export interface SharableCall extends AdmittedRequest {
  readonly options: CacheOptions
  readonly equal: EqualRequest
  readonly wanted: WantedBody
  /** How long its answer is kept, in milliseconds. */
  readonly ttlMs: number
  /** Finds equal calls. */
  readonly lookup: string
}

/** What a call reports while it is carried out for the cache. */
export interface Leading {
  /** Set when the call is admitted. */
  call?: Call
}

/** Carries a call out; the response may be another than its client's. */
type AskUpstream = (incoming: IncomingCall, leading: Leading) => Promise<void>

/** Gives equal calls one answer: from the store, or from the first of them under way. `docs/answer-cache.md`. */
export class AnswerCache {
  readonly #services: AnswerCacheServices
  readonly #hits: Hits
  readonly #underWay = new Map<string, SharedAnswer>()

  constructor(services: AnswerCacheServices) {
    this.#services = services
    this.#hits = new Hits(services)
  }

  /** A call whose answer may be shared; undefined if it may not. */
  sharable(admitted: AdmittedRequest): SharableCall | undefined {
    const { settings, caller, request, dialect, routes } = admitted
    const { cache: options } = settings.options
    const { equal } = request
    const [first] = routes.resolutions
    if (!options || !equal || !first || request.isFree || equal.control.noStore) return undefined
    const isFallback = first.name !== request.model && routes.requestedModel.fallback.includes(first.name)
    if (isFallback || (equal.keeping.mayBeStored && mayStore(settings, first.channels))) return undefined
    const ttlMs = ttlOf(options, first.model.cache, equal.control.maxAgeMs)
    if (ttlMs === 0) return undefined
    const { token, user } = caller
    const owner = { token: token.id, user: user.id, group: first.group.name }[options.scope]
    const key = [
      [options.scope, owner, first.group.name],
      [dialect.name, equal.keeping.endpoint, first.name],
      [configurationVersion(settings), first.model.priceMoment ?? ''],
      // Those with other guards would get another answer, and those with other values another one put back.
      admitted.guards?.all.map(({ guard }) => guard) ?? [],
      [...(admitted.guards?.pseudonyms.entries() ?? [])],
      equal.identity(),
    ]
    return {
      ...admitted,
      options,
      equal,
      ttlMs,
      wanted: { form: formOf(request), includeUsage: equal.includeUsage },
      lookup: this.#services.tag(JSON.stringify(key)),
    }
  }

  /** Answers a call: from the store, by an equal call under way, or by carrying it out. */
  async answer(call: SharableCall, incoming: IncomingCall, ask: AskUpstream): Promise<void> {
    const maxFailures = call.equal.control.noCache ? -1 : MAX_FAILURES
    for (let failures = 0; failures <= maxFailures; failures += 1) {
      const known = this.#underWay.get(call.lookup)
      if (!known) return this.#lead(call, incoming, ask)
      known.enter()
      try {
        if (await this.#follow(known, call, incoming)) return
      } finally {
        known.leave()
      }
      if (incoming.response.isAborted) return
    }
    return this.#askAlone(call, incoming, ask)
  }

  /** Looks for a kept answer, or carries out the first of equal calls, for which others wait meanwhile. */
  async #lead(call: SharableCall, incoming: IncomingCall, ask: AskUpstream): Promise<void> {
    const answer = this.#sharedAnswer(call)
    this.#underWay.set(call.lookup, answer)
    let isGiven = true
    try {
      const source = await this.#find(answer, call)
      answer.comesFrom(source)
      if (source === 'call') await this.#carryOut(answer, call, incoming, ask)
      else isGiven = await this.#giveKept(answer, source, call, incoming)
    } finally {
      this.#over(answer, call)
    }
    if (!isGiven) await this.#askAlone(call, incoming, ask)
  }

  /** Carries out a call for which no others wait. */
  async #askAlone(call: SharableCall, incoming: IncomingCall, ask: AskUpstream): Promise<void> {
    const answer = this.#sharedAnswer(call)
    answer.comesFrom('call')
    try {
      await this.#carryOut(answer, call, incoming, ask)
    } finally {
      this.#over(answer, call)
    }
  }

  #over(answer: SharedAnswer, { lookup }: SharableCall): void {
    answer.comesFrom('call')
    answer.endedAs(undefined)
    if (this.#underWay.get(lookup) === answer) this.#underWay.delete(lookup)
    answer.leave()
  }

  #sharedAnswer({ caller: { user, token }, equal, wanted }: SharableCall): SharedAnswer {
    const owner = { client: user.id, key: token.id }
    return new SharedAnswer(
      { memory: this.#services.memory, owner, maxBytes: MAX_BYTES },
      equal.keeping,
      wanted,
    )
  }

  /** Looks for a kept answer, and reads it. */
  async #find(answer: SharedAnswer, { equal, lookup, caller }: SharableCall): Promise<AnswerSource> {
    const { answers, reads } = this.#services
    // Without its database the cache is empty; the call itself is refused if it cannot be recorded.
    const kept = await answers.find('cache', lookup).catch(() => undefined)
    const facts = kept && factsIn(kept)
    if (!kept || !facts || isTooOld(kept, equal.control.maxAgeMs)) return 'call'
    const read = reads.of(caller.user.id)
    try {
      const pieces: Buffer[] = []
      for await (const part of answers.parts(kept, read)) pieces.push(part)
      answer.replay(kept.head, pieces)
      return { kept, facts }
    } catch {
      // It was removed meanwhile, or cannot be read now: its call is carried out, like any other.
      return 'call'
    } finally {
      read.end()
    }
  }

  async #carryOut(
    answer: SharedAnswer,
    call: SharableCall,
    incoming: IncomingCall,
    ask: AskUpstream,
  ): Promise<void> {
    const { answer: underWay } = answer
    const leading: Leading = {}
    this.#services.metrics.add('answerCache', 1, 'miss')
    const attached = underWay.attach(incoming.response)
    // It is awaited below, after the call itself.
    attached?.catch(() => {})
    const led: IncomingCall = { ...incoming, response: underWay.recorder }
    try {
      await ask(led, leading)
      if (!underWay.recorder.hasEnded) underWay.recorder.destroy()
    } catch (error) {
      underWay.fail(error)
    }
    if (led.isTraced) incoming.isTraced = true
    if (led.hasFailed !== undefined) incoming.hasFailed = led.hasFailed
    const end = await underWay.end
    const facts = end.kind === 'complete' ? factsOf(leading.call?.settlement, call) : undefined
    answer.endedAs(facts)
    // Until it is kept, the newest answer is given from here.
    if (facts) this.#underWay.set(call.lookup, answer)
    if (facts && end.kind === 'complete' && end.pieces && end.head.status === 200)
      await this.#keep(call, facts, end.head.headers, end.pieces, leading)
    await attached
    if (end.kind === 'failed') throw end.error
  }

  async #keep(
    { caller, routes, equal, request, lookup, ttlMs }: SharableCall,
    facts: AnswerFacts,
    head: ResponseHeaders,
    pieces: readonly Buffer[],
    { call }: Leading,
  ): Promise<void> {
    // The answer of a fallback is not that of the model.
    if (call?.plan.request.model !== routes.resolutions[0]?.name) return
    const { form, includeUsage, usage } = facts
    const bytes = Buffer.concat(pieces)
    if (!mayBeKept({ keeping: equal.keeping, form, includeUsage, usage, bytes })) return
    const createdMs = Date.now()
    const isKept = await this.#services.answers
      .keep({
        kind: 'cache',
        lookup,
        userId: caller.user.id,
        tokenId: caller.token.id,
        model: request.model,
        head: { status: 200, headers: sharedHeaders(head) },
        facts: JSON.stringify(facts),
        pieces,
        createdMs,
        expiresMs: createdMs + ttlMs,
      })
      .catch(() => false)
    this.#services.metrics.add('answerCache', 1, isKept ? 'kept' : 'not_kept')
  }

  /** Gives a client the answer of another call. Resolves to false if that is of no use to it. */
  async #follow(answer: SharedAnswer, call: SharableCall, incoming: IncomingCall): Promise<boolean> {
    incoming.response.needsUpstream()
    const source = await answer.source
    if (source !== 'call')
      return (
        !isTooOld(source.kept, call.equal.control.maxAgeMs) && this.#giveKept(answer, source, call, incoming)
      )
    // What a hit costs is known at the end alone; until then only free ones are delivered.
    const isLive =
      call.options.price.digits === 0n &&
      isSameBody({ keeping: answer.keeping, ...answer.given }, call.wanted)
    return isLive ? this.#giveLive(answer, call, incoming) : this.#giveAtEnd(answer, call, incoming)
  }

  async #giveKept(
    answer: SharedAnswer,
    { kept, facts }: Exclude<AnswerSource, 'call'>,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<boolean> {
    const ageMs = Math.max(0, Date.now() - kept.createdMs)
    return this.#giveWhole(answer, facts, kept.head.headers, ageMs, call, incoming)
  }

  /** Sends the bytes as they come. */
  async #giveLive(answer: SharedAnswer, call: SharableCall, incoming: IncomingCall): Promise<boolean> {
    const { response } = incoming
    const attached = answer.answer.attach(response, headersOf(call, incoming, 0))
    if (!attached) return false
    try {
      await attached
    } catch {
      return false
    }
    const facts = response.isAborted ? undefined : await answer.facts
    const reason = response.isAborted ? 'client_gone' : facts ? 'complete' : 'cut'
    if (reason === 'cut') incoming.hasFailed = true
    await this.#hits.settle(call, incoming, facts, reason)
    return true
  }

  /** Waits for the end of the call, and sends its answer in the form that the client wants. */
  async #giveAtEnd(answer: SharedAnswer, call: SharableCall, incoming: IncomingCall): Promise<boolean> {
    let isThere: boolean
    try {
      isThere = await answer.waitFor(incoming.response)
    } catch {
      return false
    }
    const facts = isThere ? await answer.facts : undefined
    const end = facts && (await answer.answer.end)
    if (!facts || end?.kind !== 'complete') return false
    return this.#giveWhole(answer, facts, end.head.headers, 0, call, incoming)
  }

  /** Charges a hit, and then sends an answer that is there as a whole. */
  async #giveWhole(
    answer: SharedAnswer,
    facts: AnswerFacts,
    head: ResponseHeaders,
    ageMs: number,
    call: SharableCall,
    incoming: IncomingCall,
  ): Promise<boolean> {
    const body = await answer.bodyFor(facts, call.wanted)
    const { token, user } = call.caller
    const held = new ResizableAllocation(this.#services.memory, { client: user.id, key: token.id })
    if (!body || !held.take(body.length)) return false
    // Until its client has read it.
    incoming.response.onClosed(() => held.release())
    try {
      await this.#hits.settle(call, incoming, facts, 'complete')
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
        ...sharedHeaders(head),
        'content-type':
          call.wanted.form === facts.form ? (head['content-type'] ?? '') : CONTENT_TYPES[call.wanted.form],
        ...headersOf(call, incoming, ageMs, facts),
      })
      .end(body)
    return true
  }
}

/** Headers of a hit that belong to its call. */
function headersOf(
  { dialect, request, guards }: SharableCall,
  { id }: IncomingCall,
  ageMs: number,
  facts?: AnswerFacts,
): ResponseHeaders {
  const verdicts = (request.stream ? guards?.ofRequest : facts?.guards) ?? ''
  return {
    ...idHeaders(id, dialect.name),
    ...(verdicts !== '' && { [GUARDS_HEADER]: verdicts }),
    'x-gateway-cache': 'hit',
    age: String(Math.floor(ageMs / 1_000)),
  }
}

function sharedHeaders(head: ResponseHeaders): Record<string, string> {
  return Object.fromEntries(
    SHARED_HEADERS.flatMap((name) => (head[name] === undefined ? [] : [[name, head[name]]])),
  )
}

function formOf({ stream, streamType }: ParsedRequest): BodyForm {
  if (!stream) return 'whole'
  return streamType === undefined ? 'events' : 'array'
}

/** Whether a channel or the gateway stores a response that its request does not want unstored. */
function mayStore({ options }: Settings, channels: readonly Channel[]): boolean {
  return (
    options.keep_responses > 0 ||
    channels.some(({ protocol, disable_store }) => protocol.includes('responses') && !disable_store)
  )
}

/** How long an answer is kept; 0 if nothing says so. A model with the time 0 is turned out. */
function ttlOf(
  { ttl, max_ttl }: CacheOptions,
  ofModel: number | undefined,
  maxAgeMs: number | undefined,
): number {
  const usual = ofModel ?? ttl
  if (usual > 0 || ofModel === 0) return usual
  return Math.min(maxAgeMs ?? 0, max_ttl)
}

function isTooOld({ createdMs }: KeptAnswer, maxAgeMs: number | undefined): boolean {
  return maxAgeMs !== undefined && Date.now() - createdMs > maxAgeMs
}

/** What is told to others of a call that came to its end; undefined of any other. */
function factsOf(
  settlement: Settlement | undefined,
  { equal, wanted }: SharableCall,
): AnswerFacts | undefined {
  if (!settlement || !WHOLE.has(settlement.reason)) return undefined
  const { quota, usage, model } = settlement
  return {
    quota,
    tokens: promptTokens(usage) + usage.output,
    model,
    form: wanted.form,
    includeUsage: wanted.includeUsage,
    ...(settlement.guards && { guards: settlement.guards }),
    ...(equal.keeping.hasUsageOption && { usage: writeUsageCounts(usage) }),
  }
}

const WHOLE: ReadonlySet<SettlementReason> = new Set(WHOLE_REASONS)

/** The facts of a kept answer, as another version of the gateway may have written them. */
function factsIn({ facts }: KeptAnswer): AnswerFacts | undefined {
  const read = parseRecord(facts) as Partial<AnswerFacts> | undefined
  if (!Number.isSafeInteger(read?.quota) || !Number.isSafeInteger(read?.tokens)) return undefined
  return read?.form !== undefined && read.form in CONTENT_TYPES && typeof read.model === 'string'
    ? (read as AnswerFacts)
    : undefined
}
