import type { Caller } from '../accounts/authentication/caller.ts'
import type { Settings } from '../domain/settings.ts'
import type { StoreRead, StoreReads } from '../limits/store-reads.ts'
import type { AdmittedRequest } from './answer-request.ts'
import type { Body, FormBody } from './body-reader.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { LifeCycle } from './life-cycle.ts'
import { type EndpointDialects, scanRequest, withoutModelSuffix } from './parse-request.ts'
import type { ReadingFeatures } from './reading-features.ts'
import type { ParsedRequest } from './request-stages.ts'
import type { Routes, Routing } from './routing.ts'

/** What reads requests needs. */
export interface ReadingServices {
  readonly lifeCycle: LifeCycle
  readonly reads: StoreReads
}

/** A request whose members are found, and how it is read on. */
export interface ScannedRequest extends Pick<AdmittedRequest, 'read' | 'reader'> {
  readonly features: ReadingFeatures
}

/** Reads the requests of calls, and finds their channels. */
export class RequestReading {
  readonly #services: ReadingServices
  readonly #routing: Routing

  constructor(services: ReadingServices, routing: Routing) {
    this.#services = services
    this.#routing = routing
  }

  /** Finds the members of a request, and the features that take part in reading it. */
  scan(
    dialects: EndpointDialects,
    body: Body | FormBody,
    caller: Caller,
    settings: Settings,
  ): ScannedRequest {
    const { lifeCycle, reads } = this.#services
    const read = scanRequest(dialects, body)
    const features = lifeCycle.reading(settings, caller, read.dialect.endpoint)
    const { hold, holdCopies, allocation } = body
    const readStore = (): StoreRead => reads.of(caller.user.id, allocation)
    return { read, features, reader: { caller, settings, hold, holdCopies, readStore, features } }
  }

  /** Finds the channels of a request. Throws if it has none, before it counts against any limit. */
  resolve(
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
    const routes = this.#routing.resolve(settings, caller, called, dialect, isForAnyModel)
    const own = routes.resolutions.find(({ name }) => name === request.model)
    if (own) request.channelsFor?.(own.channels)
    return { request, routes }
  }
}
