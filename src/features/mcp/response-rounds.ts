import { asRecord, parseRecord, stringOrEmpty } from '@sluice/wire/json/record'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { readResponsesRequest } from '@sluice/wire/responses'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { EventResponse } from '../../call/answers/event-response.ts'
import type { ScannedRequest } from '../../call/answer-request.ts'
import type { RunningCall } from '../../call/running-call.ts'
import { composedRequest, headersOfParts } from '../../call/composed-request.ts'
import { UpstreamRefusal } from '../../call/failure.ts'
import type { Relay } from '../../call/relay.ts'
import type { AttemptTarget } from '../../call/request-stages.ts'
import type { CallRecord, IncomingCall, RenderedRefusal } from '../../call/incoming-call.ts'
import { asGatewayError, GatewayError } from '../../errors.ts'
import { type RequestMemory, ResponseMemory } from '../../limits/request-memory.ts'
import { responseMemory } from '../../call/response-memory.ts'
import { allEnded } from './gathered-lists.ts'
import { ComposedResponse, type ResponseEnd } from './composed-response.ts'
import { declaredNames, type GatewayTool, OfferedTools } from './gateway-tools.ts'
import type { McpEndpoint } from './mcp-endpoint.ts'
import { type RoundAnswer, RoundEvents, type RoundItem, RoundResponse } from './round-events.ts'
import { RoundRequests, withoutId } from './round-requests.ts'
import { failedOutcome, outcomeOf, outcomeOfRefusal, type ToolOutcome } from './tool-outcome.ts'

/** Maximum number of rounds of a response. */
const MAX_ROUNDS = 16
/** Maximum number of tools that are called at the same time for a response. */
const MAX_AT_ONCE = 8
/** Providers refuse a smaller maximum of output tokens. */
const MIN_OUTPUT_TOKENS = 16
/** Bytes of a request that results of tools leave for the rest. */
const SPARE_BYTES = 64 * 1024

/** Keeps an answer for later requests. */
export type KeepAnswer = (answer: {
  readonly id: string
  readonly response: string
  readonly call: RunningCall
  readonly target: AttemptTarget
  /** Tokens of the conversation with the answer. */
  readonly tokens: number
}) => Promise<void>

export interface ResponseRoundServices {
  readonly relay: Pick<Relay, 'call'>
  readonly memory: RequestMemory
  readonly endpoint: Pick<McpEndpoint, 'listTools' | 'callTool'>
  /** Begins to keep the answer to a request; undefined if the gateway cannot, or its client does not want that. */
  readonly keep: (request: ScannedRequest) => Promise<KeepAnswer | undefined>
  /** The caller as the API key is now. Rejects if the key can no longer be used. */
  readonly callerNow: (incoming: IncomingCall, caller: Caller) => Caller | Promise<Caller>
  readonly renderError: (error: unknown, id: string) => RenderedRefusal
  /** Adds a call that was refused after the response had begun to the refused calls. */
  readonly noteRefusal: (part: IncomingCall, error: GatewayError) => void
}

/** Answers a request that offers the gateway's own tools: in rounds, each of which is a call of the model. */
export async function respondInRounds(
  request: ScannedRequest,
  tools: readonly GatewayTool[],
  services: ResponseRoundServices,
): Promise<void> {
  const { scan, incoming, caller, settings } = request
  refuseUnsupported(request)
  const lists = await allEnded(
    tools.map(async ({ index, toolset }) => {
      const list = await services.endpoint.listTools(caller, toolset, request.body.hold)
      if (list) return list
      const message = `Invalid 'tools[${index}].server_url': there is no such toolset.`
      throw new GatewayError('invalid_request', message)
    }),
  )
  const offered = new OfferedTools(tools, lists, declaredNames(scan), settings.options.body_limit)
  // Definitions are in each request, and in the answer.
  request.body.hold(2 * offered.bytes)
  const requests = new RoundRequests(scan, offered)
  const keep = await services.keep(request)
  if (incoming.response.isAborted) return
  await new ResponseInRounds(request, offered, requests, keep, services).run()
}

function refuseUnsupported({ scan, incoming }: ScannedRequest): void {
  if (incoming.holdFor)
    throw new GatewayError(
      'invalid_request',
      `Invalid 'tools': the tools of this gateway cannot be used in batches.`,
    )
  // The rounds replace some members, so that the checks of their calls do not see what the client has sent.
  if (readResponsesRequest(scan).background)
    throw new GatewayError(
      'invalid_request',
      `Invalid 'background': expected false, got true: the tools of this gateway are called while the client waits.`,
    )
  // The provider would add the same input in each round.
  if (scan.has('conversation') && scan.kind('conversation') !== 'null')
    throw new GatewayError(
      'invalid_request',
      `Invalid 'conversation': expected null: with the tools of this gateway, send all items in 'input' or use 'previous_response_id'.`,
    )
}

/** One response, in rounds. */
class ResponseInRounds {
  readonly #request: ScannedRequest
  readonly #offered: OfferedTools
  readonly #requests: RoundRequests
  readonly #keep: KeepAnswer | undefined
  readonly #services: ResponseRoundServices
  readonly #composed: ComposedResponse
  readonly #maxOutput: number | undefined
  /** Calls of tools that may still be made. */
  #callsLeft: number
  #round = 0
  #caller: Caller
  /** The last round that was answered. */
  #answered: RoundResponse | undefined
  /** Bytes of results that are not part of the next request yet. */
  #resultBytes = 0

  constructor(
    request: ScannedRequest,
    offered: OfferedTools,
    requests: RoundRequests,
    keep: KeepAnswer | undefined,
    services: ResponseRoundServices,
  ) {
    const { scan, incoming, caller } = request
    this.#request = request
    this.#offered = offered
    this.#requests = requests
    this.#keep = keep
    this.#services = services
    this.#caller = caller
    const { unavailable } = offered
    this.#composed = new ComposedResponse(
      incoming.response,
      scan,
      keep !== undefined,
      unavailable.length > 0 ? { 'x-gateway-mcp-unavailable': unavailable.join(', ') } : {},
    )
    this.#maxOutput = numberIn(scan, 'max_output_tokens')
    this.#callsLeft = Math.max(0, numberIn(scan, 'max_tool_calls') ?? Number.POSITIVE_INFINITY)
  }

  async run(): Promise<void> {
    try {
      for (;;) {
        const answer = await this.#nextRound()
        if (answer.kind === 'left') return
        if (answer.kind === 'refusal') return await this.#refused(answer)
        const end = await this.#afterRound(answer)
        if (this.#hasLeft) return
        if (end) return await this.#end(end)
      }
    } catch (error) {
      if (this.#hasLeft) return
      if (!this.#composed.hasBegun || !asGatewayError(error)) throw error
      await this.#refused({ kind: 'refusal', error })
    }
  }

  get #hasLeft(): boolean {
    return this.#request.incoming.response.isAborted
  }

  /** Calls the tools of a round. Returns how the response ends; undefined if another round follows. */
  async #afterRound({
    status,
    items,
  }: Extract<RoundAnswer, { kind: 'answer' }>): Promise<ResponseEnd | undefined> {
    const calls = items.filter(({ called }) => called)
    if (status !== 'completed') {
      await this.#callTools(calls, 0, 'the answer is not complete')
      return { status: status === 'incomplete' ? 'incomplete' : 'failed' }
    }
    if (calls.length === 0) return { status: 'completed' }
    const most = this.#round === MAX_ROUNDS ? 0 : this.#callsLeft
    const made = calls.slice(0, most)
    this.#callsLeft -= made.length
    const outputs = await this.#callTools(calls, made.length)
    if (this.#hasLeft) return undefined
    if (made.length < calls.length) return incomplete('max_tool_calls')
    const isOver = items.some(({ item: { type }, called }) => !called && CLIENT_CALLS.has(type))
    if (isOver) return { status: 'completed' }
    if (this.#outputLeft !== undefined && this.#outputLeft < MIN_OUTPUT_TOKENS)
      return incomplete('max_output_tokens')
    this.#add([...items.flatMap(forNextRound), ...outputs])
    return undefined
  }

  get #outputLeft(): number | undefined {
    return this.#maxOutput === undefined ? undefined : this.#maxOutput - this.#composed.outputTokens
  }

  #add(items: readonly string[]): void {
    this.#request.body.hold(items.reduce((sum, item) => sum + 2 * Buffer.byteLength(item), 0))
    this.#requests.add(items)
    this.#resultBytes = 0
  }

  /** Makes the call of the next round, and passes its answer on to the client. */
  async #nextRound(): Promise<RoundAnswer> {
    const { incoming, caller } = this.#request
    this.#round += 1
    const isFirst = this.#round === 1
    const round = new RoundEvents(this.#composed, this.#offered, () => this.#sendLists())
    const response = new RoundResponse(this.#eventMemory(), round)
    this.#composed.onDrained = () => response.onDrain()
    const body = this.#requests.body(isFirst, { outputTokens: this.#outputLeft, calls: this.#callsLeft })
    const inner = this.#part(isFirst ? '' : `.${this.#round}`, incoming.request.url, body, response)
    const unfollow = incoming.response.onClosed(() => {
      if (this.#hasLeft) response.onConnectionEnd('aborted')
    })
    try {
      if (!isFirst) this.#caller = await this.#services.callerNow(incoming, caller)
      if (this.#hasLeft) return { kind: 'left' }
      incoming.response.needsUpstream()
      await this.#services.relay.call('responses', inner, this.#caller)
      if (this.#hasLeft) return { kind: 'left' }
      const answer = round.answer()
      if (answer.kind === 'answer') this.#answered = response
      return answer
    } catch (error) {
      const known = asGatewayError(error)
      if (!isFirst && !(error instanceof UpstreamRefusal) && !known) throw error
      if (!isFirst && known) this.#services.noteRefusal(inner, known)
      return { kind: 'refusal', error }
    } finally {
      unfollow()
      addRecord(incoming.record, inner.record, isFirst)
      if (inner.hasFailed) incoming.hasFailed = true
    }
  }

  /** Memory for events of a part's answer. */
  #eventMemory(): ResponseMemory {
    const { user, token } = this.#caller
    return new ResponseMemory(this.#services.memory, { client: user.id, key: token.id })
  }

  /** A call that is made for the client's. */
  #part(suffix: string, url: string, body: Buffer, response: EventResponse): IncomingCall {
    const { id, transport, request, isTraced } = this.#request.incoming
    const { token, user } = this.#request.caller
    const { remoteAddress } = request
    return {
      id: `${id}${suffix}`,
      ...(transport && { transport }),
      ...(isTraced && { isTraced }),
      request: composedRequest(url, headersOfParts(request.headers), body, { remoteAddress, bytesRead: 0 }),
      response,
      record: { userId: user.id, tokenId: token.id },
      startedMs: Date.now(),
      startedAt: performance.now(),
      isPart: true,
    }
  }

  /** Sends the items with the tools that each tool of the request offers. */
  #sendLists(): void {
    const composed = this.#composed
    for (const { item } of this.#offered.offers) {
      const index = composed.newIndex()
      const id = composed.idAt(index, 'mcpl_')
      const at = { item_id: JSON.stringify(id), output_index: String(index) }
      const listed = JSON.stringify({ id, ...item })
      const empty = JSON.stringify({ id, ...item, tools: [], error: null })
      const hasFailed = item['error'] !== null && (item['tools'] as readonly unknown[]).length === 0
      composed.send('response.output_item.added', { output_index: String(index), item: empty })
      composed.send('response.mcp_list_tools.in_progress', at)
      composed.send(`response.mcp_list_tools.${hasFailed ? 'failed' : 'completed'}`, at)
      composed.send('response.output_item.done', { output_index: String(index), item: listed })
      composed.setItem(index, listed)
    }
  }

  /** Calls the first `made` tools, and returns the items with their outputs for the model. */
  async #callTools(
    calls: readonly RoundItem[],
    made: number,
    unlessMade = 'the response has made the maximum number of calls',
  ): Promise<readonly string[]> {
    const outcomes = calls.map(() => Promise.withResolvers<ToolOutcome>())
    for (const { promise } of outcomes) promise.catch(() => {})
    let next = 0
    const work = async (): Promise<void> => {
      for (let at = next++; at < made; at = next++) {
        const { resolve, reject } = outcomes[at] as PromiseWithResolvers<ToolOutcome>
        if (this.#hasLeft) resolve(notCalled(CLIENT_LEFT))
        else await this.#callTool(calls[at] as RoundItem, `.${this.#round}.${at + 1}`).then(resolve, reject)
      }
    }
    const { token, user } = this.#caller
    // A key whose parallel calls are limited has one place for the response.
    const isLimited = token.rateLimit.parallel > 0 || user.rateLimit.parallel > 0
    const working = Array.from({ length: isLimited ? 1 : Math.min(made, MAX_AT_ONCE) }, work)
    for (const { resolve } of outcomes.slice(made)) resolve(notCalled(unlessMade))
    const items: string[] = []
    try {
      for (const [at, call] of calls.entries()) items.push(await this.#showCall(call, outcomes[at]?.promise))
    } finally {
      await Promise.all(working)
    }
    return items
  }

  /** Sends the item of a call with its outcome, and returns the item for the model. */
  async #showCall({ item, called }: RoundItem, outcome: Promise<ToolOutcome> | undefined): Promise<string> {
    const composed = this.#composed
    const index = composed.newIndex()
    const id = composed.idAt(index, 'mcp_')
    const given = stringOrEmpty(item['arguments'])
    const shown = (status: string, input: string, { output, error }: Pick<ToolOutcome, 'output' | 'error'>) =>
      JSON.stringify({
        id,
        type: 'mcp_call',
        status,
        approval_request_id: null,
        arguments: input,
        error,
        name: called?.listed,
        output,
        server_label: called?.tool.label,
      })
    const place = String(index)
    const at = { item_id: JSON.stringify(id), output_index: place }
    const none = { output: null, error: null }
    composed.send('response.output_item.added', { output_index: place, item: shown('in_progress', '', none) })
    composed.send('response.mcp_call.in_progress', at)
    composed.send('response.mcp_call_arguments.delta', { ...at, delta: JSON.stringify(given) })
    composed.send('response.mcp_call_arguments.done', { ...at, arguments: JSON.stringify(given) })
    const came = (await outcome) ?? notCalled(CLIENT_LEFT)
    const done = shown(came.status, given, came)
    composed.send(`response.mcp_call.${came.status === 'completed' ? 'completed' : 'failed'}`, at)
    composed.send('response.output_item.done', { output_index: place, item: done })
    composed.setItem(index, done)
    return JSON.stringify({ type: 'function_call_output', call_id: item['call_id'], output: came.text })
  }

  /**
   * The outcome, or an error in its place if the next request would be too large. It is checked as soon as it is known, so
   * that the results of many calls are never in memory together.
   */
  #withinRoom(outcome: ToolOutcome): ToolOutcome {
    const room =
      this.#request.settings.options.body_limit - this.#requests.bytes - this.#resultBytes - SPARE_BYTES
    const { text, error } = outcome
    const bytes = Buffer.byteLength(JSON.stringify(error === null ? text : [text, error]))
    if (bytes > room) return failedOutcome(`the result has ${bytes} bytes, which is too long for a request`)
    this.#resultBytes += bytes
    return outcome
  }

  async #callTool({ item, called }: RoundItem, suffix: string): Promise<ToolOutcome> {
    const given = stringOrEmpty(item['arguments']).trim() || '{}'
    if (!called || !parseRecord(given)) return failedOutcome('the arguments are not a JSON object')
    const { incoming, caller } = this.#request
    const name = JSON.stringify(called.listed)
    const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${name},"arguments":${given}}}`
    const output = { event: () => true, whole() {}, ended: (sent: () => void) => sent(), broke() {} }
    const response = new EventResponse(this.#eventMemory(), output)
    const unfollow = incoming.response.onClosed(() => {
      if (this.#hasLeft) response.onConnectionEnd('aborted')
    })
    const part = this.#part(suffix, '/mcp', Buffer.from(message), response)
    try {
      this.#caller = await this.#services.callerNow(incoming, caller)
      if (this.#hasLeft) return notCalled(CLIENT_LEFT)
      const answer = await this.#services.endpoint.callTool(part, this.#caller, called.tool.toolset)
      return answer ? this.#withinRoom(outcomeOf(answer)) : notCalled(CLIENT_LEFT)
    } catch (error) {
      const known = asGatewayError(error)
      if (known) this.#services.noteRefusal(part, known)
      return outcomeOfRefusal(error)
    } finally {
      unfollow()
    }
  }

  /** Ends the response because a round was refused or has failed. What there is of it is not lost. */
  #refused({ error, refused }: Extract<RoundAnswer, { kind: 'refusal' }>): void | Promise<void> {
    const { incoming } = this.#request
    incoming.hasFailed = true
    if (!this.#composed.hasBegun) {
      if (!refused) throw error
      incoming.response.writeHead(refused.status, refused.headers).end(refused.body)
      return
    }
    const { status, body } = refused ?? this.#services.renderError(error, `${incoming.id}.${this.#round}`)
    const given = asRecord(parseRecord(body.toString())?.['error'])
    const code = stringOrEmpty(given?.['code']) || 'server_error'
    if (status === 403 || status === 429 || code === 'token_exhausted') {
      // An answer, although a round was refused: what there is was charged, and its tools must not be called again.
      incoming.hasFailed = false
      return this.#end(incomplete(code))
    }
    const message = stringOrEmpty(given?.['message']) || 'the call failed'
    return this.#end({ status: 'failed', error: JSON.stringify({ code, message }) })
  }

  async #end(end: ResponseEnd): Promise<void> {
    const final = this.#composed.final(end)
    const { call, target } = this.#answered ?? {}
    const { id, isStream } = this.#composed
    if (this.#keep && call && target && end.status !== 'failed') {
      const tokens = Number(asRecord(parseRecord(final)?.['usage'])?.['total_tokens']) || 0
      await this.#keep({ id, response: final, call, target, tokens })
    }
    if (call && !this.#hasLeft) {
      const memory = responseMemory(call)
      this.#request.incoming.response.onClosed(() => memory.resize(0))
      // The items that were streamed before may be unread, too.
      memory.resize((isStream ? 2 : 1) * Buffer.byteLength(final))
      await memory.whenEnough()
    }
    this.#composed.end(end, final)
  }
}

const CLIENT_LEFT = 'the client has left'

function notCalled(why: string): ToolOutcome {
  return failedOutcome(`not called: ${why}`, undefined, 'incomplete')
}

/** Types of items that call what the client runs. */
const CLIENT_CALLS: ReadonlySet<unknown> = new Set([
  'function_call',
  'custom_tool_call',
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'computer_call',
  'tool_search_call',
  'mcp_approval_request',
])

function incomplete(reason: string): ResponseEnd {
  return { status: 'incomplete', incompleteDetails: JSON.stringify({ reason }) }
}

function numberIn(scan: ScannedObject, name: string): number | undefined {
  const value = scan.has(name) ? scan.value(name) : undefined
  return typeof value === 'number' ? value : undefined
}

/** The item as part of the next input; none for thoughts that only the response's own provider can look up. */
function forNextRound({ text, item }: RoundItem): readonly string[] {
  if (item['type'] === 'reasoning') return typeof item['encrypted_content'] === 'string' ? [text] : []
  return [withoutId(text)]
}

/** Adds what the log says about a round to the record of the client's request. */
function addRecord(whole: CallRecord, part: CallRecord, isFirst: boolean): void {
  const { quota, inputTokens, outputTokens } = whole
  Object.assign(whole, part)
  if (isFirst) return
  for (const [name, before] of Object.entries({ quota, inputTokens, outputTokens }))
    if (before !== undefined) {
      const key = name as 'quota' | 'inputTokens' | 'outputTokens'
      whole[key] = before + (part[key] ?? 0)
    }
}
