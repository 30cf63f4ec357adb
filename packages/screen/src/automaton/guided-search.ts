import type { Automaton } from './automaton.ts'
import type { GuidedProgram } from './guided-program.ts'
import type { SearchProgress } from './search-progress.ts'

/** No match can be reached. */
const NEVER = 0xffff
/** In place of a class: the second half of a surrogate pair. */
const SECOND_HALF = 0xffff
/** Number of characters, besides three times the maximum length of a match, that are searched at once. */
const MORE = 1024

/** What it costs to follow a node, in values that are computed. */
const WALK_COST = 3

const LAST_VISIT = 0xffff_ffff

/** The tables below are used during one call only, so all searches share them. */
let rows = new Uint16Array(0)
let units = new Uint16Array(0)

/**
 * Finds the same matches as a `Scanner`, in a time that depends only on the length of the text and on the
 * size of the program. Before it looks for matches, it reads a part of the text from its end to its start and
 * notes for each position and each node where the earliest match ends that can be reached from there. An
 * attempt to match then begins only where it succeeds, and follows only what leads to a match.
 *
 * `docs/matching.md: Time`.
 */
export class GuidedSearch {
  readonly #automaton: Automaton
  readonly #program: GuidedProgram
  readonly #most: number
  readonly #seen: Uint32Array
  readonly #others: Int32Array
  readonly #moved: Int32Array
  #visit = 0
  // What the current attempt has not followed yet, the preferred first: a node, its position, and the end of
  // the earliest match from there. The certain ends descend, because whatever is less preferred and
  // ends later than something else can never be chosen.
  readonly #nodes: number[] = []
  readonly #places: number[] = []
  readonly #ends: number[] = []
  /** The last of the certain ends: what ends there or later is not noted. */
  #bound = NEVER
  /** The nodes from which the last match was reached at its end, and how much was noted before they were read. */
  #last = 0
  #orLast = 0
  #lastFrom = -1
  /** Length of the part of the text that is searched, and the class of the character before it. */
  #end = 0
  #before = 0

  /** @param most Maximum number of characters that an attempt reads without a match. */
  constructor(automaton: Automaton, program: GuidedProgram, most: number) {
    this.#automaton = automaton
    this.#program = program
    this.#most = most
    this.#seen = new Uint32Array(program.count)
    this.#others = new Int32Array(program.count)
    this.#moved = new Int32Array(program.count)
  }

  /** Number of nodes, all of which are read for each character. */
  get size(): number {
    return this.#program.count
  }

  /** The nodes of these instructions. */
  nodesOf(instructions: readonly number[]): Int32Array {
    return Int32Array.from(instructions.flatMap((at) => this.#program.nodesOf(at)))
  }

  /**
   * Continues a search to the end of `text`, or to the start or the match of an attempt that depends on the
   * text after it.
   * @param base Position of the first character of `text`.
   */
  search(progress: SearchProgress, text: string, base: number, isEnd: boolean): void {
    const length = base + text.length
    for (;;) {
      const from = progress.matchEnd === -1 ? progress.start : progress.matchEnd
      const to = Math.min(length, from + 3 * this.#most + MORE)
      const isLast = to === length
      const before = progress.matchEnd === -1 ? progress.classBefore : progress.classAtMatch
      this.#before = before
      if (progress.spend(this.#read(text.slice(from - base, to - base), isLast && isEnd))) return
      const isDecided = this.#find(progress, from)
      if (isLast) return
      // Half of a character at the end of this part belongs to the next one.
      if (isDecided && progress.start >= length) return
    }
  }

  /**
   * Fills the tables for a part of the text. A value in `rows` is twice the position in the part at which the
   * earliest match ends. It is odd if the match also depends on the text after this part. Returns how many values it
   * computed.
   */
  #read(text: string, isEnd: boolean): number {
    const { count, takes, canEnd } = this.#program
    const end = this.#classify(text, isEnd)
    this.#end = end
    if (rows.length < (end + 1) * count) rows = new Uint16Array(Math.max(2 * rows.length, (end + 1) * count))
    this.#fillLast(end, this.#classBefore(end), isEnd)
    let computed = count
    // Whether no match is reached through a character.
    let isEmpty = false
    for (let at = end - 1, after = end; at >= 0; at--) {
      const unit = units[at] as number
      if (unit === SECOND_HALF) continue
      if (isEmpty && canEnd[unit] === 0) {
        rows.fill(NEVER, at * count, at * count + takes)
      } else {
        isEmpty = this.#fillTakes(at, after)
        computed += takes
      }
      computed += this.#fillRest(at, this.#classBefore(at), isEmpty)
      after = at
    }
    return computed
  }

  /** Notes the class of each character of a part of the text. */
  #classify(text: string, isEnd: boolean): number {
    if (units.length <= text.length) units = new Uint16Array(2 * text.length + 1)
    const { classes } = this.#automaton
    let at = 0
    while (at < text.length) {
      const point = text.codePointAt(at) as number
      const isIncomplete = !isEnd && at + 1 === text.length && (point & 0xfffffc00) === 0xd800
      if (isIncomplete) break
      units[at] = classes.ofPoint(point)
      at += 1
      if (point > 0xffff) units[at++] = SECOND_HALF
    }
    units[at] = 0
    return at
  }

  #classBefore(at: number): number {
    if (at === 0) return this.#before
    const unit = units[at - 1] as number
    return unit === SECOND_HALF ? (units[at - 2] as number) : unit
  }

  /** Fills the row of the end of the part, after which more text may follow. */
  #fillLast(at: number, before: number, isEnd: boolean): void {
    const { takes, count, distances, flags, match } = this.#program
    const row = at * count
    for (let node = 0; node < count; node++) rows[row + node] = NEVER
    rows[row + match] = 2 * at
    if (isEnd) {
      this.#fillOthers(row, before, this.#automaton.edge)
      return
    }
    for (let node = 0; node < count; node++) {
      const distance = distances[node] as number
      // An assertion waits for the next character.
      if ((node < takes || flags[node] !== 0) && distance !== Infinity)
        rows[row + node] = 2 * (at + distance) + 1
    }
    this.#fillOthers(row, before, -1)
  }

  /** Fills the nodes of a row that take a character. Returns whether no match is reached from any. */
  #fillTakes(at: number, after: number): boolean {
    const { takes, to, orTo, refuses, count } = this.#program
    const row = at * count
    const next = after * count
    const unit = units[at] as number
    const set = unit * takes
    const table = rows
    let all = NEVER
    for (let node = 0; node < takes; node++) {
      const one = table[next + (to[node] as number)] as number
      const other = table[next + (orTo[node] as number)] as number
      const value = (refuses[set + node] as number) | (other < one ? other : one)
      all &= value
      table[row + node] = value
    }
    return all === NEVER
  }

  /** Fills the other nodes of a row. Returns how many values it computed. */
  #fillRest(at: number, before: number, isEmpty: boolean): number {
    const { count, match, fail, passes, isFinal } = this.#program
    const row = at * count
    rows[row + match] = 2 * at
    rows[row + fail] = NEVER
    if (isEmpty && !isFinal) {
      rows.fill(NEVER, row + fail + 1, row + count)
      return 0
    }
    this.#fillOthers(row, before, units[at] as number)
    return (count - fail) * passes
  }

  /** Fills the nodes of a row that take no character. Without `next`, assertions keep their value. */
  #fillOthers(row: number, before: number, next: number): void {
    const { fail, count, passes, hasAssertions } = this.#program
    if (passes > 1 && next !== -1) rows.fill(NEVER, row + fail + 1, row + count)
    for (let pass = 0; pass < passes; pass++) {
      if (hasAssertions) this.#fillAsserted(row, before, next)
      else this.#fillFree(row)
    }
  }

  #fillFree(row: number): void {
    const { fail, count, first, second } = this.#program
    const table = rows
    for (let node = fail + 1; node < count; node++) {
      const one = table[row + (first[node] as number)] as number
      const other = table[row + (second[node] as number)] as number
      table[row + node] = other < one ? other : one
    }
  }

  #fillAsserted(row: number, before: number, next: number): void {
    const { fail, count, first, second, flags } = this.#program
    const table = rows
    const wrong = next === -1 ? 0 : ~this.#automaton.assertionsBetween(before, next)
    for (let node = fail + 1; node < count; node++) {
      const one = table[row + (first[node] as number)] as number
      const asserted = flags[node] as number
      if (asserted === 0) {
        const other = table[row + (second[node] as number)] as number
        table[row + node] = other < one ? other : one
      } else if (next !== -1) {
        table[row + node] = (asserted & wrong) === 0 ? one : NEVER
      }
    }
  }

  /**
   * Finds the matches in a part of the text. Returns false if an attempt depends on the text after it.
   * @param from Position of the part.
   */
  #find(progress: SearchProgress, from: number): boolean {
    const { count, start } = this.#program
    const end = this.#end
    this.#lastFrom = -1
    if (progress.matchEnd !== -1) {
      for (const node of progress.open) this.#push(node, 0)
      if (!this.#extend(progress, from)) return this.#wait(progress, from)
    }
    let at = progress.start - from
    while (at < end) {
      const matchEnd = rows[at * count + start] as number
      const follows = matchEnd >> 1
      if (matchEnd === NEVER || follows - at > this.#most) {
        at += units[at + 1] === SECOND_HALF ? 2 : 1
        continue
      }
      progress.start = from + at
      progress.classBefore = this.#classBefore(at)
      if (matchEnd % 2 === 1) return false
      this.#push(start, at)
      if (!this.#extend(progress, from)) return this.#wait(progress, from)
      at = progress.start - from
    }
    progress.start = from + at
    progress.classBefore = this.#classBefore(at)
    return true
  }

  /** Extends the match of the current attempt. Returns false if this depends on the text after the part. */
  #extend(progress: SearchProgress, from: number): boolean {
    for (;;) {
      const begin = progress.matchEnd === -1 ? progress.start : progress.matchEnd
      const limit = begin - from + this.#most
      const end = this.#ends.at(-1)
      if (end !== undefined && end % 2 === 1) {
        if (this.#ends.some((one) => one >> 1 <= limit)) return false
      } else if (end !== undefined && end >> 1 <= limit) {
        this.#ends.pop()
        const last = this.#ends.at(-1)
        this.#bound = last === undefined || last % 2 === 1 ? NEVER : last
        this.#follow(this.#nodes.pop() as number, this.#places.pop() as number, end)
        progress.matchEnd = from + (end >> 1)
        progress.classAtMatch = this.#classBefore(end >> 1)
        progress.matched()
        continue
      }
      this.#drop()
      progress.start = progress.matchEnd
      progress.classBefore = progress.classAtMatch
      progress.matchEnd = -1
      progress.ended()
      return true
    }
  }

  /** Follows a node to the match that ends at `end`, and notes what is preferred to it on the way. */
  #follow(from: number, place: number, end: number): void {
    const { count, match, to, orTo, fail, passes } = this.#program
    const table = rows
    let node = from
    let other = fail
    let at = place
    for (;;) {
      const noted = this.#ends.length
      const one = node
      const two = other
      const nodeEnd = table[at * count + node] as number
      if (nodeEnd !== end) {
        if (nodeEnd < this.#bound) this.#note(node, at, nodeEnd)
        node = other
      }
      if (node > fail)
        node = passes > 1 ? this.#leadOfLoops(node, at, end) : this.#lead(node, at, at * count, end)
      if (node === match) {
        this.#last = one
        this.#orLast = two
        this.#lastFrom = noted
        return
      }
      other = orTo[node] as number
      node = to[node] as number
      at += units[at + 1] === SECOND_HALF ? 2 : 1
    }
  }

  /** The node that takes the next character on the way to the match that ends at `end`. */
  #lead(from: number, at: number, row: number, end: number): number {
    const { first, second, fail } = this.#program
    const table = rows
    let node = from
    while (node > fail) {
      const one = first[node] as number
      const oneEnd = table[row + one] as number
      if (oneEnd === end) {
        node = one
      } else {
        if (oneEnd < this.#bound) this.#note(one, at, oneEnd)
        node = second[node] as number
      }
    }
    return node
  }

  /** The same where nodes can follow themselves. A node that was read before leads nowhere else than then. */
  #leadOfLoops(from: number, at: number, end: number): number {
    const { count, first, second, flags, match, fail } = this.#program
    const row = at * count
    const visit = this.#newVisit()
    const seen = this.#seen
    const others = this.#others
    const table = rows
    let waiting = 0
    for (let node = from; ; ) {
      if (node <= fail || seen[node] !== visit) {
        const nodeEnd = table[row + node] as number
        if (nodeEnd === end) {
          if (node <= match) return node
          seen[node] = visit
          if (flags[node] === 0) others[waiting++] = second[node] as number
          node = first[node] as number
          continue
        }
        if (nodeEnd < this.#bound) this.#note(node, at, nodeEnd)
      }
      node = others[--waiting] as number
    }
  }

  #push(node: number, at: number): void {
    const end = rows[at * this.#program.count + node] as number
    if (end < this.#bound) this.#note(node, at, end)
  }

  #note(node: number, at: number, end: number): void {
    this.#nodes.push(node)
    this.#places.push(at)
    this.#ends.push(end)
    if (end % 2 === 0) this.#bound = end
  }

  #drop(): void {
    if (this.#ends.length > 0) {
      this.#nodes.length = 0
      this.#places.length = 0
      this.#ends.length = 0
    }
    this.#bound = NEVER
    this.#lastFrom = -1
  }

  /** Notes the nodes from which the match may become longer, at its end: the text before it is not kept. */
  #wait(progress: SearchProgress, from: number): false {
    const { count } = this.#program
    const matchEnd = progress.matchEnd - from
    if (matchEnd === this.#end && this.#lastFrom !== -1) {
      // Assertions at the end of the text are not known yet, and the order of what follows depends on them.
      this.#nodes.splice(this.#lastFrom, Infinity, this.#last, this.#orLast)
      this.#places.splice(this.#lastFrom, Infinity, matchEnd, matchEnd)
    }
    let open = this.#others
    let moved = this.#moved
    let size = 0
    let next = 0
    let visit = this.#newVisit()
    let walked = 0
    for (let at = this.#places[0] as number; ; ) {
      const isLast = at === matchEnd
      for (; this.#places[next] === at; next++)
        size = this.#enter(this.#nodes[next] as number, at * count, visit, open, size, isLast)
      if (isLast) break
      at += units[at + 1] === SECOND_HALF ? 2 : 1
      const row = at * count
      visit = this.#newVisit()
      const movedSize = this.#step(open, size, moved, row, visit, at === matchEnd)
      const before = open
      open = moved
      moved = before
      size = movedSize
      walked += size
    }
    progress.spend(WALK_COST * walked)
    progress.open = open.slice(0, size)
    this.#drop()
    return false
  }

  /** Fills the list `moved` with what follows the nodes of the list `open`. Returns its size. */
  #step(
    open: Int32Array,
    size: number,
    moved: Int32Array,
    row: number,
    visit: number,
    isLast: boolean,
  ): number {
    const { takes, to, orTo } = this.#program
    const seen = this.#seen
    const table = rows
    let movedSize = 0
    for (let index = 0; index < size; index++) {
      const node = open[index] as number
      const one = to[node] as number
      const other = orTo[node] as number
      if (table[row + one] !== NEVER && seen[one] !== visit) {
        if (one < takes) {
          seen[one] = visit
          moved[movedSize++] = one
        } else movedSize = this.#enter(one, row, visit, moved, movedSize, isLast)
      }
      if (table[row + other] !== NEVER && seen[other] !== visit) {
        if (other < takes) {
          seen[other] = visit
          moved[movedSize++] = other
        } else movedSize = this.#enter(other, row, visit, moved, movedSize, isLast)
      }
    }
    return movedSize
  }

  /**
   * Adds a node to a list or, unless it is the last one, the nodes that take the next character after it. Leaves
   * out what cannot lead to a match. Returns the size of the list.
   */
  #enter(root: number, row: number, visit: number, list: Int32Array, size: number, isLast: boolean): number {
    const { fail, takes, first, second } = this.#program
    const seen = this.#seen
    if (seen[root] === visit || rows[row + root] === NEVER) return size
    if (root < takes || isLast) {
      seen[root] = visit
      list[size] = root
      return size + 1
    }
    let entered = size
    const stack = [root]
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (seen[node] === visit || rows[row + node] === NEVER) continue
      seen[node] = visit
      if (node < takes) list[entered++] = node
      else if (node > fail) stack.push(second[node] as number, first[node] as number)
    }
    return entered
  }

  #newVisit(): number {
    if (this.#visit === LAST_VISIT) {
      this.#seen.fill(0)
      this.#visit = 0
    }
    return ++this.#visit
  }
}
