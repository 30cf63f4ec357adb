import type { Caller } from '../accounts/authentication/caller.ts'
import type { Settings } from '../domain/settings.ts'
import type { SimulatedCall, Simulation } from '../domain/simulation.ts'
import { BudgetExceeded, Unaffordable } from '../accounts/ledger/quota-refusal.ts'
import type { StoreRead, StoreReads } from '../limits/store-reads.ts'
import {
  type AdmissionServices,
  type AdmittedAttempts,
  CallAdmission,
  type MeasuredCall,
  type UnchargedCall,
} from './call-admission.ts'
import { type AttemptServices, Attempts, type LaterAnswer } from './attempts.ts'
import type { ReadingFeatures } from './reading-features.ts'
import type { Body, BodyReader, FormBody } from './body-reader.ts'
import { countTokens } from './count-tokens.ts'
import { type ClientDialects, clientDialects } from './dialects/client-dialects.ts'
import { Conversions } from './dialects/conversions.ts'
import type { CountTokensEndpoint } from './dialects/count-tokens.ts'
import { geminiDialect, type GeminiRequestPath } from './dialects/gemini/client-dialect.ts'
import { compactionDialect } from './dialects/responses/compaction.ts'
import type { AdmittedRequest, AnswerRead } from './answer-request.ts'
import type { Call } from './call.ts'
import type { OwnedLimit } from './call-limits.ts'
import type { Dialect } from './dialects/dialect.ts'
import type { MediaFetcher } from './media-fetcher.ts'
import {
  bodyOptions,
  type EndpointDialects,
  namedModel,
  parseRequest,
  readBody,
  scanRequest,
  withoutModelSuffix,
} from './parse-request.ts'
import { CallRates } from './plan.ts'
import { recordRefusal } from './record-refusal.ts'
import { type Routes, Routing } from './routing.ts'
import { RunningCalls } from './running-calls.ts'
import { withDisplayedAmounts } from './refusal-amounts.ts'
import { simulateCall } from './simulate-call.ts'
import type { AttemptRequest, ChannelPlan, ParsedRequest, Plan } from './request-stages.ts'
import type { IncomingCall } from './incoming-call.ts'
import { GatewayError } from '../errors.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { UpstreamKey } from '../upstreams/key-ring.ts'

const NOT_IN_BATCHES =
  "Invalid 'tools': the tools of this gateway cannot be used in batches; send the request to /v1/responses."

/** A call to something that is not a channel, such as an MCP server. */
export interface OtherCall {
  readonly dialect: Dialect
  readonly body: Body
  /** What is called, as a model with its price and a channel. */
  readonly routes: Routes
  /** Whether the call counts against the limits of its key and user. */
  readonly isCounted: boolean
  /** A further limit of the call. */
  readonly limit?: OwnedLimit
  /** Makes the call, and settles it. `stopping` is aborted when the gateway stops. */
  run(call: Call, plan: Plan, stopping: AbortSignal): Promise<void>
}

/** A request that was made for a channel, and not sent. */
export interface ComposedCall {
  readonly channel: Channel
  readonly plan: Plan
  readonly request: AttemptRequest
  /** The body as features have left it, in the client's dialect. */
  readonly body: Buffer
  /** What features have to know when the answer comes. */
  readonly suspended: string | undefined
}

/** The answer to a request that was made earlier, and by what it is charged. */
export interface LaterEnd {
  /** The one channel that has answered. */
  readonly routes: Routes
  readonly key: UpstreamKey
  readonly suspended: string | undefined
  readonly answer: LaterAnswer
}

export interface RelayServices extends AdmissionServices, AttemptServices {
  /** The current configuration. Each call keeps the one it began with. */
  readonly settings: () => Settings
  readonly bodies: BodyReader
  readonly media: MediaFetcher
  readonly reads: StoreReads
}

/** Relays calls: reads and admits them, tries channels, and ensures that each hold is settled. */
export class Relay {
  readonly running = new RunningCalls()
  readonly #services: RelayServices
  readonly #rates: CallRates
  /** Finds channels for calls. */
  readonly routing: Routing
  readonly #conversions: Conversions
  readonly #dialects: ClientDialects
  readonly #attempts: Attempts
  readonly #admission: CallAdmission
  readonly #stopping = new AbortController()

  constructor(services: RelayServices) {
    this.#services = services
    this.#rates = new CallRates()
    this.routing = new Routing(services.load, services.ends)
    const conversions = new Conversions(services.media)
    this.#conversions = conversions
    this.#dialects = clientDialects(conversions)
    this.#attempts = new Attempts(services)
    this.#admission = new CallAdmission(services, this.#rates, this.#attempts, this.running)
  }

  /** Determines which channels would get a call, without making the call. */
  simulate(caller: Caller, call: SimulatedCall): Promise<Simulation> {
    return simulateCall(this.#services, this.#dialects, caller, call)
  }

  /** Number of running streams. */
  get openStreams(): number {
    return this.#attempts.openStreams
  }

  /** Ends the running calls. Streams end with an error event; every call is settled. */
  stop(): void {
    this.#attempts.stop()
    this.#stopping.abort()
  }

  /** Stops the timer that watches running calls. */
  close(): void {
    this.#attempts.close()
    this.#services.lifeCycle.close()
  }

  /** Responds with the number of tokens that a request would have. */
  async countTokens(counting: CountTokensEndpoint, incoming: IncomingCall, caller: Caller): Promise<void> {
    const leave = await this.#services.limits.begin(caller)
    try {
      await countTokens(counting, incoming, caller, this.#services, (...request) => this.#relay(...request))
    } finally {
      leave()
    }
  }

  /** Makes a call of the gateway itself: it is charged and recorded like that of a client, and no feature answers it. */
  makeOwn(request: AdmittedRequest, incoming: IncomingCall): Promise<void> {
    return this.#admission.admit(request, incoming)
  }

  /** Makes a call that is neither charged nor recorded, because its answer was charged before. */
  makeUncharged(call: UnchargedCall, incoming: IncomingCall): Promise<void> {
    return this.#admission.makeUncharged(call, incoming)
  }

  /** Relays one call in the client's dialect. Rejects with the error for the client, if none was sent yet. */
  call(
    endpoint: keyof ClientDialects,
    incoming: IncomingCall,
    caller: Caller,
    settings = this.#services.settings(),
  ): Promise<void> {
    return this.callIn({ json: this.#dialects[endpoint] }, incoming, caller, settings)
  }

  /**
   * Checks a request like one that `call` relays, and returns the channels that would serve it; undefined if several calls
   * would answer it. Nothing is counted, reserved or sent. Rejects like `call`.
   */
  async check(
    endpoint: keyof ClientDialects,
    incoming: IncomingCall,
    caller: Caller,
  ): Promise<Routes | undefined> {
    const settings = this.#services.settings()
    const dialects = { json: this.#dialects[endpoint] }
    let body: Body | FormBody | undefined
    try {
      body = await readBody(this.#services.bodies, dialects, incoming, bodyOptions(caller, settings))
      const { read, reader, features } = this.#reading(dialects, body, caller, settings)
      const parsed = await parseRequest(read, incoming.request.headers, reader)
      const { routes } = this.#resolve(read, parsed, incoming, caller, settings)
      return read.scan && features.divide(read, settings) ? undefined : routes
    } catch (error) {
      recordRefusal(incoming, caller, { dialects, body }, error)
      throw error
    } finally {
      body?.release()
    }
  }

  /**
   * Checks the JSON request of a call that is to be made later, and resolves to what it would hold. Nothing is counted,
   * reserved or sent. Rejects like `call`.
   */
  async measure(
    endpoint: keyof ClientDialects,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
  ): Promise<MeasuredCall> {
    const dialects = { json: this.#dialects[endpoint] }
    const body = await this.#services.bodies.read(incoming, bodyOptions(caller, settings))
    try {
      const { read, reader, features } = this.#reading(dialects, body, caller, settings)
      if (read.scan && features.divide(read, settings))
        throw new GatewayError('invalid_request', NOT_IN_BATCHES)
      const parsed = await parseRequest(read, incoming.request.headers, reader)
      const found = this.#resolve(read, parsed, incoming, caller, settings)
      const { inBatch } = incoming
      const { dialect } = read
      return await this.#admission.measure({ dialect, body, settings, ...found, ...(inBatch && { inBatch }) })
    } finally {
      body.release()
    }
  }

  /**
   * Makes the request of a line of a provider's batch, without sending it. The call has no limits and no end: `answerLater`
   * ends it. Rejects with the error for the client.
   */
  async compose(
    endpoint: keyof ClientDialects,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
    choose: (plan: Plan) => ChannelPlan | undefined,
  ): Promise<ComposedCall> {
    const dialects = { json: this.#dialects[endpoint] }
    const body = await this.#services.bodies.read(incoming, bodyOptions(caller, settings))
    let composed: ComposedCall | undefined
    try {
      const { read, reader } = this.#reading(dialects, body, caller, settings)
      const parsed = await parseRequest(read, incoming.request.headers, reader)
      const { request, routes } = this.#resolve(read, parsed, incoming, caller, settings)
      const admission = this.#admissionBy(async (call, [plan]) => {
        const chosen = plan && choose(plan)
        if (!chosen) throw new GatewayError('batch_unsupported', 'no channel can batch this request')
        const refusal = await call.features.tried(call, plan, chosen)
        if (refusal) throw refusal
        const made = await this.#attempts.prepare(call, chosen)
        const { channel } = chosen
        composed = { channel, plan, request: made, body: plan.body, suspended: call.features.suspended() }
        // The call is settled when its answer has come.
        await call.hold.park()
      })
      await this.#services.lifeCycle.answer(
        { dialect: read.dialect, body, caller, settings, request, routes, read, reader },
        incoming,
        admission,
      )
      if (!composed) throw new Error('no request was made')
      return composed
    } finally {
      body.release()
    }
  }

  /**
   * Ends a call whose request was made by `compose`, with the answer to it. `later.channel` answers, at the prices of
   * `later.routes`. Rejects with the error for the client.
   */
  async answerLater(
    endpoint: keyof ClientDialects,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
    { routes, key, suspended, answer }: LaterEnd,
  ): Promise<void> {
    const dialects = { json: this.#dialects[endpoint] }
    const body = await this.#services.bodies.read(incoming, bodyOptions(caller, settings))
    try {
      const { read, reader } = this.#reading(dialects, body, caller, settings)
      const request = withoutModelSuffix(await parseRequest(read, incoming.request.headers, reader), settings)
      incoming.record.model = request.model
      const admission = this.#admissionBy(async (call, [plan]) => {
        const chosen = plan?.channels[0]
        if (!chosen) throw new Error('the channel of an answer is unknown')
        await this.#attempts.take(call, chosen, key, answer)
      })
      const known = this.#services.lifeCycle.resumed(suspended, { incoming, caller, settings })
      await admission.admit(
        { dialect: read.dialect, body, caller, settings, request, routes, read, reader },
        incoming,
        known,
      )
    } finally {
      body.release()
    }
  }

  #admissionBy(run: AdmittedAttempts['run']): CallAdmission {
    return new CallAdmission(this.#services, this.#rates, { isStopped: false, run }, this.running)
  }

  /** Relays a call of a Gemini client. Its path names the model, and whether the answer is streamed. */
  generate(target: GeminiRequestPath, incoming: IncomingCall, caller: Caller): Promise<void> {
    return this.callIn({ json: geminiDialect(this.#conversions, target) }, incoming, caller)
  }

  /** Relays a request to compact a conversation. */
  compact(incoming: IncomingCall, caller: Caller): Promise<void> {
    return this.callIn({ json: compactionDialect }, incoming, caller)
  }

  /** Relays one call in the dialects of its endpoint, as JSON or as a form. Rejects like `call`. */
  async callIn(
    dialects: EndpointDialects,
    incoming: IncomingCall,
    caller: Caller,
    settings = this.#services.settings(),
  ): Promise<void> {
    const leave = incoming.isPart ? undefined : await this.#services.limits.begin(caller)
    let body: Body | FormBody | undefined
    try {
      body = await readBody(this.#services.bodies, dialects, incoming, bodyOptions(caller, settings))
      const answer = this.#services.lifeCycle.read(incoming, settings)
      if (answer) await this.#answerRead(answer, dialects, body, incoming, caller, settings)
      else await this.#relay(dialects, body, incoming, caller, settings)
    } catch (error) {
      throw this.refusal(error, dialects, body, incoming, caller, settings)
    } finally {
      body?.release()
      leave?.()
    }
  }

  /**
   * Records that a call was refused, and returns the error for the client. `dialects` and `body` are absent if they are not known yet.
   */
  refusal(
    error: unknown,
    dialects: Partial<EndpointDialects>,
    body: Pick<Body, 'bytes'> | FormBody | undefined,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
  ): unknown {
    if (error instanceof BudgetExceeded) this.#services.ledger.exceededBudgets.note(error)
    const refusal = error instanceof Unaffordable ? withDisplayedAmounts(error, settings.options) : error
    recordRefusal(incoming, caller, { dialects, body }, refusal)
    return refusal
  }

  /** Makes a call to something that is not a channel, with all that a call has. The body stays allocated. Rejects like `call`. */
  async callOther(other: OtherCall, incoming: IncomingCall, caller: Caller): Promise<void> {
    const { dialect, body, routes, isCounted, limit } = other
    const { lifeCycle, limits } = this.#services
    const settings = this.#services.settings()
    const dialects = { json: dialect }
    let leave: (() => void) | undefined
    try {
      if (isCounted && !incoming.isPart) leave = await limits.begin(caller)
      const { read, reader } = this.#reading(dialects, body, caller, settings)
      const request = await parseRequest(read, incoming.request.headers, reader)
      incoming.record.model = request.model
      if (isCounted) await limits.enter(settings, caller, routes.requestedModel, limit)
      const attempts = this.#attempts
      const { signal } = this.#stopping
      const admission = new CallAdmission(
        this.#services,
        this.#rates,
        {
          get isStopped() {
            return attempts.isStopped
          },
          run: (call, [plan]) => other.run(call, plan as Plan, signal),
        },
        this.running,
      )
      await lifeCycle.answer(
        { dialect, body, caller, settings, request, routes, read, reader },
        incoming,
        admission,
      )
    } catch (error) {
      throw this.refusal(error, dialects, body, incoming, caller, settings)
    } finally {
      leave?.()
    }
  }

  // A separate method, because a closure in `callIn` would be allocated for every call.
  #answerRead(
    answer: AnswerRead,
    dialects: EndpointDialects,
    body: Body | FormBody,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
  ): Promise<void> {
    return answer({ body, incoming, caller, settings }, (call) =>
      this.#relay(dialects, body, call, caller, settings),
    )
  }

  async #relay(
    dialects: EndpointDialects,
    body: Body | FormBody,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
  ): Promise<void> {
    if (incoming.unlessKept) throw incoming.unlessKept
    const { lifeCycle, limits } = this.#services
    const { read, reader, features } = this.#reading(dialects, body, caller, settings)
    const inCalls = read.scan && features.divide(read, settings)
    if (inCalls) return inCalls({ body: read.body, scan: read.scan, incoming, caller, settings })
    const { dialect } = read
    let parsed: ParsedRequest
    try {
      parsed = await parseRequest(read, incoming.request.headers, reader)
    } catch (error) {
      // A refusal is recorded with the model, and has its headers.
      const model = namedModel(read, settings)
      if (model !== undefined) incoming.record.model = model
      throw error
    }
    const { request, routes } = this.#resolve(read, parsed, incoming, caller, settings)
    if (incoming.isBehind) {
      await limits.refresh(settings, caller, routes.requestedModel)
      limits.requireHalf(settings, caller, routes.requestedModel)
    }
    await limits.enter(settings, caller, routes.requestedModel)
    incoming.isUncounted = true
    // Otherwise several lines could pass while half of the limit is left.
    if (incoming.isBehind) await limits.countModel(incoming, routes.requestedModel)
    return lifeCycle.answer(
      { dialect, body, caller, settings, request, routes, read, reader },
      incoming,
      this.#admission,
    )
  }

  #reading(
    dialects: EndpointDialects,
    body: Body | FormBody,
    caller: Caller,
    settings: Settings,
  ): Pick<AdmittedRequest, 'read' | 'reader'> & { readonly features: ReadingFeatures } {
    const { lifeCycle, reads } = this.#services
    const read = scanRequest(dialects, body)
    const features = lifeCycle.reading(settings, caller, read.dialect.endpoint)
    const { hold, holdCopies, allocation } = body
    const readStore = (): StoreRead => reads.of(caller.user.id, allocation)
    return { read, features, reader: { caller, settings, hold, holdCopies, readStore, features } }
  }

  /** Finds the channels of a request. Throws if it has none, before it counts against any limit. */
  #resolve(
    { dialect }: AdmittedRequest['read'],
    parsed: ParsedRequest,
    { record, inBatch }: IncomingCall,
    caller: Caller,
    settings: Settings,
  ): { readonly request: ParsedRequest; readonly routes: Routes } {
    const request = withoutModelSuffix(parsed, settings)
    record.model = request.model
    record.stream = request.stream
    const isForAnyModel = request.forModel !== undefined && !inBatch
    const called = { name: request.model, stream: request.stream }
    const routes = this.routing.resolve(settings, caller, called, dialect, isForAnyModel)
    const own = routes.resolutions.find(({ name }) => name === request.model)
    if (own) request.channelsFor?.(own.channels)
    return { request, routes }
  }
}
