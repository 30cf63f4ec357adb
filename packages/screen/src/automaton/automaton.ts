import { CharacterClasses } from './character-classes.ts'
import { NEWLINE, type CodePointRanges, WORD_CHARACTERS } from './code-points.ts'
import { ASSERTIONS, distancesToMatch, type Instruction, type Program } from './program.ts'

/** Mask for the low bits of a transition, which contain the number of the next state. */
export const STATE_MASK = 0xff_ffff
/** The state from which no match can be reached. */
export const DEAD_STATE = 1
/** Bit of a transition: a match ends before the character that the transition reads. */
export const MATCH_BEFORE = 1 << 28
/** Bit of a transition: a match ends after the character that the transition reads. */
export const MATCH_AFTER = 1 << 29

/**
 * A state of an attempt to match: the instructions that can continue it, in order of preference. Each takes a
 * character, or is an assertion that waits for the next character.
 */
export interface State {
  id: number
  readonly open: readonly number[]
  /** The class of the character before this state if an assertion still needs it; otherwise -1. */
  readonly previous: number
  /** The patterns of which a match ends at this state. */
  readonly matches: readonly number[]
  /** Minimum number of further characters until a match. */
  readonly distance: number
}

const NONE: readonly number[] = []
/** A name that only equal states have. */
function nameOf({ open, previous, matches }: State): string {
  return `${open.join()};${previous};${matches.join()}`
}

const MAX_ENTRIES = 1 << 20
const MAX_STATES = 10_000

/**
 * A deterministic automaton whose states are built when a text first needs them. The table has a maximum
 * size: when it is full, it is emptied, and states are built again when needed. The automaton stores no
 * position in a text, so several texts can be read with it at the same time.
 */
export class Automaton {
  readonly classes: CharacterClasses
  /**
   * Number of table entries of a state: one for each class of characters, and one for the end of the text.
   */
  readonly width: number
  /** The number used in place of a class at the start and at the end of the text. */
  readonly edge: number
  /**
   * The largest finite distance of an instruction: its minimum number of further characters until a match.
   */
  readonly farthest: number
  /**
   * Transitions by state and class; 0 if not computed yet. {@link step} may replace the array by a larger
   * one.
   */
  table: Int32Array
  /** Number of instructions that were read to compute states, since the automaton was made. */
  work = 0
  /** How often the table was emptied. State numbers are valid only within one generation. */
  generation = 0
  /**
   * The state in which an attempt to match begins, by the class of the previous character; 0 if not computed
   * yet.
   */
  readonly starts: Int32Array
  readonly #program: Program
  readonly #longest: boolean
  readonly #distances: readonly number[]
  /** For each instruction with a set of characters: the classes in that set. */
  readonly #accepts: readonly (Uint8Array | undefined)[]
  readonly #maxStates: number
  readonly #states: State[] = []
  readonly #known = new Map<string, State>()
  readonly #matchesBefore = new Map<number, readonly number[]>()
  readonly #seen: Uint32Array
  #visit = 0
  readonly #isWord: Uint8Array
  readonly #isNewline: Uint8Array

  /**
   * @param longest If true, the longest of the matches that begin at one position is chosen; otherwise the
   * one that RE2 prefers.
   */
  constructor(program: Program, longest: boolean) {
    this.#program = program
    this.#longest = longest
    this.classes = new CharacterClasses(program)
    this.edge = this.classes.count
    this.width = this.edge + 1
    this.#distances = distancesToMatch(program)
    this.farthest = this.#distances.reduce((most, d) => (Number.isFinite(d) ? Math.max(most, d) : most), 0)
    const sets = new Map<CodePointRanges, Uint8Array>()
    this.#accepts = program.instructions.map((instruction) => {
      if (!('set' in instruction)) return undefined
      const within = sets.get(instruction.set) ?? this.classes.within(instruction.set)
      sets.set(instruction.set, within)
      return within
    })
    this.#isWord = this.classes.within(WORD_CHARACTERS)
    this.#isNewline = this.classes.within(NEWLINE)
    this.#seen = new Uint32Array(program.instructions.length)
    this.#maxStates = Math.min(MAX_STATES, Math.max(64, Math.floor(MAX_ENTRIES / this.width)))
    this.table = new Int32Array(this.width * 64)
    this.starts = new Int32Array(this.width)
    this.#clear()
  }

  /** The state of an attempt to match that begins after a character of the class `previous`. */
  startAfter(previous: number): number {
    const found = this.starts[previous] as number
    if (found !== 0) return found
    const { id } = this.#stateAfter([this.#program.start], previous)
    this.starts[previous] = id
    return id
  }

  stateOf(id: number): State {
    return this.#states[id] as State
  }

  /** The current number of a state, which changes when the table is emptied. */
  numberOf(state: State): number {
    return this.#known.get(nameOf(state))?.id ?? this.#add({ ...state }).id
  }

  /** The patterns that match in state `id` if the next character is of the class `next`. */
  matchesBefore(id: number, next: number): readonly number[] {
    return this.#matchesBefore.get(id * this.width + next) ?? NONE
  }

  /** Computes a transition, and stores it in the table. */
  step(id: number, next: number): number {
    const { open, previous } = this.#states[id] as State
    const before = previous === -1 ? { open, matches: NONE } : this.#closed(open, previous, next)
    const taken: number[] = []
    if (next !== this.edge)
      for (const at of before.open)
        if (this.#accepts[at]?.[next] === 1 && this.#instruction(at).op === 'take')
          taken.push(...this.#instruction(at).next)
    const generation = this.generation
    const target = this.#stateAfter(taken, next)
    let transition = target.id
    if (before.matches.length > 0) transition |= MATCH_BEFORE
    if (target.matches.length > 0) transition |= MATCH_AFTER
    if (generation === this.generation) {
      this.table[id * this.width + next] = transition
    }
    // The matches are stored even if the table was just emptied, because the caller reads them next.
    if (before.matches.length > 0) this.#matchesBefore.set(id * this.width + next, before.matches)
    return transition
  }

  #instruction(at: number): Instruction {
    return this.#program.instructions[at] as Instruction
  }

  /**
   * Follows all instructions that take no character. `open` contains the instructions at which this ends:
   * those that take a character and, without `next`, assertions about the next character.
   */
  #closed(
    from: readonly number[],
    previous: number,
    next = -1,
  ): { readonly open: readonly number[]; readonly matches: readonly number[] } {
    const open: number[] = []
    const matches: number[] = []
    const visit = ++this.#visit
    const stack = from.toReversed()
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      this.work += 1
      if (this.#seen[at] === visit) continue
      this.#seen[at] = visit
      const instruction = this.#instruction(at)
      switch (instruction.op) {
        case 'take':
          open.push(at)
          continue
        case 'match':
          matches.push(instruction.pattern)
          if (this.#longest) continue
          return { open, matches }
        case 'notAfter':
          if (this.#accepts[at]?.[previous] === 1) continue
          break
        case 'notBefore':
          if (next === -1) {
            open.push(at)
            continue
          }
          if (this.#accepts[at]?.[next] === 1) continue
          break
        case 'assert':
          if (next === -1) {
            open.push(at)
            continue
          }
          if (instruction.flags & ~this.assertionsBetween(previous, next)) continue
          break
        case 'go':
          break
      }
      for (let way = instruction.next.length - 1; way >= 0; way--) stack.push(instruction.next[way] as number)
    }
    return { open, matches }
  }

  /** The assertions that hold between two characters of these classes, as bits. */
  assertionsBetween(previous: number, next: number): number {
    let bits = 0
    if (previous === this.edge) bits |= ASSERTIONS.textStart | ASSERTIONS.lineStart
    else if (this.#isNewline[previous] === 1) bits |= ASSERTIONS.lineStart
    if (next === this.edge) bits |= ASSERTIONS.textEnd | ASSERTIONS.lineEnd
    else if (this.#isNewline[next] === 1) bits |= ASSERTIONS.lineEnd
    const isBoundary = (this.#isWord[previous] === 1) !== (this.#isWord[next] === 1)
    return bits | (isBoundary ? ASSERTIONS.wordBoundary : ASSERTIONS.noWordBoundary)
  }

  /** The state in which these instructions follow a character of the class `lastClass`. */
  #stateAfter(from: readonly number[], lastClass: number): State {
    const { open, matches } = this.#closed(from, lastClass)
    const waits = open.some((at) => this.#instruction(at).op !== 'take')
    const distance = Math.min(Infinity, ...open.map((at) => this.#distances[at] as number))
    // An assertion that holds can lead to an instruction that is also reached in another way, and the order of
    // the two ways counts. So all of them are followed at once, when the next character is known.
    const kept = waits && !this.#longest ? [...new Set(from)] : open
    const state = { id: 0, open: kept, previous: waits ? lastClass : -1, matches, distance }
    return this.#known.get(nameOf(state)) ?? this.#add(state)
  }

  #add(state: State): State {
    if (this.#states.length >= this.#maxStates) this.#clear()
    state.id = this.#states.length
    this.work += state.open.length
    this.#states.push(state)
    this.#known.set(nameOf(state), state)
    const size = this.#states.length * this.width
    if (size > this.table.length) {
      const larger = new Int32Array(Math.min(2 * this.table.length, this.#maxStates * this.width))
      larger.set(this.table)
      this.table = larger
    }
    return state
  }

  #clear(): void {
    this.generation++
    this.table.fill(0)
    this.starts.fill(0)
    this.#states.length = 0
    this.#known.clear()
    this.#matchesBefore.clear()
    const unused = { id: 0, open: NONE, previous: -1, matches: NONE, distance: Infinity }
    this.#states.push(unused, { ...unused, id: DEAD_STATE })
    this.#known.set(';-1;', this.#states[DEAD_STATE] as State)
  }
}
