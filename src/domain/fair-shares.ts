/** What one owner has in a bounded table. */
export interface Share {
  /** Number of entries; only `FairShares` changes it. */
  count: number
  /** Index in the order of `FairShares`, which alone changes it. */
  place: number
}

/**
 * Counts the entries of each owner of a bounded table, and chooses whose entry makes room for a new one. A
 * fair share is the size of the table divided by the number of owners that have entries. A new entry
 * of an owner with more than that replaces one of the same owner; any other replaces one of the owner with most.
 * `docs/ledger.md: Fair shares`.
 */
export class FairShares<Owned extends Share> {
  /** The owners with entries, those with the most first. */
  readonly #order: Owned[] = []

  /** Counts a new entry. */
  add(owned: Owned): void {
    if (owned.count === 0) {
      owned.place = this.#order.length
      this.#order.push(owned)
    } else this.#swap(owned, this.#firstBelow(owned.count + 1))
    owned.count++
  }

  /** Counts an entry that was removed. */
  remove(owned: Owned): void {
    this.#swap(owned, this.#firstBelow(owned.count) - 1)
    owned.count--
    if (owned.count === 0) this.#order.pop()
  }

  /** The owner that loses an entry before one of `owned` is added to a full table of `most` entries. */
  giverFor(owned: Owned, most: number): Owned {
    const owners = this.#order.length + (owned.count === 0 ? 1 : 0)
    const isAboveShare = owned.count > 0 && (owned.count + 1) * owners > most
    return isAboveShare ? owned : (this.#order[0] ?? owned)
  }

  #swap(owned: Owned, place: number): void {
    const other = this.#order[place] as Owned
    this.#order[owned.place] = other
    other.place = owned.place
    this.#order[place] = owned
    owned.place = place
  }

  /** Index of the first owner with fewer than this number of entries, found by bisection. */
  #firstBelow(count: number): number {
    let [from, to] = [0, this.#order.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((this.#order[middle] as Owned).count >= count) from = middle + 1
      else to = middle
    }
    return from
  }
}
