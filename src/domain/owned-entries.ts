import { FairShares, type Share } from './fair-shares.ts'

/** The entries of one owner, the oldest first. */
interface EntriesOfOwner<Owner, Value> extends Share {
  readonly owner: Owner
  readonly entries: Map<string, Value>
}

/**
 * Named values of owners, bounded by their number. If there are too many, the oldest entry of one owner gives
 * way, as `FairShares` chooses it.
 */
export class OwnedEntries<Owner, Value> {
  readonly #owners = new Map<Owner, EntriesOfOwner<Owner, Value>>()
  readonly #shares = new FairShares<EntriesOfOwner<Owner, Value>>()
  readonly #onRemoved: (owner: Owner) => void
  #size = 0

  /** `onRemoved` is called for each entry that is removed. */
  constructor(onRemoved: (owner: Owner) => void = () => {}) {
    this.#onRemoved = onRemoved
  }

  /** Number of entries of all owners. */
  get size(): number {
    return this.#size
  }

  countOf(owner: Owner): number {
    return this.#owners.get(owner)?.count ?? 0
  }

  get(owner: Owner, name: string): Value | undefined {
    return this.#owners.get(owner)?.entries.get(name)
  }

  /** Sets an entry, which is then the newest of its owner. `most`: maximum number of entries of all owners. */
  set(owner: Owner, name: string, value: Value, most: number): void {
    if (most === 0) return
    const owned = this.#owners.get(owner) ?? { owner, count: 0, place: 0, entries: new Map<string, Value>() }
    const isKnown = owned.entries.delete(name)
    owned.entries.set(name, value)
    const room = isKnown ? most : most - 1
    for (let i = 0; i < MAX_REMOVED && this.#size > room; i++)
      this.removeOldest(this.#shares.giverFor(owned, most).owner)
    if (isKnown) return
    this.#owners.set(owner, owned)
    this.#shares.add(owned)
    this.#size++
  }

  /** The oldest entry of an owner. */
  oldestOf(owner: Owner): Value | undefined {
    return this.#owners.get(owner)?.entries.values().next().value
  }

  /** Removes the oldest entry of an owner that has any. */
  removeOldest(owner: Owner): void {
    const owned = this.#owners.get(owner) as EntriesOfOwner<Owner, Value>
    for (const name of owned.entries.keys()) {
      owned.entries.delete(name)
      break
    }
    this.#shares.remove(owned)
    this.#size--
    if (owned.count === 0) this.#owners.delete(owner)
    this.#onRemoved(owner)
  }

  /** The owner that has waited longest for its turn; each call is another owner's turn. */
  nextOwner(): Owner | undefined {
    for (const [owner, owned] of this.#owners) {
      this.#owners.delete(owner)
      this.#owners.set(owner, owned)
      return owner
    }
    return undefined
  }
}

/** Maximum number of entries that give way to a new one: two, so that a lowered maximum is reached gradually. */
const MAX_REMOVED = 2
