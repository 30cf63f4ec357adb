import { type Codec, SharedTable, type SharedTableOptions } from '../../redis/shared-table.ts'
import { CACHE_LIFETIMES_MS } from './affinity.ts'
import type { PreviousCall, PreviousCalls } from './previous-calls.ts'

const CODEC: Codec<PreviousCall> = {
  encode: (call) => JSON.stringify(call),
  decode: (text) => JSON.parse(text) as PreviousCall,
}

/** Previous calls of all nodes that share a Redis server. Each call reads and writes one entry. */
export class SharedPreviousCalls implements PreviousCalls {
  readonly isComplete = true
  readonly #table: SharedTable<PreviousCall>

  /** Starts to connect at once. */
  constructor(options: SharedTableOptions) {
    this.#table = new SharedTable('previous', CODEC, options)
  }

  /** Resolves when the first attempt to connect has ended, successful or not. */
  get firstAttempt(): Promise<void> {
    return this.#table.firstAttempt
  }

  find(_userId: number, session: string): Promise<PreviousCall | undefined> | undefined {
    return this.#table.isConnected ? this.#read(session) : undefined
  }

  remember(owner: number, session: string, call: PreviousCall, most: number): void {
    const ms = CACHE_LIFETIMES_MS[call.longest]
    if (ms !== undefined) this.#table.write({ owner, name: session, value: call, retention: { ms, most } })
  }

  close(): Promise<void> {
    return this.#table.close()
  }

  async #read(session: string): Promise<PreviousCall | undefined> {
    const [entry] = await this.#table.read([session])
    // Calls after an earlier one may not have been recorded while the connection was lost.
    return entry && entry.value.atMs >= this.#table.knownSinceMs ? entry.value : undefined
  }
}
