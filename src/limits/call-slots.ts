import { GatewayError } from '../errors.ts'
import { SharedSlots } from './shared-slots.ts'

/** How long a request waits for a slot. */
const WAIT_MS = 2_000
/** Places to wait in, and slots for accounts, as parts of the slots for calls; and no fewer than these. */
const PART = 1 / 8
const LEAST_WAITING = 8
const LEAST_ACCOUNTS = 16
/** Streams that go on until their clients leave. */
const MAX_STREAMS = 64
/** The part that one key may have while no other has called lately. The rest is for whoever calls next. */
const ALONE = 31 / 32

/** The refusal where no slot was free in time. Made once: it is thrown often, and stacks are costly. */
export const NO_SLOT = new GatewayError(
  'overloaded',
  'the maximum of calls under way is reached, for the gateway or for this client; try again',
  { retryAfter: 1 },
)

/** The slots for requests: for relay calls, shared by keys, and for accounts, shared by address blocks. */
export class CallSlots {
  readonly calls: SharedSlots
  readonly accounts: SharedSlots

  /** `maxCalls`: `options.max_calls`, which may change. `nowMs`: a clock that never goes back. */
  constructor(maxCalls: () => number, nowMs: () => number) {
    const part = (least: number) => () => Math.max(least, Math.ceil(maxCalls() * PART))
    const rules = { aloneShare: ALONE, waitMs: () => WAIT_MS, waiting: part(LEAST_WAITING), nowMs }
    this.calls = new SharedSlots({ ...rules, max: maxCalls })
    this.accounts = new SharedSlots({ ...rules, max: part(LEAST_ACCOUNTS) })
  }

  /** How many of the slots for accounts streams may hold, which keep theirs for long. */
  get streams(): number {
    return Math.min(MAX_STREAMS, Math.floor(this.accounts.max / 2))
  }

  /** How many requests may have a slot or wait for one. */
  get bound(): number {
    return this.calls.capacity + this.accounts.capacity
  }
}
