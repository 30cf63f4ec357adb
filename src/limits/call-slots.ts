import { GatewayError } from '../errors.ts'
import { FairSemaphore } from './fair-semaphore.ts'

/** Maximum time for which a request waits for a slot. */
const WAIT_MS = 2_000
/**
 * Size of the queue, and of the slots for accounts, as a part of the slots for calls; and the minimum of it.
 */
const PART = 1 / 8
const LEAST_WAITING = 8
const LEAST_ACCOUNTS = 16
/** Maximum number of streams that last until their clients disconnect. */
const MAX_STREAMS = 64
/**
 * Part that one key may have while no other has called recently. The remaining slots are for the next key
 * that calls.
 */
const ALONE = 31 / 32

/**
 * The refusal if no slot became free in time. Created once, because it is thrown often and capturing stacks
 * is costly.
 */
export const NO_SLOT = new GatewayError(
  'overloaded',
  'the maximum of calls under way is reached, for the gateway or for this client; try again',
  { retryAfter: 1 },
)

/** The slots for requests: for relay calls, shared by keys, and for accounts, shared by address blocks. */
export class CallSlots {
  readonly calls: FairSemaphore
  readonly accounts: FairSemaphore

  /** `maxCalls` returns `options.max_calls`, which may change. `nowMs` is a monotonic clock. */
  constructor(maxCalls: () => number, nowMs: () => number) {
    const part = (least: number) => () => Math.max(least, Math.ceil(maxCalls() * PART))
    const rules = { aloneShare: ALONE, waitMs: () => WAIT_MS, waiting: part(LEAST_WAITING), nowMs }
    this.calls = new FairSemaphore({ ...rules, max: maxCalls })
    this.accounts = new FairSemaphore({ ...rules, max: part(LEAST_ACCOUNTS) })
  }

  /** Maximum number of account slots for streams, which keep theirs for a long time. */
  get streams(): number {
    return Math.min(MAX_STREAMS, Math.floor(this.accounts.max / 2))
  }

  /** Maximum number of requests that have a slot or wait for one. */
  get bound(): number {
    return this.calls.capacity + this.accounts.capacity
  }
}
