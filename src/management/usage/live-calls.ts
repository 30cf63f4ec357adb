import type { UsageEntry, UsageFilter } from '../../domain/usage-entry.ts'
import { GatewayError } from '../../errors.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { SettledCall } from '../../store/ledger-writes.ts'
import type { Store } from '../../store/store.ts'
import { LiveReader } from './live-reader.ts'

/** How often settled calls are handed to the readers. */
const TURN_MS = 250
/** Most calls of one turn; more are missed by every reader. */
const MAX_CALLS_PER_TURN = 500
/** Newest calls that a reader which comes back is sent. */
const MAX_KEPT = 200
/** How long calls are followed after the last reader has left, for one that comes back. */
const LINGER_MS = 60_000
/** Streams of one session, or of one access token's user. */
const MAX_PER_SUBJECT = 2
/** When a client whose stream was refused may try again. */
const RETRY_SECONDS = 15

/** Dependencies of `LiveCalls`. */
interface LiveCallsParts {
  readonly ledger: Pick<Ledger, 'onSettled'>
  readonly store: Pick<Store, 'read'>
  /** Most readers together. */
  readonly maxReaders: () => number
}

/** A reader to be opened. */
interface Wanted {
  /** The session or user that the limit counts. */
  readonly subject: string | number
  readonly filter: UsageFilter | null
  readonly shown: (entry: UsageEntry) => object
  /** Id of the last call that the client has, if it comes back. */
  readonly lastId: string | undefined
}

/**
 * The calls that this node settles, as they happen, for those who read them. Nothing is done while nobody
 * reads; with readers, a call costs one entry of a list, and the rest is done in turns, for all readers at
 * once. `docs/api.md: Live calls`.
 */
export class LiveCalls {
  readonly #parts: LiveCallsParts
  readonly #readers = new Map<LiveReader, string | number>()
  /** Calls as JSON, by what shows them. */
  readonly #texts = new WeakMap<Wanted['shown'], WeakMap<UsageEntry, string>>()
  #settled: SettledCall[] = []
  #overflow = 0
  /** Newest calls, oldest first. */
  #kept: UsageEntry[] = []
  #turns: NodeJS.Timeout | undefined
  #lingering: NodeJS.Timeout | undefined
  #isBusy = false

  constructor(parts: LiveCallsParts) {
    this.#parts = parts
  }

  /** Opens a reader. Throws `rate_limited` where its subject or this node has enough of them. */
  open({ subject, filter, shown, lastId }: Wanted): LiveReader {
    const own = [...this.#readers.values()].filter((one) => one === subject).length
    if (own >= MAX_PER_SUBJECT) throw tooMany(`${MAX_PER_SUBJECT} live streams of this session are open`)
    const max = this.#parts.maxReaders()
    if (this.#readers.size >= max) throw tooMany(`${max} live streams of this gateway are open`)
    const textOf = (entry: UsageEntry): string => this.#textOf(entry, shown)
    const reader: LiveReader = new LiveReader(filter, textOf, () => this.#onLeft(reader))
    if (lastId !== undefined) this.#catchUp(reader, lastId)
    this.#readers.set(reader, subject)
    this.#follow()
    return reader
  }

  /** Ends all readers: the gateway stops. */
  close(): void {
    for (const reader of this.#readers.keys()) reader.end('gateway_stopping')
    this.#unfollow()
  }

  // Written once for all readers that are shown the same.
  #textOf(entry: UsageEntry, shown: Wanted['shown']): string {
    const texts = this.#texts.get(shown) ?? new WeakMap<UsageEntry, string>()
    this.#texts.set(shown, texts)
    const text = texts.get(entry) ?? JSON.stringify(shown(entry))
    texts.set(entry, text)
    return text
  }

  #catchUp(reader: LiveReader, lastId: string): void {
    const at = this.#kept.findLastIndex(({ id }) => id === lastId)
    const nowMs = performance.now()
    if (at === -1) reader.miss(null)
    else for (const entry of this.#kept.slice(at + 1)) reader.offer(entry, nowMs)
  }

  #onLeft(reader: LiveReader): void {
    this.#readers.delete(reader)
    if (this.#readers.size === 0) this.#lingering = setTimeout(() => this.#unfollow(), LINGER_MS).unref()
  }

  #follow(): void {
    clearTimeout(this.#lingering)
    if (this.#turns) return
    this.#turns = setInterval(() => void this.#turn(), TURN_MS).unref()
    this.#parts.ledger.onSettled = (call) => {
      if (this.#settled.length < MAX_CALLS_PER_TURN) this.#settled.push(call)
      else this.#overflow += 1
    }
  }

  #unfollow(): void {
    clearTimeout(this.#lingering)
    clearInterval(this.#turns)
    this.#turns = undefined
    this.#parts.ledger.onSettled = undefined
    this.#settled = []
    this.#overflow = 0
    this.#kept = []
  }

  async #turn(): Promise<void> {
    if (this.#isBusy) return
    const calls = this.#settled
    const missed = this.#overflow
    this.#settled = []
    this.#overflow = 0
    this.#isBusy = true
    const entries = await this.#entriesOf(calls)
    this.#isBusy = false
    const nowMs = performance.now()
    this.#kept = [...this.#kept, ...entries].slice(-MAX_KEPT)
    for (const reader of this.#readers.keys()) {
      for (const entry of entries) reader.offer(entry, nowMs)
      // Nobody knows which of these it wanted.
      if (missed > 0 || entries.length < calls.length) reader.miss(null)
      reader.settle(nowMs)
    }
  }

  /** The calls with the names of their users and tokens; none while the database does not answer. */
  async #entriesOf(calls: readonly SettledCall[]): Promise<UsageEntry[]> {
    if (calls.length === 0) return []
    try {
      const tokenIds = [...new Set(calls.map(({ tokenId }) => tokenId))]
      const found = await this.#parts.store.read('tokenNames', { tokenIds })
      const names = new Map(found.map(({ tokenId, ...of }) => [tokenId, of]))
      return calls.flatMap((call) => {
        const of = names.get(call.tokenId)
        return of ? [{ ...call, ...of }] : []
      })
    } catch {
      return []
    }
  }
}

function tooMany(sentence: string): GatewayError {
  return new GatewayError('rate_limited', `${sentence}: end one of them first`, { retryAfter: RETRY_SECONDS })
}
