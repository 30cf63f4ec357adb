import { DEAD_STATE, MATCH_AFTER, MATCH_BEFORE, STATE_MASK, type State } from './automaton.ts'
import { HALF_SURROGATE } from './character-classes.ts'
import type { SearchBudget } from '../search-budget.ts'
import { type AutomatonSearch, NO_MATCH, OTHER_MATCH } from './automaton-search.ts'
import type { SearchProgress } from './search-progress.ts'
import type { Span, TextScanner } from './text-scanner.ts'

// States of attempts to match that are shorter than this are not remembered, because storing them takes
// longer than repeating the attempt.
const REMEMBERED_FROM = 8
const NOTHING = new Int32Array(0)
const NO_CLASSES = new Uint16Array(0)
/** Bit of a noted class: its character has two code units. */
const PAIR = 0x8000

// Costs on the automaton. If they exceed what is allowed for the text so far and for this many characters
// more, a scanner is guided for `GUIDED_LENGTH` characters.
const ALLOWED_CHARACTERS = 40
const STEP_COST = 3
const NEW_STATE_COST = 500
const INSTRUCTION_COST = 25
const GUIDED_LENGTH = 16_384
const NODE_COST = 3
const CHECK_COST = 700
/** Maximum number of nodes that a guided scanner reads for each character that arrives. */
const NODES_FOR_CHARACTER = 384
/** The same for each node of the program, where several levels of a text are searched: three quarters are read once. */
const SCARCE = 4 / 3
/** What a guided search costs besides the characters that it reads, in characters. */
const SEARCH_CHARACTERS = 16

/**
 * Finds the matches of an automaton in one text that arrives in pieces. Attempts to match begin at one
 * position after the other. An attempt that needs more text waits for the next piece.
 *
 * The time is linear in the length of the text: the scanner remembers the states of the attempt that reached
 * farthest. A later attempt that is in the same state at the same position continues from the end of that
 * attempt (Reps, "Maximal-munch tokenization in linear time", 1998). Attempts with a judge do not use this;
 * `most` limits their length. A text on which the attempts cost too much is searched by a `GuidedSearch`.
 */
export class Scanner implements TextScanner {
  readonly #search: AutomatonSearch
  readonly #budget: SearchBudget
  readonly spans: Span[] = []

  // The current attempt: its start, the position it has read to, its state while it waits for text, and the
  // end of its match so far.
  #start = 0
  #position = 0
  #waiting: State | undefined
  #generation = 0
  #span: Span | undefined
  #matchEnd = -1
  #spanStart = 0
  #isOther = false
  #classBefore: number
  #lastClass = 0
  #classAtMatch = 0
  #firstClass = 0
  #firstSize = 1

  // Ring buffers of states by position: of the attempt that reached farthest (valid for positions above `low`
  // up to `high`), and of the current attempt.
  #farthest = NOTHING
  #present = NOTHING
  #mask = 0
  #low = 0
  #high = -1
  #presentLow = 0
  #hasJoined = false

  // The classes of the characters from `classesFrom` to `classesTo`, by position. Attempts read them again and again,
  // and a text takes longer than an array, most of all where it is a part of another text.
  #classes = NO_CLASSES
  #classesFrom = 0
  #classesTo = 0

  // The state of the automaton at the end of the match so far, and what was spent on it since a position.
  #matchState: State | undefined
  #spent = 0
  #spentFrom = 0
  // While the scanner is guided: the nodes at the end of the match so far, and the end of the searched text.
  #isGuided = false
  #open: Int32Array = NOTHING
  #guidedTo = -1

  constructor(search: AutomatonSearch, budget: SearchBudget) {
    this.#search = search
    this.#budget = budget
    this.#classBefore = search.automaton.edge
  }

  get decided(): number {
    return this.#span && !this.#search.canSkip ? this.#matchEnd : this.#start
  }

  get needed(): number {
    return this.#span && !this.#search.judgesEach ? this.#matchEnd : this.#start
  }

  scan(text: string, base: number, isEnd: boolean): void {
    if (this.#isGuided) this.#scanGuided(text, base, isEnd)
    if (this.#isGuided) return
    const { automaton, guided } = this.#search
    const waiting = this.#waiting
    let state = 0
    if (waiting) {
      state = this.#generation === automaton.generation ? waiting.id : automaton.numberOf(waiting)
      this.#waiting = undefined
    }
    if (this.#generation !== automaton.generation) this.#forget()
    while (state !== 0 || this.#begin(text, base, isEnd)) {
      if (state === 0) state = automaton.startAfter(this.#classBefore)
      if (!this.#attempt(state, text, base, isEnd)) return
      this.#end()
      state = 0
      if (this.#budget.isOver) return
      if (guided && this.#isOverspent(this.#start)) {
        this.#guide(text, base, isEnd)
        return
      }
    }
  }

  fork(): Scanner {
    const fork = new Scanner(this.#search, this.#budget)
    fork.#start = this.#start
    fork.#position = this.#position
    fork.#waiting = this.#waiting
    fork.#generation = this.#generation
    fork.#matchEnd = this.#matchEnd
    fork.#spanStart = this.#spanStart
    fork.#isOther = this.#isOther
    fork.#classBefore = this.#classBefore
    fork.#lastClass = this.#lastClass
    fork.#classAtMatch = this.#classAtMatch
    fork.#firstClass = this.#firstClass
    fork.#firstSize = this.#firstSize
    fork.#farthest = this.#farthest.slice()
    fork.#present = this.#present.slice()
    fork.#mask = this.#mask
    fork.#low = this.#low
    fork.#high = this.#high
    fork.#presentLow = this.#presentLow
    fork.#hasJoined = this.#hasJoined
    fork.#matchState = this.#matchState
    fork.#spent = this.#spent
    fork.#spentFrom = this.#spentFrom
    fork.#isGuided = this.#isGuided
    fork.#open = this.#open
    fork.#guidedTo = this.#guidedTo
    if (this.#span) {
      fork.#span = { ...this.#span }
      fork.spans.push(fork.#span)
    }
    return fork
  }

  meets(other: TextScanner, shift: number, from: number): boolean {
    if (!(other instanceof Scanner) || this.#start < from) return false
    const otherEnd = other.#matchEnd === -1 ? -1 : other.#matchEnd - shift
    return (
      this.#start + shift === other.#start &&
      this.#matchEnd === otherEnd &&
      this.#classBefore === other.#classBefore
    )
  }

  leave(): void {
    this.#closeSpan()
  }

  /** Moves to the next position at which a match can begin; returns false if there is none in the text. */
  #begin(text: string, base: number, isEnd: boolean): boolean {
    const { automaton } = this.#search
    const units = automaton.classes.ofUnit
    const { width, starts } = automaton
    const length = base + text.length
    let start = this.#start
    let before = this.#classBefore
    for (let size = 1; start < length; start += size) {
      let next = units[text.charCodeAt(start - base)] as number
      size = 1
      if (next === HALF_SURROGATE) {
        if (isIncomplete(text, start - base, isEnd)) break
        size = sizeAt(text, start - base)
        next = automaton.classes.ofPoint(text.codePointAt(start - base) as number)
      }
      let from = starts[before] as number
      if (from === 0) from = automaton.startAfter(before)
      let transition = automaton.table[from * width + next] as number
      if (transition === 0) transition = automaton.step(from, next)
      if ((transition & STATE_MASK) !== DEAD_STATE) {
        this.#start = start
        this.#classBefore = before
        this.#firstClass = next
        this.#firstSize = size
        this.#position = start
        this.#lastClass = before
        this.#presentLow = start + REMEMBERED_FROM - 1
        if (this.#generation !== automaton.generation) this.#forget()
        return true
      }
      before = next
    }
    this.#start = start
    this.#classBefore = before
    return false
  }

  /** Continues an attempt to match; returns false if it waits for more text. */
  #attempt(from: number, text: string, base: number, isEnd: boolean): boolean {
    const { automaton, most, judge, judgesEach, guided } = this.#search
    const units = automaton.classes.ofUnit
    const { width, edge } = automaton
    const length = base + text.length
    const nearMost = most - automaton.farthest
    if (guided && this.#classes.length === 0)
      this.#classes = new Uint16Array(2 ** Math.ceil(Math.log2(most + 2)))
    const classes = this.#classes
    const classMask = classes.length - 1
    if (this.#position > this.#classesTo || this.#start < this.#classesFrom)
      this.#classesFrom = this.#classesTo = this.#position
    let classesFrom = this.#classesFrom
    let classesTo = this.#classesTo
    let { table } = automaton
    let state = from
    let position = this.#position
    let size = 1
    let left: State | undefined
    let steps = 0
    for (;;) {
      steps += 1
      let next = edge
      if (position < classesTo && position >= classesFrom) {
        next = classes[position & classMask] as number
        size = 1
        if (next & PAIR) {
          next -= PAIR
          size = 2
        }
      } else if (position < length) {
        next = units[text.charCodeAt(position - base)] as number
        size = 1
        if (next === HALF_SURROGATE) {
          if (isIncomplete(text, position - base, isEnd)) return this.#wait(state, position, steps)
          size = sizeAt(text, position - base)
          next = automaton.classes.ofPoint(text.codePointAt(position - base) as number)
        }
        if (guided && position === classesTo) {
          classes[position & classMask] = size === 2 ? next | PAIR : next
          classesTo = this.#classesTo = position + size
          if (classesTo - classesFrom > classes.length)
            classesFrom = this.#classesFrom = classesTo - classes.length
        }
      } else if (!isEnd) {
        return this.#wait(state, position, steps)
      }
      let transition = table[state * width + next] as number
      if (transition === 0) {
        if (guided && this.#isOverspent(position)) return this.#guide(text, base, isEnd)
        left = automaton.stateOf(state)
        const { work } = automaton
        transition = automaton.step(state, next)
        this.#spent += NEW_STATE_COST + INSTRUCTION_COST * (automaton.work - work)
        table = automaton.table
        if (this.#generation !== automaton.generation) this.#forget(position)
      }
      if (transition & MATCH_BEFORE) {
        if (guided && this.#readTo(position) > most) break
        this.#matchState = left ?? automaton.stateOf(state)
        if (!this.#matched(automaton.matchesBefore(state, next), position, text, base)) break
      }
      left = undefined
      state = transition & STATE_MASK
      if (next === edge) break
      position += size
      if (state === DEAD_STATE) {
        if (!judge) this.#remember(DEAD_STATE, position)
        break
      }
      if (transition & MATCH_AFTER && guided && this.#readTo(position) > most) {
        // The last character has two code units. A later attempt may still read it.
        position -= size
        break
      }
      this.#lastClass = next
      if (transition & MATCH_AFTER) {
        this.#matchState = automaton.stateOf(state)
        const { matches, distance } = this.#matchState
        if (!this.#matched(matches, position, text, base) || distance === Infinity) break
      }
      if (!judge && position - this.#start >= REMEMBERED_FROM) {
        if (
          position > this.#low &&
          position <= this.#high &&
          this.#farthest[position & this.#mask] === state
        ) {
          state = this.#farthest[this.#high & this.#mask] as number
          position = this.#high
          this.#hasJoined = true
          if (state === DEAD_STATE) break
          this.#lastClass = this.#classEndingAt(text, position - base)
        } else {
          this.#remember(state, position)
        }
      }
      const read = judgesEach ? position - this.#start : this.#readTo(position)
      if (read >= nearMost && read + automaton.stateOf(state).distance > most) break
    }
    this.#position = position
    this.#spend(STEP_COST * steps)
    return true
  }

  /** Number of characters that the current attempt has read without success up to a position. */
  #readTo(position: number): number {
    return position - (this.#matchEnd === -1 ? this.#start : this.#matchEnd)
  }

  /** Whether more was spent on the automaton than is allowed for the text up to a position. */
  #isOverspent(position: number): boolean {
    const { allowed } = this.#search
    if (this.#budget.isScarce && this.#spent > 0) return true
    const length = position - this.#spentFrom
    if (this.#spent > allowed * (length + ALLOWED_CHARACTERS)) return true
    if (length > GUIDED_LENGTH) {
      this.#spentFrom = position
      this.#spent = 0
    }
    return false
  }

  /** Continues the search guided. Returns false, as the text is then searched to its end. */
  #guide(text: string, base: number, isEnd: boolean): false {
    const { guided } = this.#search
    this.#isGuided = true
    this.#spentFrom = this.#start
    this.#guidedTo = -1
    if (guided && this.#matchEnd !== -1) this.#open = guided.nodesOf(this.#matchState?.open ?? [])
    this.#matchState = undefined
    this.#scanGuided(text, base, isEnd)
    return false
  }

  #scanGuided(text: string, base: number, isEnd: boolean): void {
    const { guided } = this.#search
    const length = base + text.length
    const from = this.#matchEnd === -1 ? this.#start : this.#matchEnd
    // Each search begins at the current attempt again, so that it waits until enough text has arrived.
    const size = guided?.size ?? 0
    const nodes = (length - from + SEARCH_CHARACTERS) * size
    const most = this.#budget.isScarce ? Math.min(NODES_FOR_CHARACTER, SCARCE * size) : NODES_FOR_CHARACTER
    if (!isEnd && nodes > (length - Math.max(this.#guidedTo, 0)) * most) return
    this.#guidedTo = length
    const progress: SearchProgress = {
      start: this.#start,
      classBefore: this.#classBefore,
      matchEnd: this.#matchEnd,
      classAtMatch: this.#classAtMatch,
      open: this.#open,
      matched: () => this.#extendSpan(progress.start, progress.matchEnd),
      ended: () => this.#closeSpan(),
      spend: (nodes) => {
        this.#budget.spend(NODE_COST * nodes)
        return this.#budget.isOver
      },
    }
    guided?.search(progress, text, base, isEnd)
    this.#start = progress.start
    this.#classBefore = progress.classBefore
    this.#matchEnd = progress.matchEnd
    this.#classAtMatch = progress.classAtMatch
    this.#open = progress.open
    if (this.#matchEnd !== -1 || this.#start - this.#spentFrom < GUIDED_LENGTH) return
    this.#isGuided = false
    this.#spent = 0
    this.#spentFrom = this.#start
    this.#forget(this.#start)
  }

  #extendSpan(start: number, end: number): void {
    if (this.#span) {
      this.#span.end = end
    } else {
      this.#span = { start, end, isOpen: true }
      this.spans.push(this.#span)
    }
  }

  #closeSpan(): void {
    if (this.#span) this.#span.isOpen = false
    this.#span = undefined
  }

  #spend(cost: number): void {
    this.#spent += cost
    this.#budget.spend(2 * cost)
  }

  #wait(state: number, position: number, steps: number): false {
    this.#spend(STEP_COST * steps)
    this.#waiting = this.#search.automaton.stateOf(state)
    this.#position = position
    return false
  }

  /** Records that the current attempt has found a match that ends at `end`. Returns whether there may be a longer one. */
  #matched(patterns: readonly number[], end: number, text: string, base: number): boolean {
    const { judge, judgesEach, canSkip } = this.#search
    if (judgesEach || this.#matchEnd === -1) {
      if (judge) this.#budget.spend(CHECK_COST)
      const verdict = judge?.(patterns, text.slice(this.#start - base, end - base)) ?? 0
      if (verdict === NO_MATCH) return judgesEach
      this.#isOther = verdict === OTHER_MATCH
      this.#spanStart = this.#start + Math.max(0, verdict)
    }
    this.#matchEnd = end
    this.#classAtMatch = this.#lastClass
    this.#presentLow = Math.max(this.#presentLow, end)
    if (this.#hasJoined) this.#low = Math.max(this.#low, end)
    if (!canSkip) this.#extendSpan(this.#spanStart, end)
    return true
  }

  /**
   * Ends an attempt to match. The next attempt begins at the end of its match, or one character later if
   * there was none.
   */
  #end(): void {
    if (this.#hasJoined) {
      this.#high = Math.max(this.#high, this.#position)
    } else if (this.#position > this.#high) {
      const other = this.#farthest
      this.#farthest = this.#present
      this.#present = other
      this.#low = this.#presentLow
      this.#high = this.#position
    }
    this.#low = Math.max(this.#low, this.#high - this.#mask)
    this.#hasJoined = false
    if (this.#matchEnd === -1) {
      this.#classBefore = this.#firstClass
      this.#start += this.#firstSize
      return
    }
    if (this.#search.canSkip && !this.#isOther)
      this.spans.push({ start: this.#spanStart, end: this.#matchEnd, isOpen: false })
    this.#closeSpan()
    this.#start = this.#matchEnd
    this.#classBefore = this.#classAtMatch
    this.#matchEnd = -1
  }

  #remember(state: number, position: number): void {
    if (this.#mask === 0) {
      const size = 2 ** Math.ceil(Math.log2(this.#search.most + REMEMBERED_FROM + 2))
      this.#farthest = new Int32Array(size)
      this.#present = new Int32Array(size)
      this.#mask = size - 1
    }
    const ring = this.#hasJoined ? this.#farthest : this.#present
    ring[position & this.#mask] = state
  }

  /** Forgets the remembered states, because their numbers became invalid when the table was emptied. */
  #forget(position = this.#position): void {
    this.#generation = this.#search.automaton.generation
    this.#low = 0
    this.#high = -1
    this.#presentLow = Math.max(this.#presentLow, position)
    this.#hasJoined = false
  }

  #classEndingAt(text: string, end: number): number {
    const { classes } = this.#search.automaton
    const isPair = end > 1 && sizeAt(text, end - 2) === 2
    return classes.ofPoint(text.codePointAt(isPair ? end - 2 : end - 1) as number)
  }
}

/** Whether the text ends with the first half of a surrogate pair, so that the second half may follow. */
function isIncomplete(text: string, at: number, isEnd: boolean): boolean {
  return !isEnd && at + 1 === text.length && (text.charCodeAt(at) & 0xfc00) === 0xd800
}

function sizeAt(text: string, at: number): number {
  return (text.codePointAt(at) as number) > 0xffff ? 2 : 1
}
