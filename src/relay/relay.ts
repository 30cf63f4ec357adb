import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../access/caller.ts'
import type { Channel, ProtocolName } from '../domain/channel.ts'
import { charge, mostItCanCost } from '../domain/price.ts'
import type { Settings } from '../domain/settings.ts'
import { NO_USAGE } from '../domain/usage.ts'
import { GatewayError } from '../errors.ts'
import type { Account } from '../ledger/balance.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { scanObject } from '../protocols/json-scan.ts'
import { countableText } from '../protocols/messages/index.ts'
import type { ChannelHealth } from '../upstreams/channel-health.ts'
import type { Upstreams } from '../upstreams/http.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'
import { Attempts, unwritable } from './attempts.ts'
import type { Bodies } from './body.ts'
import type { CallLimits } from './call-limits.ts'
import { Call, type CallRecord, type OutputBudget } from './call.ts'
import type { Drains } from './drains.ts'
import { STOPPING, UpstreamRefusal } from './failure.ts'
import type { LocalCount } from './local-count.ts'
import { Rates } from './rates.ts'
import { type Resolution, Routing } from './resolve.ts'
import type { Media } from './media.ts'
import { chatDialect } from './roads/chat.ts'
import { Conversions } from './roads/conversions.ts'
import { countTokensDialect, NobodyCounts } from './roads/count-tokens.ts'
import { messagesDialect } from './roads/messages.ts'
import { rerankDialect } from './roads/rerank.ts'
import type { Dialect, RelayedRequest } from './roads/road.ts'

/** Web searches that one call may make, at most, by what is asked for. */
const SEARCHES_HELD = 10
/** A prompt's expected tokens, from the bound in bytes. */
const EXPECTED_BYTES_PER_TOKEN = 4

/** What relaying needs. */
export interface RelayParts {
  /** The configuration in force; each call keeps the one it began with. */
  readonly settings: () => Settings
  readonly ledger: Ledger
  readonly upstreams: Upstreams
  readonly keyRings: KeyRings
  readonly health: ChannelHealth
  readonly bodies: Bodies
  readonly count: LocalCount
  readonly drains: Drains
  readonly metrics: Metrics
  readonly media: Media
  readonly limits: CallLimits
}

/** A request to relay. */
export interface Visit {
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly record: CallRecord
  readonly startedMs: number
}

/** Relays calls: reads, admits, tries channel after channel, and sees to it that each hold is resolved. */
export class Relay {
  readonly #parts: RelayParts
  readonly #rates = new Rates()
  readonly #routing = new Routing()
  readonly #dialects: Record<ProtocolName, Dialect>
  readonly #attempts: Attempts

  constructor(parts: RelayParts) {
    this.#parts = parts
    const conversions = new Conversions(parts.media)
    this.#dialects = {
      chat: chatDialect(conversions),
      messages: messagesDialect(conversions),
      rerank: rerankDialect,
    }
    this.#attempts = new Attempts(parts)
  }

  /** Streams under way. */
  get openStreams(): number {
    return this.#attempts.openStreams
  }

  /** Ends the calls that are still under way: streams with an error event, all of them with a settlement. */
  stop(): void {
    this.#attempts.stop()
  }

  /** Stops the clock that running calls are watched by. */
  close(): void {
    this.#attempts.close()
  }

  /** Tells how many tokens a messages request would have. */
  async countTokens(visit: Visit, caller: Caller): Promise<void> {
    const settings = this.#parts.settings()
    const body = await this.#parts.bodies.read(visit.request, settings.options.bodyLimit)
    try {
      await this.#relay(countTokensDialect, visit, caller, settings, body.bytes)
    } catch (error) {
      if (!countsNothing(error)) throw error
      const { text, extraTokens } = countableText(scanObject(body.bytes))
      const input = (await this.#parts.count.count(text)) + extraTokens
      visit.response.writeHead(200, { 'content-type': 'application/json', 'x-request-id': visit.id })
      visit.response.end(JSON.stringify({ input_tokens: input }))
    } finally {
      body.release()
    }
  }

  /** Relays one call in the caller's dialect. Rejects with what the caller is to be told, where nothing was sent to it yet. */
  async call(protocol: ProtocolName, relayed: Visit, caller: Caller): Promise<void> {
    const dialect = this.#dialects[protocol]
    const settings = this.#parts.settings()
    const body = await this.#parts.bodies.read(relayed.request, settings.options.bodyLimit)
    try {
      await this.#relay(dialect, relayed, caller, settings, body.bytes)
    } finally {
      body.release()
    }
  }

  async #relay(
    dialect: Dialect,
    relayed: Visit,
    caller: Caller,
    settings: Settings,
    body: Buffer,
  ): Promise<void> {
    const request = dialect.read(scanObject(body), relayed.request.headers)
    const { record } = relayed
    record.model = request.model
    record.stream = request.stream
    const resolution = this.#routing.resolve(settings, caller, request.model, dialect.name)
    const { ledger, limits } = this.#parts
    limits.enter(settings, caller.token.id, resolution.model)
    const { accounts } = ledger
    if (!ledger.isWritable && !(await ledger.probe())) throw unwritable()
    // Found and charged in one turn: in between it might be forgotten, and read a second time.
    const account = accounts.get(caller.token.id) ?? (await accounts.load(caller.token.id))
    if (!account) throw new GatewayError('invalid_api_key', 'this API key is unknown')
    const call = this.#admit(settings, relayed, account, dialect, request, body, resolution)
    try {
      await this.#attempts.run(call, settings, resolution)
    } finally {
      if (!call.hold.isSettled) call.settleForNothing(undefined)
    }
  }

  #admit(
    settings: Settings,
    { id, response, record, startedMs }: Visit,
    account: Account,
    dialect: Dialect,
    request: RelayedRequest,
    body: Buffer,
    { model, group, channels }: Resolution,
  ): Call {
    // Its body came too late.
    if (this.#attempts.isStopped) throw STOPPING.refusal
    const rate = request.isFree ? this.#rates.free : this.#rates.of(settings, model, group)
    const searches = request.webSearch ? SEARCHES_HELD : 0
    const { holdTokens } = settings.options
    const maximum = outputMaximum(request, channels)
    const tokens = (maximum ?? holdTokens) * request.n
    const most = (output: number): number => mostItCanCost(rate, request.promptBound, output, searches)
    const amount = most(tokens)
    const promptTokens = Math.ceil(request.promptBound / EXPECTED_BYTES_PER_TOKEN)
    const hold = this.#parts.ledger.admit(account, amount, {
      id,
      model: model.name,
      channel: channels[0]?.name ?? '',
      group: group.name,
      stream: request.stream,
      priceVersion: settings.priceVersion,
      startedMs,
      promptAmount: charge(rate, { ...NO_USAGE, input: promptTokens }),
    })
    const budget: OutputBudget = {
      tokens,
      named: maximum !== undefined,
      slice: holdTokens,
      sliceQuota: most(tokens + holdTokens) - amount,
    }
    const { count, drains, metrics, limits } = this.#parts
    return new Call({
      dialect,
      request,
      body,
      hold,
      rate,
      budget,
      response,
      record,
      count,
      drains,
      metrics,
      limits,
      settings,
      model,
      promptTokens,
    })
  }
}

/** Upstreams of the messages protocol need not count: those that do not have no such address. */
function countsNothing(error: unknown): boolean {
  return error instanceof NobodyCounts || (error instanceof UpstreamRefusal && error.status === 404)
}

/** The most that any of the channels will be told; undefined where one is told none. */
function outputMaximum(request: RelayedRequest, channels: readonly Channel[]): number | undefined {
  const maxima = channels.map((channel) => request.outputMaximum(channel))
  return maxima.includes(undefined) ? undefined : Math.max(...(maxima as number[]))
}
