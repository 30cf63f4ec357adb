import type { Caller } from '../accounts/authentication/caller.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { UpstreamKey } from '../upstreams/key-ring.ts'
import type { AdmittedAttempts, CallAdmission, MeasuredCall } from './call-admission.ts'
import type { Attempts, LaterAnswer } from './attempts.ts'
import type { BodyReader } from './body-reader.ts'
import type { ClientDialects } from './dialects/client-dialects.ts'
import type { IncomingCall } from './incoming-call.ts'
import { bodyOptions, parseRequest, withoutModelSuffix } from './parse-request.ts'
import type { ReadingServices, RequestReading } from './request-reading.ts'
import type { AttemptRequest, ChannelPlan, Plan } from './request-stages.ts'
import type { Routes } from './routing.ts'

const NOT_IN_BATCHES =
  "Invalid 'tools': the tools of this gateway cannot be used in batches; send the request to /v1/responses."

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

/** What calls that are made later need of the relay. */
export interface LaterCallServices extends Pick<ReadingServices, 'lifeCycle'> {
  readonly bodies: BodyReader
  readonly dialects: ClientDialects
  readonly reading: RequestReading
  readonly attempts: Attempts
  readonly admission: CallAdmission
  /** Returns an admission whose calls are carried out by `run`. */
  readonly admissionBy: (run: AdmittedAttempts['run']) => CallAdmission
}

/** Calls whose requests are made at one time and answered at another, such as the lines of batches. */
export class LaterCalls {
  readonly #services: LaterCallServices

  constructor(services: LaterCallServices) {
    this.#services = services
  }

  /**
   * Checks the JSON request of a call that is to be made later, and resolves to what it would hold. Nothing is counted,
   * reserved or sent. Rejects with the error for the client.
   */
  async measure(
    endpoint: keyof ClientDialects,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
  ): Promise<MeasuredCall> {
    const { admission, bodies, dialects, reading } = this.#services
    const body = await bodies.read(incoming, bodyOptions(caller, settings))
    try {
      const { read, reader, features } = reading.scan({ json: dialects[endpoint] }, body, caller, settings)
      if (read.scan && features.divide(read, settings))
        throw new GatewayError('invalid_request', NOT_IN_BATCHES)
      const parsed = await parseRequest(read, incoming.request.headers, reader)
      const found = reading.resolve(read, parsed, incoming, caller, settings)
      const { inBatch } = incoming
      const { dialect } = read
      return await admission.measure({ dialect, body, settings, ...found, ...(inBatch && { inBatch }) })
    } finally {
      body.release()
    }
  }

  /**
   * Makes the request of a line of a provider's batch, without sending it. The call has no limits and no end: `answer` ends
   * it. Rejects with the error for the client.
   */
  async compose(
    endpoint: keyof ClientDialects,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
    choose: (plan: Plan) => ChannelPlan | undefined,
  ): Promise<ComposedCall> {
    const { admissionBy, attempts, bodies, dialects, lifeCycle, reading } = this.#services
    const body = await bodies.read(incoming, bodyOptions(caller, settings))
    let composed: ComposedCall | undefined
    try {
      const { read, reader } = reading.scan({ json: dialects[endpoint] }, body, caller, settings)
      const parsed = await parseRequest(read, incoming.request.headers, reader)
      const { request, routes } = reading.resolve(read, parsed, incoming, caller, settings)
      const admission = admissionBy(async (call, [plan]) => {
        const chosen = plan && choose(plan)
        if (!chosen) throw new GatewayError('batch_unsupported', 'no channel can batch this request')
        const refusal = await call.features.tried(call, plan, chosen)
        if (refusal) throw refusal
        const made = await attempts.prepare(call, chosen)
        const { channel } = chosen
        composed = { channel, plan, request: made, body: plan.body, suspended: call.features.suspended() }
        // The call is settled when its answer has come.
        await call.hold.park()
      })
      await lifeCycle.answer(
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
   * Ends a call whose request was made by `compose`, with the answer to it, at the prices of `routes`. Rejects with the error
   * for the client.
   */
  async answer(
    endpoint: keyof ClientDialects,
    incoming: IncomingCall,
    caller: Caller,
    settings: Settings,
    { routes, key, suspended, answer }: LaterEnd,
  ): Promise<void> {
    const { admissionBy, attempts, bodies, dialects, lifeCycle, reading } = this.#services
    const body = await bodies.read(incoming, bodyOptions(caller, settings))
    try {
      const { read, reader } = reading.scan({ json: dialects[endpoint] }, body, caller, settings)
      const request = withoutModelSuffix(await parseRequest(read, incoming.request.headers, reader), settings)
      incoming.record.model = request.model
      const admission = admissionBy(async (call, [plan]) => {
        const chosen = plan?.channels[0]
        if (!chosen) throw new Error('the channel of an answer is unknown')
        await attempts.take(call, chosen, key, answer)
      })
      const known = lifeCycle.resumed(suspended, { incoming, caller, settings })
      await admission.admit(
        { dialect: read.dialect, body, caller, settings, request, routes, read, reader },
        incoming,
        known,
      )
    } finally {
      body.release()
    }
  }
}
