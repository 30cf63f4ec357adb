/** A member of a `DenseSet`. It stores its own position, so it can be in one set only. */
export interface DenseSetMember {
  /** Position in the set, written only by `DenseSet`; -1 if the member is in no set. */
  index: number
}

/**
 * An unordered set for objects that live briefly, such as running calls. JavaScript's `Set` is unsuitable: it
 * links each outgrown table to its successor, and once such a table is in the garbage collector's old
 * generation, it keeps all later tables and their objects in memory.
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

  /** Yields every member once. Members may be deleted during the iteration, and are then not yielded. */
  *[Symbol.iterator](): Iterator<Member> {
    // Runs backwards, because `delete` fills the gap with the last member, which was already yielded.
    for (let index = this.#members.length - 1; index >= 0; index--) {
      const member = this.#members[index]
      if (member) yield member
    }
  }
}
