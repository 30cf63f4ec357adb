/** A member of a dense set, which stores its own position and is in one set at a time. */
export interface DenseSetMember {
  /** Position, set only by `DenseSet`; -1 if it is in no set. */
  index: number
}

/**
 * Unordered set for objects under way. A `Set` that grows links each old table to its successor. Once such a
 * table is in the old generation, it keeps all later tables, and the objects in them, from being collected
 * early.
 */
export class DenseSet<Member extends DenseSetMember> implements Iterable<Member> {
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

  /** Yields every member that is not deleted; other members may be deleted during the iteration. */
  *[Symbol.iterator](): Iterator<Member> {
    // Runs backwards, because `delete` fills the gap with the last member, which was already yielded.
    for (let index = this.#members.length - 1; index >= 0; index--) {
      const member = this.#members[index]
      if (member) yield member
    }
  }
}
