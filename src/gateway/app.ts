import { randomUUIDv7 } from 'node:crypto'
import type { Response } from '@sluice/http1'
import type { Logger } from 'pino'
import { addressBlock } from '../accounts/authentication/address-block.ts'
import type { ApiKeys } from '../accounts/authentication/api-keys.ts'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { ClientAddress } from '../accounts/authentication/client-address.ts'
import { requireOperator } from '../accounts/authentication/require-operator.ts'
import { requireKey, keyFromRequest } from '../accounts/authentication/key-from-request.ts'
import type { RequestAdmission } from '../api/admission.ts'
import { RESPONSE_CHECK_ENDPOINT, RESPONSES_ENDPOINT, WEB_SOCKET_ENDPOINTS } from '../api/calls.ts'
import { isRepeatable } from '../api/call-headers.ts'
import { applyCors, type Cors } from '../api/cors.ts'
import {
  type Endpoint,
  isCallEndpoint,
  type CallEndpoint,
  type CallHandlers,
  type Readiness,
  type RawEndpoint,
  type ClientExchange,
} from '../api/endpoint.ts'
import { type ApiArea, renderError, protocolOf } from '../api/envelopes.ts'
import type { TurnForm } from '../call/incoming-call.ts'
import type { GlobalLimit } from '../api/global-limit.ts'
import type { JsonApi } from '../api/json-api.ts'
import { isModelMethod, areaOfUnknownPath, pathOf, redactedPath } from '../api/paths.ts'
import { RAW_ROUTES } from '../api/raw-routes.ts'
import {
  type AllowedMethods,
  type FoundEndpoint,
  gatewayStoppingError,
  methodNotAllowedError,
  pathNotFound,
  RouteTable,
} from '../api/route-table.ts'
import type { Console } from '../console/console.ts'
import type { RateLimit } from '../domain/rate-limit.ts'
import type { RefusedCall } from '../domain/refused-call.ts'
import { withoutBasePath } from '../http/base-path.ts'
import { asGatewayError, GatewayError } from '../errors.ts'
import { LIMIT_NAMES, type RateLimiter, requireWithinRateLimit } from '../limits/rate-limiter.ts'
import type { RefusalCounts, RefusedCalls } from '../limits/refused-calls.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { UpstreamRefusal } from '../call/failure.ts'
import { databaseUnavailableError } from '../call/storage-errors.ts'
import { oneLineMessage } from '../call/provider-messages.ts'
import type { ServedTurn } from '../features/websocket/socket-services.ts'
import { CHECKED } from '../features/websocket/turn.ts'
import type { LifeCycle } from '../call/life-cycle.ts'
import { truncateName } from '../call/truncate-name.ts'
import type { Request, RequestListener } from '../http/request.ts'
import { REQUEST_LINE } from './open-log.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { refuseLoop } from '../upstreams/loop-detection.ts'

/** Services that the application needs. */
export interface AppServices extends CallHandlers {
  /**
   * Text that marks the gateway's own requests to upstreams, so that one that comes back is recognised as a
   * loop.
   */
  readonly mark: string
  readonly apiKeys: ApiKeys
  readonly clientAddress: () => ClientAddress
  readonly metricsToken: () => string
  /** The host name or address that the gateway listens on, as configured. */
  readonly host: string
  readonly cors: () => Cors
  readonly limits: RateLimiter
  readonly admission: RequestAdmission
  /** Rate limit for model calls from one address. */
  readonly relayLimit: () => RateLimit
  readonly lifeCycle: LifeCycle
  /** Loads the JSON endpoints at first use, because an idle gateway does not need them. */
  readonly json: () => Promise<JsonApi>
  readonly globalLimit: GlobalLimit
  readonly console: Console
  readonly metrics: Metrics
  /** Counts refused calls, which have no row in the usage log. */
  readonly refusals: RefusalCounts
  /** Stores refused calls individually. */
  readonly refusedCalls: RefusedCalls
  /** Whether new requests are accepted; false while the gateway is starting or stopping. */
  readonly isOpen: () => boolean
  /** `options.websocket.enabled`. */
  readonly opensWebSockets: () => boolean
  /** Whether clients may keep connections open; false while the gateway is stopping. */
  readonly isStaying: () => boolean
  /** `options.base_path`. */
  readonly basePath: () => string
  readonly readiness: () => Promise<Readiness>
  /** Called with a database error that occurred during a request. */
  readonly onStoreFailure: (error: StoreUnavailable) => void
  readonly log: Logger
  /** Undefined unless the environment names an OpenTelemetry collector. */
  readonly telemetry: Telemetry | undefined
}

interface Route {
  /** The endpoint with the path and method of the request; undefined if there is none. */
  endpoint: Endpoint | undefined
  /** The API to which the path belongs; it decides the format of errors. */
  area: ApiArea
  /** Whether the path is not below the base path, so that nothing is served there. */
  isOutside: boolean
}

/** A request in progress; `over` is called when its work is done. */
interface OpenExchange {
  readonly exchange: ClientExchange
  readonly over: () => void
}

/** Result of a search for an endpoint that reads the request body and writes the response by itself. */
type RawMatch = FoundEndpoint<RawEndpoint> | AllowedMethods | undefined

/** The application: finds the route, checks the caller, and turns errors into responses. */
export class App {
  readonly #services: AppServices
  readonly #raw = new RouteTable(RAW_ROUTES)
  readonly #webSockets = new RouteTable(WEB_SOCKET_ENDPOINTS)
  #openExchanges = 0

  constructor(services: AppServices) {
    this.#services = services
  }

  /** The function that determines a client's address, by the current configuration. */
  get clientAddress(): ClientAddress {
    return this.#services.clientAddress()
  }

  /** Number of requests whose response is not finished. */
  get openExchanges(): number {
    return this.#openExchanges
  }

  /** The base path, by the current configuration. */
  get basePath(): string {
    return this.#services.basePath()
  }

  readonly listener: RequestListener = (request, response) => {
    const basePath = this.#services.basePath()
    const inner = withoutBasePath(request.url, basePath)
    if (inner !== undefined) request.url = inner
    const path = pathOf(request.url)
    const isOutside = inner === undefined
    const route: Route = { endpoint: undefined, area: areaOfUnknownPath(path, request.method), isOutside }
    const { exchange, over } = this.#open(randomUUIDv7(), request, response, route)
    // Close the connection after this response, so that the client connects to another node next.
    if (!this.#services.isStaying()) response.closesConnection = true
    if (isOutside) {
      this.#begin(exchange, path, route, undefined, over)
      return
    }
    const isOfPage = request.headers.origin !== undefined
    if (isOfPage && applyCors(this.#services.cors(), exchange, path, protocolOf(route.area))) {
      over()
      return
    }
    const raw = this.#webSocket(request, path) ?? this.#raw.find(request.method, path)
    if (raw && 'endpoint' in raw) {
      const { endpoint } = raw
      route.endpoint = endpoint
      route.area = endpoint.area
      if (isCallEndpoint(endpoint)) {
        if (endpoint.areaOf) route.area = endpoint.areaOf(request)
        return this.#enter(exchange, path, route, raw, over)
      }
    }
    this.#begin(exchange, path, route, raw, over)
  }

  /** Serves a turn of a WebSocket like a request to the endpoint of responses. */
  serveTurn({ id, request, response, form, isCheck, over: isDone }: ServedTurn): void {
    const endpoint = isCheck ? RESPONSE_CHECK_ENDPOINT : RESPONSES_ENDPOINT
    const route: Route = { endpoint, area: endpoint.area, isOutside: false }
    const { exchange, over } = this.#open(id, request, response, route, form)
    this.#enter(exchange, endpoint.path, route, { endpoint, params: {} }, () => {
      over()
      isDone()
    })
  }

  /** Finds the endpoint of a request for a WebSocket; undefined for all other requests. */
  #webSocket({ method, headers }: Request, path: string): FoundEndpoint<CallEndpoint> | undefined {
    if (headers.upgrade?.toLowerCase() !== 'websocket' || !this.#services.opensWebSockets()) return undefined
    const found = this.#webSockets.find(method, path)
    return found && 'endpoint' in found ? found : undefined
  }

  #open(id: string, request: Request, response: Response, route: Route, turn?: TurnForm): OpenExchange {
    const exchange: ClientExchange = {
      id,
      ...(turn && { transport: 'websocket', turn }),
      startedMs: Date.now(),
      startedAt: performance.now(),
      request,
      response,
      basePath: this.#services.basePath(),
      record: {},
    }
    this.#openExchanges += 1
    // A request is over when its response is closed and all its work is done, because only then is its charge
    // known.
    let open = 2
    const over = (): void => {
      open -= 1
      if (open === 0) this.#logged(exchange, route.endpoint)
    }
    response.onClosed(() => {
      this.#openExchanges -= 1
      over()
    })
    return { exchange, over }
  }

  #enter(exchange: ClientExchange, path: string, route: Route, raw: RawMatch, over: () => void): void {
    const begin = (): void => this.#begin(exchange, path, route, raw, over)
    const refuse = (refusal: GatewayError): void => {
      void this.#refuse(exchange, route, refusal).finally(over)
    }
    this.#services.admission.enter(exchange, this.#openExchanges, begin, refuse)
  }

  #begin(exchange: ClientExchange, path: string, route: Route, raw: RawMatch, over: () => void): void {
    this.#answer(exchange, path, route, raw).then(over, (error: unknown) => {
      void this.#refuse(exchange, route, error).finally(over)
    })
  }

  async #answer(exchange: ClientExchange, path: string, route: Route, raw: RawMatch): Promise<void> {
    const { request, response, basePath } = exchange
    if (route.isOutside) {
      await this.#services.globalLimit.take(request, response, path)
      throw pathNotFound(path, basePath + path)
    }
    if (raw && 'endpoint' in raw) return this.#answerRaw(exchange, raw, route.area)
    const { console } = this.#services
    if (!raw && console.has(request.method, path) && (await console.answer(request, response, path))) return
    const json = await this.#services.json()
    const found = raw ?? json.find(request.method, path)
    if (found && 'endpoint' in found) {
      const { endpoint, params } = found
      route.endpoint = endpoint
      route.area = endpoint.areaOf?.(request) ?? endpoint.area
      if (!this.#services.isOpen()) throw gatewayStoppingError()
      const { admission, clientAddress } = this.#services
      await new Promise<void>((begin, refuse) =>
        admission.enter(exchange, this.#openExchanges, begin, refuse),
      )
      if (!(await admission.takeAccountSlot(exchange, addressBlock(clientAddress()(request))))) return
      return json.respond(exchange, endpoint, route.area, params)
    }
    const isMethod = isModelMethod(path, request.method)
    if (found && !isMethod) route.area = found.area
    await this.#services.globalLimit.take(request, response, path)
    // POST to an unknown method of a model gets 404 instead of 405, although its path also matches the
    // endpoint that reads a model.
    const isUnknown = isMethod && request.method === 'POST' && !found?.methods.includes('POST')
    if (found && !isUnknown) throw methodNotAllowedError(request, path, found, basePath)
    const suggestion = json.suggest(path)
    if (suggestion !== undefined && route.area === 'relay') route.area = areaOfUnknownPath(suggestion)
    throw pathNotFound(basePath + path, suggestion === undefined ? undefined : basePath + suggestion)
  }

  async #answerRaw(
    exchange: ClientExchange,
    { endpoint, params }: FoundEndpoint<RawEndpoint>,
    area: ApiArea,
  ): Promise<void> {
    const { readiness, metrics, metricsToken } = this.#services
    switch (endpoint.access) {
      case 'anyone':
        await this.#services.globalLimit.take(exchange.request, exchange.response, endpoint.path)
        return endpoint.handle(exchange, readiness)
      case 'operator':
        requireOperator(exchange.request, metricsToken(), this.#services.host)
        return endpoint.handle(exchange, metrics)
      case 'api-key':
      case 'keyed-account': {
        const { admission, clientAddress, lifeCycle, limits, mark, relayLimit } = this.#services
        if (!this.#services.isOpen()) throw gatewayStoppingError()
        refuseLoop(exchange.request, mark)
        const address = clientAddress()(exchange.request)
        const taken = await limits.take({
          name: LIMIT_NAMES.relay,
          subject: addressBlock(address),
          limit: relayLimit(),
        })
        requireWithinRateLimit(taken, 'this address', () => ADDRESS)
        const caller = await this.#callerOf(exchange, endpoint, address)
        exchange.record.userId = caller.user.id
        exchange.record.tokenId = caller.token.id
        // The limits of models do not apply to tools.
        if (area !== 'mcp') lifeCycle.addHeaders(exchange, caller, protocolOf(area))
        if (mayRepeat(endpoint, exchange.request))
          exchange.render = (error) => renderError(area, error, exchange.id)
        if (!(await admission.takeCallSlot(exchange, caller.token.id))) return
        return endpoint.handle(exchange, caller, this.#services, params)
      }
    }
  }

  #callerOf(exchange: ClientExchange, endpoint: CallEndpoint, address: string): Caller | Promise<Caller> {
    const { request } = exchange
    if (endpoint.access === 'keyed-account')
      return this.#services.json().then((json) => json.ownCaller(request))
    const key = requireKey(request, endpoint.keyIn)
    if (mayRepeat(endpoint, request)) return this.#repeatingCaller(exchange, key, address)
    return this.#services.apiKeys.authenticate(key, address)
  }

  /**
   * Authenticates the API key of a call with an idempotency key. A key with exhausted quota is accepted too,
   * because the call may only repeat an earlier one, whose answer costs nothing.
   */
  async #repeatingCaller(exchange: ClientExchange, key: string, address: string): Promise<Caller> {
    const { apiKeys } = this.#services
    try {
      return await apiKeys.authenticate(key, address)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'token_exhausted') throw error
      exchange.unlessKept = error
      return apiKeys.authenticate(key, address, 'read')
    }
  }

  async #refuse(exchange: ClientExchange, { area, endpoint }: Route, cause: unknown): Promise<void> {
    const { id, response, record } = exchange
    if (cause instanceof StoreUnavailable) this.#services.onStoreFailure(cause)
    const error = cause instanceof StoreUnavailable ? databaseUnavailableError(cause) : cause
    const known = asGatewayError(error)
    const code = known?.code
    if (known && endpoint && isCallEndpoint(endpoint)) this.noteRefusal(exchange, known)
    if (code !== undefined) record.failure ??= code
    else if (!(error instanceof UpstreamRefusal))
      this.#services.log.error({ id, err: error }, 'unforeseen error')
    if (!response.headersSent && area !== 'mcp' && endpoint && isCallEndpoint(endpoint))
      await this.#stateKnown(exchange, endpoint, error)
    if (response.headersSent || response.isAborted) {
      response.destroy()
      return
    }
    const { status, headers, body } = exchange.renderRefusal?.(error) ?? renderError(area, error, id)
    // Do not wait for the rest of the request, because the client hardly sends anything.
    if (code === 'request_timeout') {
      response.closesConnection = true
      response.closesImmediately = true
    }
    response.writeHead(status, headers).end(body)
  }

  /** Adds a call to the refused calls. A settled call already has a row in the usage log, even if its client got an error. */
  noteRefusal(call: Pick<ClientExchange, 'id' | 'record' | 'refusal'>, error: GatewayError): void {
    const { record } = call
    if (record.reason !== undefined) return
    this.#services.refusals.add(error.code, { ...error.caller, ...record })
    this.#services.refusedCalls.add(refusedCall(call, error))
  }

  /** States the limits of the API key in the response, if the key is known although the call was refused. */
  async #stateKnown(exchange: ClientExchange, endpoint: CallEndpoint, error: unknown): Promise<void> {
    const { apiKeys, lifeCycle } = this.#services
    const sent = endpoint.access === 'api-key' ? keyFromRequest(exchange.request, endpoint.keyIn) : undefined
    const caller = apiKeys.refusedCaller(error, sent)
    if (caller)
      await lifeCycle.refuse(
        exchange,
        caller,
        protocolOf(endpoint.areaOf?.(exchange.request) ?? endpoint.area),
      )
  }

  #logged(exchange: ClientExchange, endpoint: Endpoint | undefined): void {
    const { id, startedMs, startedAt: begunMs, request, response, record } = exchange
    const { log, metrics, telemetry } = this.#services
    const status = statusOf(response)
    // The turn that was checked is served next, under the same id.
    if (endpoint === RESPONSE_CHECK_ENDPOINT && status === CHECKED.prepareThere) return
    const given = pathOf(request.url)
    const route = endpoint?.path
    const path = given === route ? given : redactedPath(given)
    const { method } = request
    const ms = Math.round(performance.now() - begunMs)
    metrics.add('requests', 1, route ?? 'other', String(status))
    log[endpoint?.isPolled ? 'debug' : 'info']({ id, method, path, status, ms }, REQUEST_LINE, record)
    if (!telemetry || endpoint?.isPolled || exchange.isTraced) return
    const { traceparent } = request.headers
    const { model, failure } = record
    const endedMs = startedMs + ms
    telemetry.request({ id, method, route, status, startedMs, endedMs, traceparent, model, failure })
  }
}

/** Whether the request has an idempotency key, so that it may repeat an earlier one. */
function mayRepeat(endpoint: CallEndpoint, { headers }: Request): boolean {
  return headers['idempotency-key'] !== undefined && isRepeatable(endpoint)
}

const ADDRESS = { subject: 'address', id: null, name: null } as const

/** A refused call as it is stored. */
function refusedCall(
  { id, record, refusal }: Pick<ClientExchange, 'id' | 'record' | 'refusal'>,
  error: GatewayError,
): RefusedCall {
  const { code, kind, message, retryAfter, limit, caller } = error
  return {
    id,
    refused_ms: Date.now(),
    user_id: record.userId ?? caller?.userId ?? 0,
    token_id: record.tokenId ?? caller?.tokenId ?? 0,
    model: truncateName(oneLineMessage(record.model ?? '')),
    group: refusal?.group ?? '',
    kind: refusal?.kind ?? '',
    status: kind.status,
    type: kind.type,
    code: kind.code ?? code,
    message: refusal?.message ?? oneLineMessage(message),
    retry_after: retryAfter ?? null,
    limit: limit ?? null,
  }
}

// 499 is the status that proxies usually log if the client disconnected.
function statusOf(response: Response): number {
  return response.isFinished ? response.status : 499
}
