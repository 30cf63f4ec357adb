import { Automaton } from './automaton/automaton.ts'
import { GuidedProgram, sizeOfProgram } from './automaton/guided-program.ts'
import { GuidedSearch } from './automaton/guided-search.ts'
import {
  compileProgram,
  distancesToMatch,
  matchesEmptyText,
  PatternError,
  type Program,
} from './automaton/program.ts'
import { type CheckMatch, NO_MATCH, OTHER_MATCH } from './automaton/automaton-search.ts'
import type { Detector, DetectorForm } from './detectors/detector.ts'
import { type PII_KIND_NAMES, PII_DETECTORS } from './detectors/pii.ts'
import { KNOWN_SECRETS, NAMED_SECRETS } from './detectors/secrets.ts'
import type { TextSearch } from './text-search.ts'
import { WordTree } from './words/word-tree.ts'

/** A kind of personal data that a rule can look for. */
export type PiiKind = (typeof PII_KINDS)[number]

export const PII_KINDS = Object.keys(PII_DETECTORS) as readonly PII_KIND_NAMES[]

/** What a rule looks for (`docs/matching.md: What a rule finds`). */
export type RuleMatch =
  | { readonly regex: string | readonly string[]; readonly most?: number }
  | { readonly words: readonly string[] }
  | { readonly secrets: true }
  | { readonly pii: readonly PiiKind[] }

/** A compiled rule. Any number of texts and streams can share it; the memory of its automatons is limited. */
export interface Rule {
  readonly name: string
  /** Maximum number of characters that a stream holds back for this rule. */
  readonly most: number
  readonly searches: readonly TextSearch[]
}

/** A rule that cannot be used. The message says what is wrong, and what would be right. */
export class RuleError extends Error {}

export const DEFAULT_MATCH_LENGTH = 256
export const MAX_MATCH_LENGTH = 4096
const MAX_EXPRESSIONS = 64
/**
 * Maximum size of an expression: the number of its instructions, times `most`, which counts as 1,024 at least.
 * It limits the time for each character and the memory of a search (`docs/matching.md: Time`).
 */
const MAX_SIZE = 3 * 2 ** 16
const LEAST_COUNTED_LENGTH = 1024
/** What a scanner may spend on an automaton for each character; see `AutomatonSearch`. */
const ALLOWED_COST = 400
const MAX_WORDS = 10_000
const MAX_WORD_LENGTH = 200

/**
 * Compiles a rule.
 * @param name Name of the rule. Its matches are of this kind unless the detector defines one, such as
 * `EMAIL`.
 * @throws RuleError
 */
export function compileRule(name: string, match: RuleMatch): Rule {
  const kind = name.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
  const searches = searchesOf(kind, match)
  return { name, most: Math.max(...searches.map(({ most }) => most)), searches }
}

function searchesOf(kind: string, match: RuleMatch): Rule['searches'] {
  if ('regex' in match) return regexSearches(kind, match)
  if ('words' in match) {
    const words = checkedWords(match.words)
    return [{ kind, most: words.most, words, isOfStrings: false }]
  }
  if ('secrets' in match) return [KNOWN_SECRETS, NAMED_SECRETS].map(detectorSearch)
  if (match.pii.length === 0) throw new RuleError('pii needs at least one kind')
  return match.pii.map((kind) => {
    const detector = PII_DETECTORS[kind]
    if (detector) return detectorSearch(detector)
    throw new RuleError(`pii has no kind "${kind}"; the kinds are ${PII_KINDS.join(', ')}`)
  })
}

function regexSearches(
  kind: string,
  { regex, most = DEFAULT_MATCH_LENGTH }: { regex: string | readonly string[]; most?: number },
) {
  if (!Number.isInteger(most) || most < 1 || most > MAX_MATCH_LENGTH)
    throw new RuleError(`most must be a whole number from 1 to ${MAX_MATCH_LENGTH}, not ${most}`)
  const sources = typeof regex === 'string' ? [regex] : regex
  if (sources.length === 0 || sources.length > MAX_EXPRESSIONS)
    throw new RuleError(`regex needs 1 to ${MAX_EXPRESSIONS} expressions, not ${sources.length}`)
  return sources.map((source) => {
    const { program, least } = checkedRegex(source)
    if (least > most)
      throw new RuleError(`the regex \`${source}\` needs at least ${least} characters, but most is ${most}`)
    checkSize(source, sizeOfProgram(program), most)
    const automaton = new Automaton(program, false)
    const guided = new GuidedSearch(automaton, new GuidedProgram(program, automaton.classes), most)
    return {
      kind,
      automaton,
      most,
      judge: undefined,
      judgesEach: false,
      canSkip: false,
      isOfStrings: true,
      guided,
      allowed: ALLOWED_COST,
    }
  })
}

/**
 * Compiles an expression. `least` is the minimum length of a match.
 * @throws RuleError if its syntax is wrong, or if it matches the empty text or nothing at all.
 */
export function checkedRegex(source: string): { readonly program: Program; readonly least: number } {
  const program = compiled(source)
  if (matchesEmptyText(program))
    throw new RuleError(`the regex \`${source}\` matches the empty text; it must need at least one character`)
  const least = distancesToMatch(program)[program.start] as number
  if (least === Infinity) throw new RuleError(`the regex \`${source}\` can never match`)
  return { program, least }
}

/** Refuses an expression that would take too much time or memory on some text. */
function checkSize(source: string, instructions: number, most: number): void {
  const counted = Math.max(most, LEAST_COUNTED_LENGTH)
  if (instructions * counted <= MAX_SIZE) return
  throw new RuleError(
    `the regex \`${source}\` is too large: it has ${instructions} instructions, and with most ${most} it may have ${Math.floor(MAX_SIZE / counted)}`,
  )
}

function compiled(source: string) {
  try {
    return compileProgram([{ source }])
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw new RuleError(`the regex \`${source}\` is not valid in RE2 syntax: ${error.message}`, {
      cause: error,
    })
  }
}

function checkedWords(words: readonly string[]): WordTree {
  if (words.length === 0 || words.length > MAX_WORDS)
    throw new RuleError(`words needs 1 to ${MAX_WORDS} words, not ${words.length}`)
  for (const word of words) {
    if (word.trim() === '') throw new RuleError('words contains an empty word')
    if (word.length > MAX_WORD_LENGTH)
      throw new RuleError(
        `words contains a word of ${word.length} characters; at most ${MAX_WORD_LENGTH} are possible`,
      )
  }
  return new WordTree(words)
}

const searches = new WeakMap<Detector, Rule['searches'][number]>()

/** Returns the search of a detector. Rules that use the same detector share one search. */
function detectorSearch(detector: Detector): Rule['searches'][number] {
  const known = searches.get(detector)
  if (known) return known
  const { kind, most, forms, isCheckedOnce } = detector
  const isJudged = forms.some(({ check, isOther }) => check !== undefined || isOther)
  const search = {
    kind,
    most,
    automaton: new Automaton(compileProgram(forms), true),
    judge: isJudged ? judgeOf(forms) : undefined,
    judgesEach: isJudged && !isCheckedOnce,
    canSkip: forms.some(({ isOther }) => isOther),
    isOfStrings: false,
    guided: undefined,
    allowed: Infinity,
  }
  searches.set(detector, search)
  return search
}

function judgeOf(forms: readonly DetectorForm[]): CheckMatch {
  return (patterns, text) => {
    let verdict = NO_MATCH
    for (const pattern of patterns) {
      const form = forms[pattern] as DetectorForm
      if (form.isOther) verdict = OTHER_MATCH
      else if (form.check?.(text) ?? true) return form.valueAt?.(text) ?? 0
    }
    return verdict
  }
}
