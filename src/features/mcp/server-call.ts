import { MCP_REQUEST, MCP_RESULT } from '@sluice/wire/mcp'
import { KnownMemberNames } from '@sluice/wire/json/known-names'
import { parseExact } from '@sluice/wire/json/exact-json'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { NO_USAGE } from '@sluice/wire/usage'
import { usableGroup, groupRefusedError } from '../../call/key-permissions.ts'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { Body } from '../../call/body-reader.ts'
import type { Call } from '../../call/call.ts'
import type { OwnedLimit } from '../../call/call-limits.ts'
import { CheckCancelled } from '../../call/check-turns.ts'
import type { Dialect } from '../../call/dialects/dialect.ts'
import { throwNoStreams } from '../../call/dialects/answer-reader.ts'
import { failureWithoutResponse } from '../../call/failure.ts'
import type { OtherCall } from '../../call/relay.ts'
import type { AttemptRequest, AttemptTarget, ParsedRequest, Plan } from '../../call/request-stages.ts'
import type { Routes } from '../../call/routing.ts'
import type { FailureCause } from '../../domain/failure-cause.ts'
import type { McpServer, McpVersion } from '../../domain/mcp.ts'
import { chargeRateOf, FREE_PRICE, type Price } from '../../domain/price.ts'
import { CHANNEL_SETTINGS, type Channel } from '../../domain/records/channel.ts'
import { MODEL_SETTINGS, type Model } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import { ZERO } from '../../domain/decimal.ts'
import { GatewayError } from '../../errors.ts'
import { LIMIT_NAMES } from '../../limits/rate-limiter.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { AnswerMemory, NoMemory } from './answer-memory.ts'
import { type ParamHeader, paramValue } from './listed-entries.ts'
import { asFields, type Fields, foreignMeta, isObject, META, STATELESS } from './protocol.ts'
import type { ServerReply } from './server-connection.ts'
import type { KnownServer } from './servers.ts'
import { type FailureCode, ServerFailure } from './server-transport.ts'

/** What a client is sent of an answer: a result or an error of JSON-RPC. */
export type ClientAnswer =
  | { readonly result: Fields; readonly error?: undefined }
  | { readonly error: NonNullable<ServerReply['error']>; readonly result?: undefined }

/** Where the answer to a call goes. */
export interface AnswerSink {
  /** Whether the client wants a notification. */
  wants(method: string, params: Fields): boolean
  /** Progress, or a log message. Called only after the hold of the call is durable. */
  notify(call: Call, method: string, params: Fields): void
  /** The charge is durable. */
  finish(call: Call, target: AttemptTarget, answer: ClientAnswer): void
}

/** A request of a client for one server. */
export interface ServerCall {
  /** The client's id of the request. */
  readonly id: string | number
  /** The revision of the client. */
  readonly version: McpVersion
  readonly known: KnownServer
  readonly method: string
  /** The server's name of the tool or prompt, or the kind of another request, such as `resource`. Never a text of the client. */
  readonly name: string
  /** Name under which the call is recorded, with the prefix of the server. */
  readonly listed: string
  readonly paramHeaders: readonly ParamHeader[]
  readonly wantsProgress: boolean
  /** Changes the parameters to those that the server knows. */
  readonly ownParams: (params: Fields) => Fields
  /** Why the server is not asked; undefined if it is. */
  readonly failure?: ServerFailure | undefined
  /** How long the server may take; its whole timeout if undefined. */
  readonly timeoutMs?: number
  /** Turns the server's result into that of the client's revision. */
  readonly converted: (reply: ServerReply) => Fields
  /** Aborted when the client cancels its request. */
  readonly cancelled: AbortSignal
  readonly sink: AnswerSink
}

const NAMES = new KnownMemberNames(['jsonrpc', 'id', 'method', 'params'], {
  params: () => PARAMS,
})
const PARAMS = new KnownMemberNames([
  '_meta',
  'argument',
  'arguments',
  'context',
  'cursor',
  'inputResponses',
  'name',
  'ref',
  'requestState',
  'uri',
])

/** Names of the members of a request that the gateway reads. `docs/api.md: Names of members`. */
export const REQUEST_NAMES = NAMES

/** The reasons for which a request to a server is aborted. */
class ClientLeft extends Error {}
class CallStopped extends Error {}
class GatewayStops extends Error {}

/** Why a call may end before its answer. */
const ENDINGS = [ClientLeft, CallStopped, GatewayStops, CheckCancelled]

const CAUSES: Readonly<Record<FailureCode, FailureCause>> = {
  server_unavailable: 'provider_unreachable',
  server_auth: 'provider_key',
  server_timeout: 'provider_timeout',
  server_answer: 'provider_broken',
}

/** How a call ended, for metrics. */
type Outcome = 'ok' | 'tool_error' | 'error' | 'failed' | 'refused'

/** Makes the call of a client to a server: with a hold before, and a charge after. */
export function serverCall(
  call: ServerCall,
  body: Body,
  settings: Settings,
  caller: Caller,
  metrics: Pick<Metrics, 'add'>,
): OtherCall {
  const { known, listed, method } = call
  const { server } = known
  const isCharged = method === 'tools/call'
  const dialect: Dialect = {
    name: 'chat',
    endpoint: 'tool',
    servedBy: ['chat'],
    names: NAMES,
    shape: MCP_REQUEST,
    read: (scan) => parsedRequest(call, scan, isCharged),
  }
  return {
    dialect,
    body,
    routes: routesOf(settings, caller, server, isCharged ? call.name : undefined, listed),
    isCounted: isCharged,
    ...(isCharged && { limit: limitOf(caller, server) }),
    run: async (made, plan, stopping) => {
      const outcome = await new RunningServerCall(call, made, plan).run(stopping)
      if (isCharged) metrics.add('mcpCalls', 1, server.name, outcome)
    },
  }
}

function parsedRequest(call: ServerCall, scan: ScannedObject, isCharged: boolean): ParsedRequest {
  return {
    model: call.listed,
    stream: false,
    maxTokens: undefined,
    promptBound: 0,
    ...(!isCharged && { charging: 'free' }),
    forChannels: (channels) =>
      channels.map((channel) => ({
        channel,
        outputMaximum: 0,
        choices: 1,
        prepare: () => attemptRequest(call, scan),
      })),
  }
}

/** The request as the server gets it, without what the gateway adds for the server's revision. */
function attemptRequest(
  { method, name, version, ownParams }: ServerCall,
  scan: ScannedObject,
): AttemptRequest {
  const message = asFields(parseExact(scan.bytes.toString()))
  const given = asFields(message['params'])
  const meta = asFields(given['_meta'])
  const { [META.capabilities]: capabilities, [META.logLevel]: logLevel } = meta
  const declared =
    version === STATELESS
      ? { [META.capabilities]: asFields(capabilities), [META.logLevel]: logLevel }
      : { [META.logLevel]: 'info' }
  const params = ownParams({ ...given, _meta: { ...foreignMeta(meta), ...declared } })
  return {
    protocol: 'chat',
    path: '',
    headers: [],
    body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: message['id'], method, params })),
    dropped: [],
    upstreamModel: name,
    prompt: () => '',
    tap: throwNoStreams,
    reply: throwNoStreams,
  }
}

/** The server as a channel and the tool as a model, in the group of the caller. */
function routesOf(
  settings: Settings,
  caller: Caller,
  server: McpServer,
  tool: string | undefined,
  listed: string,
): Routes {
  const name = caller.token.group === '' ? caller.user.group : caller.token.group
  const group = usableGroup(settings, caller, name)
  if (!group) throw groupRefusedError(name)
  const model: Model = {
    ...MODEL_SETTINGS.defaults,
    name: listed,
    vendor: undefined,
    price: priceOf(server, tool),
    pricedAs: undefined,
    priceMoment: undefined,
    contextTokens: 0,
    isContextKnown: false,
  }
  const resolution = { name: listed, model, group, channels: [channelOf(server)] }
  return { requestedModel: model, resolutions: [resolution] }
}

/** The limit of a server on the calls of an API key. */
function limitOf({ token }: Caller, { name, rate_limit: limit }: McpServer): OwnedLimit {
  const subject = `${name}:${token.id}`
  return {
    name: LIMIT_NAMES.server,
    subject,
    limit,
    owner: `this API key at the server ${name}`,
    tokenId: token.id,
  }
}

const channels = new WeakMap<McpServer, Channel>()

function channelOf(server: McpServer): Channel {
  let channel = channels.get(server)
  if (!channel) {
    channel = {
      ...CHANNEL_SETTINGS.defaults,
      name: server.name,
      protocol: ['chat'],
      base_url: server.url,
      keys: [],
      models: [],
      groups: [],
    }
    channels.set(server, channel)
  }
  return channel
}

// Prices are kept, because rates are cached by them.
const prices = new WeakMap<McpServer, Map<string, Price>>()

function priceOf(server: McpServer, tool: string | undefined): Price {
  const request = tool === undefined ? ZERO : (server.price.tools.get(tool) ?? server.price.call)
  if (request.digits === 0n) return FREE_PRICE
  let known = prices.get(server)
  if (!known) prices.set(server, (known = new Map()))
  const key = `${request.digits}/${request.scale}`
  let price = known.get(key)
  if (!price) known.set(key, (price = { ...FREE_PRICE, request }))
  return price
}

/** One request to a server, from its hold to its charge. */
class RunningServerCall {
  readonly #asked: ServerCall
  readonly #call: Call
  readonly #plan: Plan
  readonly #stop = new AbortController()
  readonly #memory: AnswerMemory
  #isSent = false

  constructor(asked: ServerCall, call: Call, plan: Plan) {
    this.#asked = asked
    this.#call = call
    this.#plan = plan
    this.#memory = new AnswerMemory(call)
  }

  async run(stopping: AbortSignal): Promise<Outcome> {
    const call = this.#call
    const { known, id, cancelled } = this.#asked
    const target = await this.#target()
    call.response.needsUpstream()
    call.beginAttempt(target, {
      progress: { tokens: 0, cost: 0 },
      stop: () => this.#stop.abort(new CallStopped()),
    })
    call.incoming.record.channel = known.server.name
    const watcher = call.features.attempted(call, target)
    const end = (): void => this.#stop.abort(new GatewayStops())
    stopping.addEventListener('abort', end)
    const leave = (): void => this.#stop.abort(new ClientLeft())
    const unsubscribe = call.onClientGone(leave)
    cancelled.addEventListener('abort', leave)
    if (cancelled.aborted) leave()
    try {
      await call.hold.whenDurable()
      if (call.hold.writeFailure) throw call.hold.writeFailure
      if (stopping.aborted) end()
      this.#stop.signal.throwIfAborted()
      const reply = await this.#ask(target)
      call.noteFirstByte()
      const { result, error } = reply
      watcher?.received?.(
        Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) })),
      )
      return await this.#answer(target, reply)
    } catch (error) {
      if (error instanceof ServerFailure) return await this.#failed(target, error)
      if (error instanceof NoMemory) return await this.#unread(target)
      if (ENDINGS.some((one) => error instanceof one)) return await this.#ended(target, error)
      throw error
    } finally {
      stopping.removeEventListener('abort', end)
      unsubscribe()
      cancelled.removeEventListener('abort', leave)
      watcher?.over?.()
      this.#memory.release()
    }
  }

  async #target(): Promise<AttemptTarget> {
    const call = this.#call
    const [candidate] = this.#plan.channels
    if (!candidate) throw new Error('a call to a server without a channel')
    const prepared = await candidate.prepare(false, call)
    const request = await call.features.adapted(call, prepared, candidate.channel)
    return {
      channel: candidate.channel,
      key: NO_KEY,
      client: 'chat',
      request,
      plan: candidate,
      words: call.words,
      features: call.features,
    }
  }

  /** Ends a call whose answer is no longer wanted. What the server has not got is not charged. */
  async #ended(target: AttemptTarget, reason: unknown): Promise<Outcome> {
    const isGone = reason instanceof ClientLeft || reason instanceof CheckCancelled
    if (this.#isSent)
      await this.#call.settlement.settleMeasured(target, isGone ? 'client_gone' : 'cut', USED, false)
    else this.#call.settlement.settleUndelivered()
    if (isGone) return this.#isSent ? 'ok' : 'failed'
    if (reason instanceof CallStopped) throw new GatewayError('call_stopped', 'the call was stopped')
    throw new GatewayError('overloaded', 'the gateway is stopping', { retryAfter: 1 })
  }

  async #ask({ request }: AttemptTarget): Promise<ServerReply> {
    const call = this.#call
    const { known, version, method, paramHeaders, wantsProgress, sink, failure, timeoutMs } = this.#asked
    if (failure) throw failure
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
    request.onBody?.(body)
    const { _meta: meta, ...params } = asFields(asFields(parseExact(body.toString()))['params'])
    const headers = paramHeaders.flatMap(({ header, path }) => {
      const value = paramValue(params['arguments'], path)
      return value === undefined ? [] : [[header, value] as const]
    })
    // Notifications wait for their check one after another, so that they stay in order.
    let notified: Promise<void> = Promise.resolve()
    const reply = await known.connection.request({
      method,
      params,
      meta: asFields(meta),
      paramHeaders: Object.fromEntries(headers),
      tokenId: call.client,
      signal: this.#stop.signal,
      timeoutMs,
      onSent: () => (this.#isSent = true),
      take: this.#memory.take,
      mayRequireInput: version === STATELESS,
      wantsProgress,
      onNotification: (name, given) => {
        if (!sink.wants(name, given)) return
        call.noteFirstByte()
        notified = notified.then(async () => {
          const checked = await this.#checked({ jsonrpc: '2.0', method: name, params: given })
          if (checked) sink.notify(call, name, asFields(checked['params']))
        })
        notified.catch(() => {})
      },
    })
    await notified
    return reply
  }

  /** The message as guards let it pass; undefined if they block it. */
  async #checked(message: Fields): Promise<Fields | undefined> {
    const { features } = this.#call
    if (!features.checksResults) return message
    let scan: ScannedObject
    try {
      scan = scanObject(Buffer.from(JSON.stringify(message)), RESPONSE_LIMITS)
    } catch {
      // What cannot be read cannot be checked.
      return undefined
    }
    const checked = await features.result(this.#call, scan, MCP_RESULT)
    if (checked === scan) return message
    return checked && asFields(parseExact(checked.bytes.toString()))
  }

  async #answer(target: AttemptTarget, reply: ServerReply): Promise<Outcome> {
    const call = this.#call
    const { method, converted, sink } = this.#asked
    if (reply.error) {
      const checked = await this.#checked({ jsonrpc: '2.0', error: reply.error })
      const error = checked
        ? (checked['error'] as NonNullable<ServerReply['error']>)
        : { code: reply.error.code, message: 'a guard refused the words of this error' }
      call.noteError({
        cause: 'provider_refused',
        status: 200,
        type: 'mcp_error',
        code: String(error.code),
        message: checked ? call.features.errorText(reply.error.message, true) : error.message,
      })
      call.settlement.settleUndelivered(target)
      sink.finish(call, target, { error })
      return 'error'
    }
    const result = converted(withoutCode(reply))
    const checked = await this.#checked({ jsonrpc: '2.0', result })
    if (result['resultType'] === 'input_required') this.#makeFree()
    await call.settlement.settleMeasured(target, 'complete', USED, true)
    if (!checked) {
      sink.finish(call, target, { result: this.#failedResult('guard_blocked', 'a guard refused the result') })
      return 'tool_error'
    }
    sink.finish(call, target, { result: asFields(checked['result']) })
    return method === 'tools/call' && result['isError'] === true ? 'tool_error' : 'ok'
  }

  async #failed(target: AttemptTarget, { code, message }: ServerFailure): Promise<Outcome> {
    const call = this.#call
    const words = `the server ${this.#asked.known.server.name} ${WORDS[code]}`
    call.noteError({ cause: CAUSES[code], status: 200, type: 'mcp_server', code, message: words })
    call.attempts.failed(failureWithoutResponse(message))
    call.settlement.settleUndelivered(target)
    this.#finishFailed(target, code, words)
    return 'failed'
  }

  /** Ends a call whose answer was not read to its end. The server has done its work, so that it must not be asked again. */
  async #unread(target: AttemptTarget): Promise<Outcome> {
    const call = this.#call
    const { server } = this.#asked.known
    const code = 'overloaded'
    const message = `the answer of the server ${server.name} was not read: too many large answers are held for this client`
    call.noteError({ cause: 'gateway', status: 200, type: 'mcp_server', code, message })
    await call.settlement.settleMeasured(target, 'cut', USED, false)
    this.#finishFailed(target, code, message)
    return 'tool_error'
  }

  #finishFailed(target: AttemptTarget, code: string, message: string): void {
    const { method, sink } = this.#asked
    if (method === 'tools/call')
      sink.finish(this.#call, target, { result: this.#failedResult(code, message) })
    else sink.finish(this.#call, target, { error: { code: -32_603, message, data: { code } } })
  }

  #failedResult(code: string, message: string): Fields {
    const text = `${message} (request id: ${this.#call.incoming.id})`
    return this.#asked.converted({
      version: this.#asked.known.connection.version ?? '2026-07-28',
      result: { content: [{ type: 'text', text }], isError: true, _meta: { [CODE]: code } },
    })
  }

  /** Asks nothing for the call. */
  #makeFree(): void {
    const { plan } = this.#call
    const { settings } = plan
    const rate = chargeRateOf(FREE_PRICE, ZERO, settings.options.quota_per_unit)
    this.#call.switchModel({ ...plan, rate })
  }
}

/** Member of `_meta` with the code of a failure, which the gateway alone states. */
const CODE = 'sluice/code'

/** The reply without a code that its server has put there, as if the gateway had refused the call. */
function withoutCode(reply: ServerReply): ServerReply {
  const meta = reply.result?.['_meta']
  if (!isObject(meta) || !Object.hasOwn(meta, CODE)) return reply
  const { [CODE]: _, ...others } = meta
  return { ...reply, result: { ...reply.result, _meta: others } }
}

const NO_KEY = { value: '' }
const USED = { usage: NO_USAGE, isEstimate: false }

const WORDS: Readonly<Record<FailureCode, string>> = {
  server_unavailable: 'cannot be reached',
  server_auth: 'does not accept the credentials of the gateway',
  server_timeout: 'has not answered in time',
  server_answer: 'gave an answer that cannot be read',
}
