import type { Link } from '../ipc/link.ts'
import type { CountedLimit } from './rate-counter.ts'
import type { Peers } from './peers.ts'
import type { PlacePeers, SlotReport } from './place-peers.ts'
import type { PermitRequest, PermitResponse } from './share-messages.ts'

/**
 * The other workers of this machine, whose counts are kept by the owner of their database. It is always
 * reachable: the workers end when it does.
 */
export class OwnerPeers implements Peers, PlacePeers {
  readonly isReachable = true
  readonly isRefilling = false
  readonly generation = 'owner'
  readonly refreshMs = 20_000
  readonly #link: Link
  readonly #count: () => number

  /** `count` returns the number of workers. */
  constructor(link: Link, count: () => number) {
    this.#link = link
    this.#count = count
  }

  get nodes(): number {
    return Math.max(1, this.#count())
  }

  exchange(
    { name, subject, max, windowMs }: CountedLimit,
    request: PermitRequest,
  ): Promise<PermitResponse | 'stale'> {
    return this.#link.request('share', [{ name, subject, max, windowMs }, request])
  }

  exchangeSlots(subject: string, report: SlotReport): Promise<number | 'stale'> {
    return this.#link.request('places', [subject, report])
  }
}
