/** Most that is saved up: so many calls may begin at once after a quiet time. */
const MOST = 64
/** Part of the calls under way that has to end after a late turn before others begin. */
const TO_END = 0.5

/** A turn of the event loop, or what went on since the last look at it. */
export interface Turn {
  /** It had more to do than leaves the others' waits short. */
  readonly isLate: boolean
  /** Time without anything to do, in milliseconds. */
  readonly idleMs: number
  /** Calls that ended in it. */
  readonly ended: number
  /** Calls under way at its end. */
  readonly open: number
}

/**
 * How many of the calls that wait may begin. Calls sent to a slow upstream cost little now and much when all their answers come at
 * once; this is the congestion control of networks for that delay. One begins for each that ends ("conservation of packets", Jacobson
 * 1988), and one more for each idle millisecond; after a late turn half of those under way have to end first (additive increase and
 * multiplicative decrease, Chiu and Jain 1989), and no more is taken until that has had its effect.
 */
export class BeginCredit {
  #credit = MOST
  /** Calls that have to end until the effect of the last decrease shows. */
  #unseen = 0

  /** Whether a call may begin. */
  get isLeft(): boolean {
    return this.#credit >= 1
  }

  /** Notes that a call has begun. */
  spend(): void {
    this.#credit -= 1
  }

  /** Notes what a turn came to. */
  turned({ isLate, idleMs, ended, open }: Turn): void {
    this.#credit = Math.min(MOST, this.#credit + ended + idleMs)
    this.#unseen = Math.max(0, this.#unseen - ended)
    if (!isLate || this.#unseen > 0) return
    const underWay = open + ended
    this.#credit = Math.min(this.#credit, -TO_END * underWay)
    this.#unseen = underWay
  }

  /** Forgets all of it: nobody waits. */
  reset(): void {
    this.#credit = MOST
    this.#unseen = 0
  }
}
