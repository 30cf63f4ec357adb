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
  /** The node after the character that a node takes. */
  readonly to: Int32Array
  /** For each class of characters and each node that takes one: 1 if it takes that class. */
  readonly accepts: Uint8Array
  /** The nodes that follow the other nodes, in order of preference. */
  readonly first: Int32Array
  readonly second: Int32Array
  /** The assertions of a node, as bits; 0 if it has none. */
  readonly flags: Int32Array
  /** Minimum number of characters to a match; `Infinity` if no match can follow. */
  readonly distances: readonly number[]
  /** Whether nodes can follow themselves without a character, as in `(?:a*b*)*`. */
  readonly hasLoops: boolean
  readonly #nodes = new Map<number, number>()
  readonly #instructions: readonly Instruction[]

  constructor(program: Program, classes: CharacterClasses) {
    this.#instructions = program.instructions
    const taking = indexes(program, ({ op }) => op === 'take')
    const { ordered, backEdges } = orderOf(program)
    this.takes = taking.length
    this.match = this.takes
    this.fail = this.takes + 1
    this.count = this.takes + 2 + ordered.length
    this.hasLoops = backEdges > 0
    for (const [node, at] of taking.entries()) this.#nodes.set(at, node)
    for (const [index, at] of ordered.entries()) this.#nodes.set(at, this.takes + 2 + index)
    this.start = this.nodeOf(program.start)
    this.to = Int32Array.from(taking, (at) => this.#following(at, 0))
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
      const instruction = this.#instructions[at] as Instruction
      const node = this.nodeOf(at)
      this.first[node] = this.#following(at, 0)
      this.second[node] = this.#following(at, 1)
      if (instruction.op === 'assert') this.flags[node] = instruction.flags
    }
    const sets = new Map<CodePointRanges, Uint8Array>()
    this.accepts = new Uint8Array(classes.count * this.takes)
    for (const [node, at] of taking.entries()) {
      const { set } = this.#instructions[at] as Instruction & { readonly op: 'take' }
      const within = sets.get(set) ?? classes.within(set)
      sets.set(set, within)
      for (let one = 0; one < within.length; one++) this.accepts[one * this.takes + node] = within[one] as number
    }
  }

  /** The node of an instruction. */
  nodeOf(at: number): number {
    const end = resolved(this.#instructions, at)
    const instruction = this.#instructions[end] as Instruction
    if (instruction.op === 'match') return this.match
    return this.#nodes.get(end) ?? this.fail
  }

  #following(at: number, way: number): number {
    const next = (this.#instructions[at] as Instruction).next[way]
    return next === undefined ? this.fail : this.nodeOf(next)
  }
}

/**
 * The size of a program: the number of its instructions, without those that only lead to the next one.
 * Instructions that do not take a character count once for each pass in which they are read: more than once
 * if some of them can follow themselves, as in `(?:a*b*)*`.
 */
export function sizeOfProgram(program: Program): number {
  const { ordered, backEdges } = orderOf(program)
  return indexes(program, ({ op }) => op === 'take').length + ordered.length * (1 + backEdges)
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
function orderOf({ instructions, start }: Program): { readonly ordered: number[]; readonly backEdges: number } {
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
