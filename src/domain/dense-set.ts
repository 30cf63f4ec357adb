/** What a roster can hold: it keeps its own place in it, and is in one roster at a time. */
export interface Indexed {
  /** Of the roster alone; -1 while it is in none. */
  index: number
}

/**
 * What is under way at the moment, in no order. A `Set` would do, but for the collector: each time that one
 * makes room, it leaves its former table behind with a reference to the new one. A former table that has
 * grown old keeps all that came after it from being collected young, and with it whatever every call has
 * made.
 */
export class DenseSet<Member extends Indexed> implements Iterable<Member> {
  readonly #members: Member[] = []

  get size(): number {
    return this.#members.length
  }

  /** Enrols one that is in no roster. */
  add(member: Member): void {
    member.index = this.#members.push(member) - 1
  }

  /** Strikes one off; nothing happens where it is not in it. */
  delete(member: Member): void {
    const { index: place } = member
    if (place === -1) return
    member.index = -1
    const last = this.#members.pop() as Member
    if (last === member) return
    this.#members[place] = last
    last.index = place
  }

  /** All that stay meanwhile come at least once, whoever else is struck off. */
  *[Symbol.iterator](): Iterator<Member> {
    // From the end: whoever takes a free place has been told by then.
    for (let place = this.#members.length - 1; place >= 0; place--) {
      const member = this.#members[place]
      if (member) yield member
    }
  }
}
