import { CharacterClasses } from './character-classes.ts'
import { NEWLINE, type Ranges, WORD_CHARACTERS } from './code-points.ts'
import { ASSERT, distances, type Instruction, type Program } from './program.ts'

/** The low bits of a transition: the number of the state that follows. */
export const STATE = 0xff_ffff
/** The state from which nothing can match. */
export const DEAD = 1
/** A match ends before the character of this transition. */
export const MATCH_BEFORE = 1 << 28
/** A match ends after the character of this transition. */
export const MATCH_AFTER = 1 << 29

/** What an attempt may still become: instructions that take a character or wait for the next one, in order of preference. */
export interface State {
  id: number
  readonly open: readonly number[]
  /** The class of the previous character, if an assertion waits for the next one; otherwise -1. */
  readonly previous: number
  /** The patterns that match here. */
  readonly matches: readonly number[]
  /** Characters that are needed at least until a match. */
  readonly distance: number
}

const NONE: readonly number[] = []
const MAX_ENTRIES = 1 << 20
const MAX_STATES = 10_000

/**
 * A deterministic automaton that is built while it is used. Its table is bounded: when it is full it is emptied, and states
 * that are needed are built again. It has no position of its own, so that any number of texts can be read with it.
 */
export class Automaton {
  readonly classes: CharacterClasses
  /** Entries of a state in the table: a class each, and the end of the text. */
  readonly width: number
  /** Where the text ends, or begins, in the place of a class. */
  readonly edge: number
  /** The largest distance of any state. */
  readonly farthest: number
  /** Transitions by state and class; 0 where one was not needed yet. May be another after {@link step}. */
  table: Int32Array
  /** Counts how often the table was emptied. Numbers of states hold within one generation. */
  generation = 0
  /** The state in which an attempt begins, by the class of the previous character; 0 where it was not needed yet. */
  readonly starts: Int32Array
  readonly #program: Program
  readonly #longest: boolean
  readonly #distances: readonly number[]
  /** The classes that each instruction accepts or refuses. */
  readonly #accepts: readonly (Uint8Array | undefined)[]
  readonly #maxStates: number
  readonly #states: State[] = []
  readonly #known = new Map<string, State>()
  readonly #matchesBefore = new Map<number, readonly number[]>()
  readonly #seen: Uint32Array
  #visit = 0
  readonly #isWord: Uint8Array
  readonly #isNewline: Uint8Array

  /** @param longest Of the matches that begin at one place the longest counts; otherwise the one that RE2 prefers. */
  constructor(program: Program, longest: boolean) {
    this.#program = program
    this.#longest = longest
    this.classes = new CharacterClasses(program)
    this.edge = this.classes.count
    this.width = this.edge + 1
    this.#distances = distances(program)
    this.farthest = this.#distances.reduce((most, d) => (Number.isFinite(d) ? Math.max(most, d) : most), 0)
    const sets = new Map<Ranges, Uint8Array>()
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

  /** The state of an attempt that begins after a character of this class. */
  startAfter(previous: number): number {
    const found = this.starts[previous] as number
    if (found !== 0) return found
    const { open, matches } = this.#closed([this.#program.start], previous)
    const { id } = this.#stateOf(open, previous, matches)
    this.starts[previous] = id
    return id
  }

  stateOf(id: number): State {
    return this.#states[id] as State
  }

  /** The number that a state has now, after the table may have been emptied. */
  numberOf(state: State): number {
    return this.#stateOf(state.open, state.previous, state.matches).id
  }

  /** The patterns that match before a character of this class. */
  matchesBefore(id: number, next: number): readonly number[] {
    return this.#matchesBefore.get(id * this.width + next) ?? NONE
  }

  /** Works out a transition, and keeps it in the table. */
  step(id: number, next: number): number {
    const { open, previous } = this.#states[id] as State
    const before = previous === -1 ? { open, matches: NONE } : this.#closed(open, previous, next)
    const taken: number[] = []
    if (next !== this.edge)
      for (const at of before.open)
        if (this.#accepts[at]?.[next] === 1 && this.#instruction(at).op === 'take')
          taken.push(...this.#instruction(at).next)
    const after = this.#closed(taken, next)
    const generation = this.generation
    const target = this.#stateOf(after.open, next, after.matches)
    let transition = target.id
    if (before.matches.length > 0) transition |= MATCH_BEFORE
    if (after.matches.length > 0) transition |= MATCH_AFTER
    if (generation === this.generation) {
      this.table[id * this.width + next] = transition
    }
    // Also after the table was emptied: the caller asks for them next.
    if (before.matches.length > 0) this.#matchesBefore.set(id * this.width + next, before.matches)
    return transition
  }

  #instruction(at: number): Instruction {
    return this.#program.instructions[at] as Instruction
  }

  /**
   * Follows what takes no character. Without `next` an assertion that depends on the next character stays open.
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
          if (!this.#holds(instruction.flags, previous, next)) continue
          break
        case 'go':
          break
      }
      for (let way = instruction.next.length - 1; way >= 0; way--) stack.push(instruction.next[way] as number)
    }
    return { open, matches }
  }

  #holds(flags: number, previous: number, next: number): boolean {
    if (flags & ASSERT.textStart && previous !== this.edge) return false
    if (flags & ASSERT.textEnd && next !== this.edge) return false
    if (flags & ASSERT.lineStart && previous !== this.edge && this.#isNewline[previous] !== 1) return false
    if (flags & ASSERT.lineEnd && next !== this.edge && this.#isNewline[next] !== 1) return false
    const isBoundary = (this.#isWord[previous] === 1) !== (this.#isWord[next] === 1)
    if (flags & ASSERT.wordBoundary && !isBoundary) return false
    return !(flags & ASSERT.noWordBoundary && isBoundary)
  }

  #stateOf(open: readonly number[], lastClass: number, matches: readonly number[]): State {
    const waits = open.some((at) => this.#instruction(at).op !== 'take')
    const previous = waits ? lastClass : -1
    const name = `${open.join()};${previous};${matches.join()}`
    const known = this.#known.get(name)
    if (known) return known
    if (this.#states.length >= this.#maxStates) this.#clear()
    const distance = Math.min(Infinity, ...open.map((at) => this.#distances[at] as number))
    const state = { id: this.#states.length, open, previous, matches, distance }
    this.#states.push(state)
    this.#known.set(name, state)
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
    this.#states.push(unused, { ...unused, id: DEAD })
    this.#known.set(';-1;', this.#states[DEAD] as State)
  }
}
