import type { LedgerWriter } from '../../accounts/ledger/ledger-writer.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { GatewayError } from '../../errors.ts'
import { ResizableAllocation, type RequestMemory } from '../../limits/request-memory.ts'
import type { Store } from '../../store/store.ts'
import {
  missedCallsEvent,
  type LiveEventBatch,
  LiveStreamClient,
  sumOrUnknown,
} from './live-stream-client.ts'
import {
  LiveSource,
  type LiveCallBatch,
  type LiveQuery,
  liveQueryKey,
  CallsPerSecond,
  RowJsonCache,
} from './live-source.ts'

/** Milliseconds between two batches of settled calls that are sent to readers. */
const TURN_MS = 250

/** Maximum number of calls in a batch. Readers miss further calls. */
const MAX_CALLS_PER_TURN = 500

/**
 * Milliseconds for which the recent events of a query that nobody reads any more are kept, in case its last
 * reader reconnects.
 */
const LINGER_MS = 60_000

/** Maximum number of live streams of one user. */
const MAX_PER_USER = 4

/** Seconds after which a client whose stream was refused may try again. */
const RETRY_SECONDS = 15

/** Services and settings with which `LiveCalls` is created. */
interface LiveCallsDependencies {
  readonly ledger: Pick<LedgerWriter, 'onSettled'>
  readonly store: Pick<Store, 'read'>
  readonly memory: RequestMemory
  /** Maximum number of readers of this process. */
  readonly maxReaders: () => number
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number
}

/** Which settled calls a client wants to be sent live. */
interface Wanted {
  readonly userId: number
  readonly scope: LiveQuery['scope']
  /** Which calls match; `null` matches none. */
  readonly filter: UsageFilter | null
  /** Id of the last call that the client received, if it has read before. */
  readonly lastId: string | undefined
}

/**
 * The selection of calls for one query and their broadcast, which is kept for a while without readers.
 * `leftMs` is when the last reader left, in milliseconds of the monotonic clock.
 */
interface RetainedBroadcast {
  readonly source: LiveSource
  readonly broadcast: LiveCallBroadcast
  leftMs: number
}

/**
 * Streams settled calls to readers, such as the console. Without readers nothing is done. With readers, a
 * call adds one entry to a list; everything else is done per batch, once for all readers with the same query.
 * `docs/api.md: Live calls`.
 */
export class LiveCalls {
  readonly #dependencies: LiveCallsDependencies
  /** The clients that read calls live, with the ids of their users. */
  readonly #readers = new Map<LiveStreamClient, number>()
  /** Broadcasts to readers, by the name of the query. */
  readonly #broadcasts = new Map<string, RetainedBroadcast>()
  #settled: SettledCall[] = []
  #hasLost = false
  #turns: NodeJS.Timeout | undefined
  #isBusy = false

  constructor(dependencies: LiveCallsDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Opens a stream of live calls for a client. Throws `rate_limited` if the user or this process already has
   * the maximum number of such streams.
   */
  open({ userId, scope, filter, lastId }: Wanted): LiveStreamClient {
    const own = [...this.#readers.values()].filter((one) => one === userId).length
    if (own >= MAX_PER_USER) throw tooMany(`${MAX_PER_USER} live streams of this user are open`)
    const max = this.#dependencies.maxReaders()
    if (this.#readers.size >= max) throw tooMany(`${max} live streams of this gateway are open`)
    const memory = (): ResizableAllocation =>
      new ResizableAllocation(this.#dependencies.memory, { client: userId, key: '' })
    const kept = filter ? this.#broadcastOf({ scope, filter }, max, memory) : undefined
    const reader: LiveStreamClient = new LiveStreamClient(() => {
      this.#readers.delete(reader)
      kept?.broadcast.readers.delete(reader)
      if (kept) kept.leftMs = this.#dependencies.nowMs()
    }, memory())
    kept?.broadcast.add(reader, lastId)
    this.#readers.set(reader, userId)
    return reader
  }

  /** Ends all streams of live calls, because the gateway is stopping. */
  close(): void {
    for (const reader of this.#readers.keys()) reader.end('gateway_stopping')
    for (const name of this.#broadcasts.keys()) this.#drop(name)
    this.#unfollow()
  }

  #broadcastOf(query: LiveQuery, max: number, memory: () => ResizableAllocation): RetainedBroadcast {
    const name = liveQueryKey(query)
    const found = this.#broadcasts.get(name)
    if (found) return found
    // Limits the number of broadcasts without readers, which a client could leave behind by opening streams
    // with ever new filters.
    const unread = [...this.#broadcasts].find(([, { broadcast }]) => broadcast.readers.size === 0)
    if (this.#broadcasts.size >= max && unread) this.#drop(unread[0])
    const made: RetainedBroadcast = {
      source: new LiveSource(query),
      broadcast: new LiveCallBroadcast(memory()),
      leftMs: 0,
    }
    this.#broadcasts.set(name, made)
    this.#follow()
    return made
  }

  #drop(name: string): void {
    this.#broadcasts.get(name)?.broadcast.close()
    this.#broadcasts.delete(name)
  }

  #follow(): void {
    this.#turns ??= setInterval(() => void this.#turn(), TURN_MS).unref()
    this.#dependencies.ledger.onSettled = (call) => {
      if (this.#settled.length < MAX_CALLS_PER_TURN) this.#settled.push(call)
      else this.#hasLost = true
    }
  }

  #unfollow(): void {
    clearInterval(this.#turns)
    this.#turns = undefined
    this.#dependencies.ledger.onSettled = undefined
    this.#settled = []
    this.#hasLost = false
  }

  async #turn(): Promise<void> {
    if (this.#isBusy) return
    const nowMs = this.#dependencies.nowMs()
    this.#dropUnread(nowMs)
    const calls = this.#settled
    const hasLost = this.#hasLost
    this.#settled = []
    this.#hasLost = false
    const broadcasts = [...this.#broadcasts.values()]
    const shown = broadcasts.flatMap(({ source, broadcast }) =>
      source.begin(calls, hasLost, broadcast.roomAt(nowMs)),
    )
    this.#isBusy = true
    const rows = await this.#rowsOf(shown)
    this.#isBusy = false
    for (const { source, broadcast } of broadcasts) broadcast.show(source.end(rows), nowMs)
  }

  #dropUnread(nowMs: number): void {
    for (const [name, { broadcast, leftMs }] of this.#broadcasts)
      if (broadcast.readers.size === 0 && nowMs - leftMs >= LINGER_MS) this.#drop(name)
    if (this.#broadcasts.size === 0) this.#unfollow()
  }

  /**
   * Reads the names of the calls' users and tokens, and the ids of their channels. Without names if the
   * database is unavailable.
   */
  async #rowsOf(calls: readonly SettledCall[]): Promise<RowJsonCache> {
    if (calls.length === 0) return new RowJsonCache(new Map())
    try {
      const tokenIds = [...new Set(calls.map(({ token_id: tokenId }) => tokenId))]
      const found = await this.#dependencies.store.read('tokenNames', { tokenIds })
      const channels = [...new Set(calls.map(({ channel }) => channel))].filter((name) => name !== '')
      const channelIds = await this.#dependencies.store.read('channelIds', { names: channels })
      return new RowJsonCache(
        new Map(found.map(({ token_id: tokenId, ...names }) => [tokenId, names])),
        channelIds,
      )
    } catch {
      return new RowJsonCache(new Map())
    }
  }
}

function tooMany(sentence: string): GatewayError {
  return new GatewayError('rate_limited', `${sentence}: end one of them first`, { retryAfter: RETRY_SECONDS })
}

/**
 * Maximum number of recent events that are kept for readers that reconnect. Such a reader is sent at most
 * `MAX_AT_ONCE` calls; further ones are reported as missed.
 */
const MAX_KEPT = 200
const MAX_AT_ONCE = 20

/** An event that was sent to readers: a call, or a gap with a number of missed calls. */
interface Event {
  readonly id: string | null
  readonly text: string
  readonly missed: number | null
}

/** Sends calls to all readers with the same query. Each event is made only once. */
export class LiveCallBroadcast {
  readonly readers = new Set<LiveStreamClient>()
  readonly #memory: ResizableAllocation
  readonly #budget = new CallsPerSecond()
  /** Events that are kept, the oldest first. */
  #kept: Event[] = []
  /** Number of calls that were not shown since the last gap was reported; null if unknown. */
  #missed: number | null = 0

  /** `memory` is the memory for events that are kept. */
  constructor(memory: ResizableAllocation) {
    this.#memory = memory
  }

  /** Drops all kept events, because no reader will reconnect. */
  close(): void {
    this.#kept = []
    this.#memory.release()
  }

  /** Adds a reader. If it has read before, sends it the kept events after the last call that it received. */
  add(reader: LiveStreamClient, lastId: string | undefined): void {
    // Calls that were missed before are reported only to readers that are already connected.
    this.#send(this.#gap())
    if (lastId !== undefined) this.#catchUp(reader, lastId)
    this.readers.add(reader)
  }

  /** Number of further calls that may be sent in this second. */
  roomAt(nowMs: number): number {
    return this.#budget.roomAt(nowMs)
  }

  /**
   * Sends calls to the readers, but only so many per second. Missed calls are reported before the next call.
   */
  show({ calls, missed }: LiveCallBatch, nowMs: number): void {
    const room = this.roomAt(nowMs)
    const shown = calls.slice(0, room)
    this.#budget.take(shown.length)
    this.#send([
      ...(room > 0 ? this.#gap() : []),
      ...shown.map(({ id, text }) => ({
        id,
        text: `event: call\nid: ${id}\ndata: ${text}\n\n`,
        missed: 1,
      })),
    ])
    this.#missed = sumOrUnknown([this.#missed, missed, calls.length - shown.length])
    for (const reader of this.readers) reader.settle()
  }

  #gap(): Event[] {
    const missed = this.#missed
    this.#missed = 0
    return missed === 0 ? [] : [{ id: null, text: missedCallsEvent(missed), missed }]
  }

  #send(events: readonly Event[]): void {
    if (events.length === 0) return
    for (const event of events) this.#keep(event)
    const piece = pieceOf(events)
    for (const reader of this.readers) reader.take(piece)
  }

  // The oldest events are dropped first, so that those that are kept have no gap.
  #keep(event: Event): void {
    while (this.#kept.length >= MAX_KEPT || !this.#memory.take(event.text.length)) {
      const oldest = this.#kept.shift()
      if (!oldest) return
      this.#memory.give(oldest.text.length)
    }
    this.#kept.push(event)
  }

  #catchUp(reader: LiveStreamClient, lastId: string): void {
    const at = this.#kept.findLastIndex(({ id }) => id === lastId)
    if (at === -1) return reader.miss(null)
    const since = this.#kept.slice(at + 1)
    const first = since.slice(0, MAX_AT_ONCE)
    if (first.length > 0) reader.take(pieceOf(first))
    reader.miss(sumOrUnknown(since.slice(MAX_AT_ONCE).map(({ missed }) => missed)))
  }
}

function pieceOf(events: readonly Event[]): LiveEventBatch {
  return {
    text: events.map(({ text }) => text).join(''),
    events: events.length,
    missed: sumOrUnknown(events.map(({ missed }) => missed)),
  }
}
