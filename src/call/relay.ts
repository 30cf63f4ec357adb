import type { Caller } from '../accounts/authentication/caller.ts'
import type { Settings } from '../domain/settings.ts'
import type { SimulatedCall, Simulation } from '../domain/simulation.ts'
import { BudgetExceeded, Unaffordable } from '../accounts/ledger/quota-refusal.ts'
import { type AdmissionServices, CallAdmission, type UnchargedCall } from './call-admission.ts'
import { type AttemptServices, Attempts } from './attempts.ts'
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
import { LaterCalls } from './later-calls.ts'
import type { MediaFetcher } from './media-fetcher.ts'
import { bodyOptions, type EndpointDialects, namedModel, parseRequest, readBody } from './parse-request.ts'
import { CallRates } from './plan.ts'
import { recordRefusal } from './record-refusal.ts'
import { type ReadingServices, RequestReading } from './request-reading.ts'
import { type Routes, Routing } from './routing.ts'
import { RunningCalls } from './running-calls.ts'
import { withDisplayedAmounts } from './refusal-amounts.ts'
import { simulateCall } from './simulate-call.ts'
import type { ParsedRequest, Plan } from './request-stages.ts'
import type { IncomingCall } from './incoming-call.ts'

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

export interface RelayServices extends AdmissionServices, AttemptServices, ReadingServices {
  /** The current configuration. Each call keeps the one it began with. */
  readonly settings: () => Settings
  readonly bodies: BodyReader
  readonly media: MediaFetcher
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
  readonly #requests: RequestReading
  /** Calls that are made at one time and answered at another. */
  readonly later: LaterCalls
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
    this.#requests = new RequestReading(services, this.routing)
    this.#attempts = new Attempts(services)
    this.#admission = new CallAdmission(services, this.#rates, this.#attempts, this.running)
    this.later = new LaterCalls({
      bodies: services.bodies,
      lifeCycle: services.lifeCycle,
      dialects: this.#dialects,
      reading: this.#requests,
      attempts: this.#attempts,
      admission: this.#admission,
      admissionBy: (run) => new CallAdmission(services, this.#rates, { isStopped: false, run }, this.running),
    })
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
      const { read, reader, features } = this.#requests.scan(dialects, body, caller, settings)
      const parsed = await parseRequest(read, incoming.request.headers, reader)
      const { routes } = this.#requests.resolve(read, parsed, incoming, caller, settings)
      return read.scan && features.divide(read, settings) ? undefined : routes
    } catch (error) {
      recordRefusal(incoming, caller, { dialects, body }, error)
      throw error
    } finally {
      body?.release()
    }
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
      const { read, reader } = this.#requests.scan(dialects, body, caller, settings)
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
    const { read, reader, features } = this.#requests.scan(dialects, body, caller, settings)
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
    const { request, routes } = this.#requests.resolve(read, parsed, incoming, caller, settings)
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
}
