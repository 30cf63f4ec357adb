import {
  containsCodePoint,
  LAST_CODE_POINT,
  NEWLINE,
  type CodePointRanges,
  WORD_CHARACTERS,
} from './code-points.ts'
import type { Program } from './program.ts'

/** Marks a code unit that is one half of a surrogate pair; see {@link CharacterClasses.ofUnit}. */
export const HALF_SURROGATE = 0xffff

/**
 * Groups characters into classes: two characters are in the same class if every instruction of the program
 * treats them alike. A state then needs one table entry for each class instead of each character.
 */
export class CharacterClasses {
  /** The class of each UTF-16 code unit; `HALF_SURROGATE` for halves of surrogate pairs. */
  readonly ofUnit = new Uint16Array(0x10000)
  readonly count: number
  readonly #firsts: readonly number[]
  readonly #classes: readonly number[]
  readonly #members: readonly number[]

  constructor(program: Program) {
    const sets = new Set<CodePointRanges>()
    for (const instruction of program.instructions) {
      if ('set' in instruction) sets.add(instruction.set)
      if (instruction.op === 'assert') {
        sets.add(WORD_CHARACTERS)
        sets.add(NEWLINE)
      }
    }
    const bounds = new Set<number>([0])
    for (const set of sets) set.forEach((point, at) => bounds.add(at % 2 === 0 ? point : point + 1))
    bounds.delete(LAST_CODE_POINT + 1)
    this.#firsts = [...bounds].sort((a, b) => a - b)
    const names = new Map<string, number>()
    const members: number[] = []
    const signatures = signaturesOf(this.#firsts, [...sets])
    this.#classes = signatures.map((signature, at) => {
      const known = names.get(signature)
      if (known !== undefined) return known
      names.set(signature, members.length)
      return members.push(this.#firsts[at] as number) - 1
    })
    this.#members = members
    this.count = members.length
    for (const [at, first] of this.#firsts.entries()) {
      if (first > 0xffff) break
      this.ofUnit.fill(this.#classes[at] as number, first, this.#firsts[at + 1] ?? 0x10000)
    }
    this.ofUnit.fill(HALF_SURROGATE, 0xd800, 0xe000)
  }

  /** The class of any code point, which may be an unpaired half of a surrogate pair. */
  ofPoint(point: number): number {
    let low = 0
    for (let high = this.#firsts.length; high - low > 1; ) {
      const middle = (low + high) >> 1
      if ((this.#firsts[middle] as number) <= point) low = middle
      else high = middle
    }
    return this.#classes[low] as number
  }

  /**
   * For each class of characters: 1 if they are in the set, otherwise 0. The set must be one that the program
   * contains.
   */
  within(set: CodePointRanges): Uint8Array {
    return Uint8Array.from(this.#members, (point) => (containsCodePoint(set, point) ? 1 : 0))
  }
}

/** Returns, for each interval of code points, a text that lists the sets containing the interval. */
function signaturesOf(firsts: readonly number[], sets: readonly CodePointRanges[]): readonly string[] {
  const signatures = firsts.map(() => '')
  const index = new Map(firsts.map((first, at) => [first, at]))
  for (const [number, set] of sets.entries()) {
    for (let at = 0; at < set.length; at += 2) {
      const from = index.get(set[at] as number) as number
      const to = index.get((set[at + 1] as number) + 1) ?? firsts.length
      for (let interval = from; interval < to; interval++) signatures[interval] += `${number},`
    }
  }
  return signatures
}
