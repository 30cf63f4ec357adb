import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../access/caller.ts'
import type { Channel } from '../domain/channel.ts'
import { charge, mostItCanCost } from '../domain/price.ts'
import type { Settings } from '../domain/settings.ts'
import { NO_USAGE } from '../domain/usage.ts'
import { GatewayError } from '../errors.ts'
import type { Account } from '../ledger/balance.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type ChatRequest, gateChatRequest, readChatRequest } from '../protocols/chat/index.ts'
import { scanObject } from '../protocols/json-scan.ts'
import type { ScannedObject } from '../protocols/scanned-object.ts'
import type { Upstreams } from '../upstreams/http.ts'
import type { KeyRings, UpstreamKey } from '../upstreams/key-ring.ts'
import { Attempt } from './attempt.ts'
import type { Bodies } from './body.ts'
import { Call, type CallRecord, type OutputBudget, type Target } from './call.ts'
import type { Drains } from './drains.ts'
import { type Failure, lastWord, STOPPING } from './failure.ts'
import type { LocalCount } from './local-count.ts'
import { Rates } from './rates.ts'
import { type Resolution, Routing } from './resolve.ts'

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
  readonly bodies: Bodies
  readonly count: LocalCount
  readonly drains: Drains
  readonly metrics: Metrics
}

interface Turn {
  readonly channel: Channel
  readonly keys: readonly UpstreamKey[]
}

/** A request to relay. */
export interface RelayRequest {
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
  /** The attempts under way, and those whose upstream has not fallen silent yet. */
  readonly #attempts = new Set<Attempt>()
  readonly #sweep: NodeJS.Timeout
  #stopped = false

  constructor(parts: RelayParts) {
    this.#parts = parts
    // One timer for all calls: a timer for each would cost more than the calls.
    this.#sweep = setInterval(() => this.#tick(Date.now()), 1_000).unref()
  }

  /** Streams under way. */
  get openStreams(): number {
    return [...this.#attempts].filter((attempt) => attempt.isStream && !attempt.isFinished).length
  }

  /** Ends the calls that are still under way: streams with an error event, all of them with a settlement. */
  stop(): void {
    this.#stopped = true
    for (const attempt of this.#attempts) attempt.stop()
  }

  /** Stops the clock that running calls are watched by. */
  close(): void {
    clearInterval(this.#sweep)
  }

  /** Relays one chat completion. Rejects with what the caller is to be told, where nothing was sent to it yet. */
  async chatCompletion(relayed: RelayRequest, caller: Caller): Promise<void> {
    const settings = this.#parts.settings()
    const body = await this.#parts.bodies.read(relayed.request, settings.options.bodyLimit)
    try {
      await this.#relay(relayed, caller, settings, body.bytes)
    } finally {
      body.release()
    }
  }

  async #relay(relayed: RelayRequest, caller: Caller, settings: Settings, body: Buffer): Promise<void> {
    const scan = scanObject(body)
    const request = readChatRequest(scan)
    const { record } = relayed
    record.model = request.model
    record.stream = request.stream
    const resolution = this.#routing.resolve(settings, caller, request.model)
    const { accounts } = this.#parts.ledger
    // Found and charged in one turn: in between it might be forgotten, and read a second time.
    const account = accounts.get(caller.token.id) ?? (await accounts.load(caller.token.id))
    if (!account) throw new GatewayError('invalid_api_key', 'this API key is unknown')
    const call = this.#admit(settings, relayed, account, request, body, resolution)
    try {
      await this.#attempt(call, settings, scan, resolution)
    } finally {
      if (!call.hold.isSettled) call.settleForNothing(undefined)
    }
  }

  #admit(
    settings: Settings,
    { id, response, record, startedMs }: RelayRequest,
    account: Account,
    request: ChatRequest,
    body: Buffer,
    { model, group, channels }: Resolution,
  ): Call {
    // Its body came too late: nothing begins any more.
    if (this.#stopped) throw STOPPING.refusal
    const rate = this.#rates.of(settings, model, group)
    const searches = request.webSearch ? SEARCHES_HELD : 0
    const { holdTokens } = settings.options
    const tokens = (request.maxTokens ?? holdTokens) * request.n
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
      named: request.maxTokens !== undefined,
      slice: holdTokens,
      sliceQuota: most(tokens + holdTokens) - amount,
    }
    const { count, drains, metrics } = this.#parts
    return new Call({
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
      promptTokens,
    })
  }

  async #attempt(
    call: Call,
    settings: Settings,
    scan: ScannedObject,
    { channels }: Resolution,
  ): Promise<void> {
    const { keyRings } = this.#parts
    const failures: Failure[] = []
    for (const { channel, keys } of this.#inTurn(channels, settings)) {
      const gated = gateChatRequest(scan, call.request, channel, settings.options.passThrough)
      call.record.channel = channel.name
      for (const key of keys) {
        let failure = await this.#once(call, { channel, gated }, key)
        if (failure?.onward === 'same-again') failure = await this.#once(call, { channel, gated }, key)
        if (!failure) return
        if (call.hold.isLost) throw unwritable()
        failures.push(failure)
        if (failure.keyRefused) keyRings.setAside(channel, key, Date.now())
        if (failure.onward === 'nowhere') throw lastWord(failures)
        if (failure.onward !== 'next-key') break
      }
    }
    throw lastWord(failures)
  }

  // Keys that were refused lately are passed over, unless there are no others: then they are as good as any.
  #inTurn(channels: readonly Channel[], settings: Settings): Turn[] {
    const { keyRings } = this.#parts
    const nowMs = Date.now()
    const turns = channels.map((channel) => ({ channel, keys: keyRings.inTurn(channel) }))
    const good = turns
      .map(({ channel, keys }) => ({
        channel,
        keys: keys.filter((key) => !keyRings.isSetAside(channel, key, nowMs)),
      }))
      .filter(({ keys }) => keys.length > 0)
    return (good.length > 0 ? good : turns).slice(0, 1 + settings.options.retries)
  }

  /** One attempt; undefined if the call is settled by it. */
  async #once(call: Call, target: Target, key: UpstreamKey): Promise<Failure | undefined> {
    const { response, hold, request, record } = call
    if (response.destroyed) return CALLER_GONE
    if (this.#stopped) return STOPPING
    const { channel, gated } = target
    const attempt = new Attempt(call, target, Date.now())
    const left = (): void => {
      if (!response.writableFinished) attempt.left()
    }
    response.once('close', left)
    this.#attempts.add(attempt)
    record.attempts = (record.attempts ?? 0) + 1
    const accept = request.stream ? 'text/event-stream' : 'application/json'
    attempt.sent(
      this.#parts.upstreams.post(hold, channel, key, '/chat/completions', accept, gated.body, attempt),
    )
    try {
      const end = await attempt.end
      if (attempt.succeeded) this.#parts.keyRings.restore(channel, key)
      if (end === 'settled') return undefined
      record.failure = end.cause
      if (end !== STOPPING) this.#parts.metrics.upstreamErrors.add(1, channel.name, end.cause)
      return end
    } finally {
      response.off('close', left)
      if (attempt.isSilent) this.#attempts.delete(attempt)
    }
  }

  #tick(nowMs: number): void {
    for (const attempt of this.#attempts) {
      attempt.tick(nowMs)
      if (attempt.isFinished && attempt.isSilent) this.#attempts.delete(attempt)
    }
  }
}

/** Nobody is there to be answered any more. */
const CALLER_GONE: Failure = {
  onward: 'nowhere',
  keyRefused: false,
  refusal: undefined,
  cause: 'caller gone',
}

function unwritable(): GatewayError {
  return new GatewayError('overloaded', 'the gateway cannot write its accounts at the moment; try again', {
    retryAfter: 5,
  })
}
