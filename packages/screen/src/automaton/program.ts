import { caseVariants, normalizeRanges, type CodePointRanges } from './code-points.ts'
import { Compiler, Inst, Parser, RE2Flags, Simplify } from './vendor/re2js/compile.mjs'

/**
 * An instruction of a compiled expression. `next` contains the indexes of the instructions that may follow,
 * in order of preference.
 */
export type Instruction =
  | { readonly op: 'take'; readonly set: CodePointRanges; readonly next: readonly [number] }
  | { readonly op: 'go'; readonly next: readonly number[] }
  | { readonly op: 'assert'; readonly flags: number; readonly next: readonly [number] }
  | { readonly op: 'notAfter' | 'notBefore'; readonly set: CodePointRanges; readonly next: readonly [number] }
  | { readonly op: 'match'; readonly pattern: number; readonly next: readonly [] }

export interface Program {
  readonly instructions: readonly Instruction[]
  readonly start: number
}

/** The assertions of RE2, as bits of `flags`. */
export const ASSERTIONS = {
  lineStart: 1,
  lineEnd: 2,
  textStart: 4,
  textEnd: 8,
  wordBoundary: 16,
  noWordBoundary: 32,
} as const

/** An expression of a program, with the characters that must not be directly before or after a match. */
export interface Pattern {
  /** Regular expression in the syntax of RE2. */
  readonly source: string
  readonly notAfter?: CodePointRanges
  readonly notBefore?: CodePointRanges
}

/** An expression that cannot be used; the message says why. */
export class PatternError extends Error {}

const MAX_INSTRUCTIONS = 500_000

/**
 * Compiles several expressions into one program, which tries each of them.
 * @throws PatternError
 */
export function compileProgram(patterns: readonly Pattern[]): Program {
  const instructions: Instruction[] = []
  const starts = patterns.map((pattern, index) => append(instructions, pattern, index))
  instructions.push({ op: 'go', next: starts })
  const program = { instructions, start: instructions.length - 1 }
  if (instructions.length > MAX_INSTRUCTIONS)
    throw new PatternError(
      `the expression is too large: it needs ${instructions.length} instructions, at most ${MAX_INSTRUCTIONS} are possible`,
    )
  return program
}

function append(into: Instruction[], { source, notAfter, notBefore }: Pattern, pattern: number): number {
  const { inst, start } = parsed(source)
  const base = into.length
  const end = base + inst.length
  for (const read of inst) into.push(translated(read, base, end, source))
  if (notBefore) into.push({ op: 'notBefore', set: notBefore, next: [end + 1] })
  into.push({ op: 'match', pattern, next: [] })
  if (!notAfter) return base + start
  into.push({ op: 'notAfter', set: notAfter, next: [base + start] })
  return into.length - 1
}

// The parser and the compiler of re2js are used without its matcher, because that cannot read a text in pieces.
// They are not exported by the package (`tools/vendor-re2js.mjs`).
function parsed(source: string): { readonly inst: readonly Inst[]; readonly start: number } {
  try {
    return Compiler.compileRegexp(Simplify.simplify(Parser.parse(source, RE2Flags.PERL)))
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new PatternError(message.replace('error parsing regexp: ', ''), { cause: error })
  }
}

function translated(read: Inst, base: number, end: number, source: string): Instruction {
  const next: [number] = [base + read.out]
  switch (read.op) {
    case Inst.ALT:
    case Inst.ALT_MATCH:
      return { op: 'go', next: [base + read.out, base + read.arg] }
    case Inst.CAPTURE:
    case Inst.NOP:
      return { op: 'go', next }
    case Inst.FAIL:
      return { op: 'go', next: [] }
    case Inst.MATCH:
      return { op: 'go', next: [end] }
    case Inst.EMPTY_WIDTH:
      return { op: 'assert', flags: read.arg, next }
    default:
      if (Inst.isRuneOp(read.op)) return { op: 'take', set: setOf(read), next }
      throw new PatternError(`\`${source}\` uses what RE2 does not have`)
  }
}

const sets = new Map<string, CodePointRanges>()
const setsOfRunes = new WeakMap<object, CodePointRanges>()

/** Returns the same array for the same characters, so that a program has few different sets. */
function setOf({ runes, arg }: Inst): CodePointRanges {
  const [only] = runes
  if (runes.length === 1 && only !== undefined) {
    const isFolded = (arg & RE2Flags.FOLD_CASE) !== 0
    const name = `${only}${isFolded ? 'i' : ''}`
    const known = sets.get(name)
    if (known) return known
    const set = normalizeRanges((isFolded ? caseVariants(only) : [only]).flatMap((point) => [point, point]))
    sets.set(name, set)
    return set
  }
  // re2js uses one array of runes for all copies of a repeated class.
  const known = setsOfRunes.get(runes)
  if (known) return known
  const set = normalizeRanges([...runes])
  setsOfRunes.set(runes, set)
  return set
}

/** Minimum number of characters from each instruction to a match; Infinity if no match can follow. */
export function distancesToMatch({ instructions }: Program): readonly number[] {
  const result = instructions.map(({ op }) => (op === 'match' ? 0 : Infinity))
  for (let changed = true; changed; ) {
    changed = false
    for (let at = instructions.length - 1; at >= 0; at--) {
      const { op, next } = instructions[at] as Instruction
      const step = op === 'take' ? 1 : 0
      for (const to of next) {
        const through = (result[to] as number) + step
        if (through < (result[at] as number)) {
          result[at] = through
          changed = true
        }
      }
    }
  }
  return result
}

/** Whether the program can match an empty text. */
export function matchesEmptyText({ instructions, start }: Program): boolean {
  const seen = new Set<number>()
  const open = [start]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (seen.has(at)) continue
    seen.add(at)
    const instruction = instructions[at] as Instruction
    if (instruction.op === 'match') return true
    if (instruction.op !== 'take') open.push(...instruction.next)
  }
  return false
}
