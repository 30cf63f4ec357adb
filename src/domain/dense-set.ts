/** A member of a dense set, which stores its own position and is in one set at a time. */
export interface Indexed {
  /** Position, set by `DenseSet` alone; -1 outside of any set. */
  index: number
}

/**
 * Unordered set, for objects under way. A `Set` that grows links each old table to its successor: once in the
 * old generation, such a table keeps all later tables, and what they refer to, from being collected young.
 */
export class DenseSet<Member extends Indexed> implements Iterable<Member> {
  readonly #members: Member[] = []

  get size(): number {
    return this.#members.length
  }

  /** Adds a member that is in no set. */
  add(member: Member): void {
    member.index = this.#members.push(member) - 1
  }

  /** Removes a member; does nothing if it is not in the set. */
  delete(member: Member): void {
    const { index } = member
    if (index === -1) return
    member.index = -1
    const last = this.#members.pop() as Member
    if (last === member) return
    this.#members[index] = last
    last.index = index
  }

  /** Yields every member that stays, whichever others are deleted meanwhile. */
  *[Symbol.iterator](): Iterator<Member> {
    // Runs backwards, as `delete` moves the last member, which was already yielded.
    for (let index = this.#members.length - 1; index >= 0; index--) {
      const member = this.#members[index]
      if (member) yield member
    }
  }
}
