import { randomUUIDv7 } from 'node:crypto'
import type { Logger } from 'pino'
import { addressBlock } from './access/address-block.ts'
import type { ApiKeys } from './access/api-key.ts'
import type { ClientAddress } from './access/client-address.ts'
import { requireOperator } from './access/operator.ts'
import { sentKey } from './access/sent-key.ts'
import type { Admission } from './api/admission.ts'
import { answerPage, type Cors } from './api/cors.ts'
import type { Endpoint, RawEndpoint, Visit } from './api/endpoint.ts'
import { type Area, renderError } from './api/envelopes.ts'
import type { GlobalLimit } from './api/global-limit.ts'
import type { JsonDoor } from './api/json-door.ts'
import { pathArea, pathOf } from './api/path-area.ts'
import { RAW_ROUTES } from './api/raw-routes.ts'
import { nothingAt, otherMethod, stopping } from './api/refusals.ts'
import { type FoundEndpoint, type OtherMethods, RouteTable } from './api/route-table.ts'
import { shownPath } from './api/shown-path.ts'
import type { RateLimit } from './domain/channel.ts'
import { GatewayError } from './errors.ts'
import { LIMIT_NAMES, type Limits, requireAllowed } from './limits/limits.ts'
import type { Metrics } from './metrics/metrics.ts'
import { UpstreamRefusal } from './relay/failure.ts'
import type { Relay } from './relay/relay.ts'
import type { RequestListener } from './server/http-server.ts'
import type { Response } from './server/response.ts'
import type { Tracing } from './tracing/tracing.ts'
import { refuseOwnRequest } from './upstreams/own-request.ts'

/** What the application is made of. */
export interface AppParts {
  /** What our own requests to upstreams carry. */
  readonly mark: string
  readonly apiKeys: ApiKeys
  readonly clientAddress: () => ClientAddress
  readonly metricsToken: () => string
  /** The host that the gateway listens on, as it is configured. */
  readonly host: string
  readonly cors: () => Cors
  readonly limits: Limits
  readonly admission: Admission
  /** Of relay calls, for each address. */
  readonly relayLimit: () => RateLimit
  readonly relay: Relay
  /** Loaded when it is asked for: most of what an idle gateway would not need. */
  readonly json: () => Promise<JsonDoor>
  readonly globalLimit: GlobalLimit
  readonly metrics: Metrics
  /** Whether calls are taken; whether connections are kept; and, for whoever asks for it, whether the database can be written. */
  readonly isOpen: () => boolean
  readonly isStaying: () => boolean
  readonly isReady: () => Promise<boolean>
  readonly log: Logger
  /** Where the environment names an exporter. */
  readonly tracing: Tracing | undefined
}

/** What is known of the route of a request. */
interface Route {
  /** Undefined where there is none. */
  endpoint: Endpoint | undefined
  /** Which envelope errors come in. */
  area: Area
}

/** What the table of raw routes has for a request. */
type Raw = FoundEndpoint<RawEndpoint> | OtherMethods | undefined

/** The application: finds the route, lets the caller in, and turns whatever is thrown into an answer. */
export class App {
  readonly #parts: AppParts
  readonly #raw = new RouteTable(RAW_ROUTES)
  #visits = 0

  constructor(parts: AppParts) {
    this.#parts = parts
  }

  /** Where requests come from, as it is configured at the moment. */
  get clientAddress(): ClientAddress {
    return this.#parts.clientAddress()
  }

  /** Requests that are not answered to the last byte. */
  get visits(): number {
    return this.#visits
  }

  readonly listener: RequestListener = (request, response) => {
    const visit: Visit = {
      id: randomUUIDv7(),
      startedMs: Date.now(),
      begunMs: performance.now(),
      request,
      response,
      record: {},
    }
    const path = pathOf(request.url)
    const route: Route = { endpoint: undefined, area: pathArea(path) }
    this.#visits += 1
    // The last that is said on this connection: who waits for its end knows when to call elsewhere.
    if (!this.#parts.isStaying()) response.isLast = true
    // A visit is over when its answer is sent, or lost, and all that it set going is done: only then is its charge known.
    let open = 2
    const over = (): void => {
      open -= 1
      if (open === 0) this.#logged(visit, route.endpoint)
    }
    response.onClosed(() => {
      this.#visits -= 1
      over()
    })
    const isOfPage = request.headers.origin !== undefined
    if (isOfPage && answerPage(this.#parts.cors(), visit, path, route.area === 'messages')) {
      over()
      return
    }
    const raw = this.#raw.find(request.method, path)
    if (raw && 'endpoint' in raw) {
      const { endpoint } = raw
      route.endpoint = endpoint
      route.area = endpoint.area
      if (endpoint.access === 'api-key') {
        const begin = (): void => this.#begin(visit, path, route, raw, over)
        const refuse = (refusal: GatewayError): void => {
          this.#refuse(visit, endpoint.area, refusal)
          over()
        }
        this.#parts.admission.enter(visit, this.#visits, begin, refuse)
        return
      }
    }
    this.#begin(visit, path, route, raw, over)
  }

  #begin(visit: Visit, path: string, route: Route, raw: Raw, over: () => void): void {
    this.#answer(visit, path, route, raw)
      .catch((error: unknown) => this.#refuse(visit, route.area, error))
      .finally(over)
  }

  async #answer(visit: Visit, path: string, route: Route, raw: Raw): Promise<void> {
    const { request, response } = visit
    if (raw && 'endpoint' in raw) return this.#answerRaw(visit, raw.endpoint)
    const json = await this.#parts.json()
    const found = raw ?? json.find(request.method, path)
    if (found && 'endpoint' in found) {
      const { endpoint, params } = found
      route.endpoint = endpoint
      route.area = endpoint.areaOf?.(request) ?? endpoint.area
      if (!this.#parts.isOpen()) throw stopping()
      const { admission, clientAddress } = this.#parts
      await new Promise<void>((begin, refuse) => admission.enter(visit, this.#visits, begin, refuse))
      if (!(await admission.takeAccountSlot(visit, addressBlock(clientAddress()(request))))) return
      return json.answer(visit, endpoint, route.area, params)
    }
    if (found) route.area = found.area
    await this.#parts.globalLimit.take(request, response, path)
    if (found) throw otherMethod(request.method, path, found)
    const meant = json.meant(path)
    if (meant !== undefined && route.area === 'relay') route.area = pathArea(meant)
    throw nothingAt(path, meant)
  }

  async #answerRaw(visit: Visit, endpoint: RawEndpoint): Promise<void> {
    const { admission, apiKeys, clientAddress, isReady, limits, mark, metrics, metricsToken } = this.#parts
    const { relay, relayLimit } = this.#parts
    switch (endpoint.access) {
      case 'anyone':
        await this.#parts.globalLimit.take(visit.request, visit.response, endpoint.path)
        return endpoint.handle(visit, isReady)
      case 'operator':
        requireOperator(visit.request, metricsToken(), this.#parts.host)
        return endpoint.handle(visit, metrics)
      case 'api-key': {
        if (!this.#parts.isOpen()) throw stopping()
        refuseOwnRequest(visit.request, mark)
        const key = sentKey(visit.request, endpoint.keyIn)
        const address = clientAddress()(visit.request)
        const taking = limits.take({
          name: LIMIT_NAMES.relay,
          whom: addressBlock(address),
          limit: relayLimit(),
        })
        requireAllowed(taking instanceof Promise ? await taking : taking, 'this address')
        const entering = apiKeys.authenticate(key, address)
        const caller = entering instanceof Promise ? await entering : entering
        visit.record.userId = caller.user.id
        visit.record.tokenId = caller.token.id
        const going = admission.takeCallSlot(visit, caller.token.id)
        if (!(going instanceof Promise ? await going : going)) return
        return endpoint.handle(visit, caller, relay)
      }
    }
  }

  #refuse({ id, response, record }: Visit, area: Area, error: unknown): void {
    const code = error instanceof GatewayError ? error.code : undefined
    if (code !== undefined) record.failure ??= code
    else if (!(error instanceof UpstreamRefusal))
      this.#parts.log.error({ id, err: error }, 'unforeseen error')
    if (response.headersSent || response.isLost) {
      response.destroy()
      return
    }
    const { status, headers, body } = renderError(area, error, id)
    // One that is hardly sending is not waited for.
    if (code === 'request_timeout') {
      response.isLast = true
      response.hangsUp = true
    }
    response.writeHead(status, headers).end(body)
  }

  #logged(visit: Visit, endpoint: Endpoint | undefined): void {
    const { id, startedMs, begunMs, request, response, record } = visit
    const { log, metrics, tracing } = this.#parts
    const status = statusOf(response)
    const given = pathOf(request.url)
    const route = endpoint?.path
    const path = given === route ? given : shownPath(given)
    const { method } = request
    const ms = Math.round(performance.now() - begunMs)
    metrics.requests.add(1, route ?? 'other', String(status))
    log[endpoint?.isQuiet ? 'debug' : 'info']({ id, method, path, status, ms, ...record }, 'request')
    if (!tracing) return
    const { traceparent } = request.headers
    tracing.request({
      ...NOTHING_TOLD,
      ...record,
      id,
      method,
      route,
      status,
      startedMs,
      endedMs: startedMs + ms,
      traceparent,
    })
  }
}

/** What a request that was no call leaves open in its trace. */
const NOTHING_TOLD = {
  model: undefined,
  upstreamModel: undefined,
  channel: undefined,
  stream: undefined,
  inputTokens: undefined,
  outputTokens: undefined,
  quota: undefined,
  reason: undefined,
  failure: undefined,
}

// 499, as other proxies write it, for a caller that did not wait.
function statusOf(response: Response): number {
  return response.isFinished ? response.status : 499
}
