import type { CharacterClasses } from './character-classes.ts'
import type { CodePointRanges } from './code-points.ts'
import { distancesToMatch, type Instruction, type Program } from './program.ts'

/**
 * A program in the form that {@link GuidedSearch} reads: nodes in arrays, so that what follows a node without
 * a character comes before it. The first {@link takes} nodes take a character.
 */
export class GuidedProgram {
  readonly takes: number
  /** The node of a match, and the node from which no match can be reached. */
  readonly match: number
  readonly fail: number
  /** Number of nodes. */
  readonly count: number
  readonly start: number
  /** The two nodes after the character that a node takes, in order of preference. */
  readonly to: Int32Array
  readonly orTo: Int32Array
  /** For each class of characters and each node that takes one: all bits if it does not take that class. */
  readonly refuses: Uint16Array
  /** The nodes that follow the other nodes, in order of preference. */
  readonly first: Int32Array
  readonly second: Int32Array
  /** The assertions of a node, as bits; 0 if it has none. */
  readonly flags: Int32Array
  /** Minimum number of characters to a match; `Infinity` if no match can follow. */
  readonly distances: readonly number[]
  /** In how many passes the nodes that take no character are read; see {@link sizeOfProgram}. */
  readonly passes: number
  readonly hasAssertions: boolean
  /** For each class of characters: 1 if one of them can be the last of a match. */
  readonly canEnd: Uint8Array
  /** Whether a match can follow a node without a character. */
  readonly isFinal: boolean
  readonly #nodes = new Map<number, number>()
  readonly #instructions: readonly Instruction[]
  readonly #joined: ReadonlySet<number>

  constructor(program: Program, classes: CharacterClasses) {
    this.#instructions = program.instructions
    const { taking, ordered, passes, joined } = layoutOf(program)
    this.#joined = joined
    this.takes = taking.length
    this.match = this.takes
    this.fail = this.takes + 1
    this.count = this.takes + 2 + ordered.length
    this.passes = passes
    for (const [node, at] of taking.entries()) this.#nodes.set(at, node)
    for (const [index, at] of ordered.entries()) this.#nodes.set(at, this.takes + 2 + index)
    this.start = this.#nodeOf(program.start)
    const following = taking.map((at) => this.nodesOf(this.#instruction(at).next[0] as number))
    this.to = Int32Array.from(following, ([one]) => one ?? this.fail)
    this.orTo = Int32Array.from(following, ([, other]) => other ?? this.fail)
    this.first = new Int32Array(this.count)
    this.second = new Int32Array(this.count)
    this.flags = new Int32Array(this.count)
    const distances = distancesToMatch(program)
    this.distances = [
      ...taking.map((at) => distances[at] as number),
      0,
      Infinity,
      ...ordered.map((at) => distances[at] as number),
    ]
    for (const at of ordered) {
      const instruction = this.#instruction(at)
      const node = this.#nodeOf(at)
      this.first[node] = this.#following(at, 0)
      this.second[node] = this.#following(at, 1)
      if (instruction.op === 'assert') this.flags[node] = instruction.flags
    }
    this.hasAssertions = this.flags.some((flags) => flags !== 0)
    this.isFinal = this.distances.slice(this.fail + 1).includes(0)
    this.canEnd = new Uint8Array(classes.count)
    const sets = new Map<CodePointRanges, Uint8Array>()
    this.refuses = new Uint16Array(classes.count * this.takes)
    for (const [node, at] of taking.entries()) {
      const { set } = this.#instruction(at) as Instruction & { readonly op: 'take' }
      const within = sets.get(set) ?? classes.within(set)
      sets.set(set, within)
      for (let one = 0; one < within.length; one++)
        if (within[one] === 0) this.refuses[one * this.takes + node] = 0xffff
        else if (this.distances[node] === 1) this.canEnd[one] = 1
    }
  }

  /** The nodes in place of an instruction, in order of preference. */
  nodesOf(at: number): readonly number[] {
    const end = resolved(this.#instructions, at)
    if (!this.#joined.has(end)) return [this.#nodeOf(end)]
    return [this.#following(end, 0), this.#following(end, 1)]
  }

  #nodeOf(at: number): number {
    const end = resolved(this.#instructions, at)
    if (this.#instruction(end).op === 'match') return this.match
    return this.#nodes.get(end) ?? this.fail
  }

  #following(at: number, way: number): number {
    const next = this.#instruction(at).next[way]
    return next === undefined ? this.fail : this.#nodeOf(next)
  }

  #instruction(at: number): Instruction {
    return this.#instructions[at] as Instruction
  }
}

/**
 * The size of a program: the number of its instructions, without those that only lead to the next one, and
 * those that choose between two others after a character. If instructions can follow themselves without a
 * character, as in `(?:a*b*)*`, those that take none are read in several passes, and count for each.
 */
export function sizeOfProgram(program: Program): number {
  const { taking, ordered, passes } = layoutOf(program)
  return taking.length + ordered.length * passes
}

/** Which instructions become nodes. */
interface Layout {
  readonly taking: readonly number[]
  /** Those that take no character, each after those that follow it. */
  readonly ordered: readonly number[]
  /** Those that only follow one instruction that takes a character; they become a part of its node. */
  readonly joined: ReadonlySet<number>
  readonly passes: number
}

function layoutOf(program: Program): Layout {
  const { instructions, start } = program
  const taking = indexes(program, ({ op }) => op === 'take')
  const { ordered, backEdges } = orderOf(program)
  const references = new Map<number, number>()
  const refer = (to: number, weight: number): void => {
    const at = resolved(instructions, to)
    references.set(at, (references.get(at) ?? 0) + weight)
  }
  // Only what follows a character, and nothing else, can be joined.
  refer(start, 2)
  for (const at of ordered) for (const to of instructions[at]?.next ?? []) refer(to, 2)
  for (const at of taking) for (const to of instructions[at]?.next ?? []) refer(to, 1)
  const joined = new Set(ordered.filter((at) => instructions[at]?.op === 'go' && references.get(at) === 1))
  return { taking, ordered: ordered.filter((at) => !joined.has(at)), joined, passes: 1 + backEdges }
}

function indexes({ instructions }: Program, fits: (one: Instruction) => boolean): number[] {
  return instructions.flatMap((one, at) => (fits(one) ? [at] : []))
}

/** Skips instructions that only lead to another one. */
function resolved(instructions: readonly Instruction[], from: number): number {
  let at = from
  for (;;) {
    const { op, next } = instructions[at] as Instruction
    if (op !== 'go' || next.length !== 1) return at
    at = next[0] as number
  }
}

/**
 * The instructions that take no character, each after those that follow it without a character, as far as
 * there is such an order. `backEdges` is the number of exceptions.
 */
function orderOf({ instructions, start }: Program): {
  readonly ordered: number[]
  readonly backEdges: number
} {
  const ordered: number[] = []
  const state = new Uint8Array(instructions.length)
  const [OPEN, DONE] = [1, 2]
  let backEdges = 0
  const visit = (root: number): void => {
    const stack: { readonly at: number; way: number }[] = []
    const enter = (to: number): void => {
      const at = resolved(instructions, to)
      const { op, next } = instructions[at] as Instruction
      if (op === 'take' || op === 'match' || next.length === 0 || state[at] === DONE) return
      if (state[at] === OPEN) {
        backEdges += 1
        return
      }
      state[at] = OPEN
      stack.push({ at, way: 0 })
    }
    enter(root)
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const { next } = instructions[top.at] as Instruction
      const following = next[top.way]
      top.way += 1
      if (following !== undefined) enter(following)
      else {
        state[top.at] = DONE
        ordered.push(top.at)
        stack.pop()
      }
    }
  }
  visit(start)
  for (const { op, next } of instructions) if (op === 'take') visit(next[0])
  return { ordered, backEdges }
}
