import { PII_KINDS } from '../../../src/domain/guard.ts'

/** What a guard looks for, in the form of gateway.yaml. */
export type Match = Readonly<Record<string, unknown>>

/** A member of a match, and how it is typed: texts one a line, a number, or some of a list. */
export interface MatchField {
  readonly name: string
  readonly input: 'lines' | 'number' | 'choices'
  readonly choices?: readonly string[]
  /** What a new guard has. */
  readonly initial?: string
}

/** The form of a kind of match. */
interface MatchForm {
  readonly fields: readonly MatchField[]
  /** Members without an input. */
  readonly constant?: Match
}

/** The kinds of matches that have a form, by the member that names them. Others are edited as JSON. */
export const MATCH_FORMS = {
  regex: {
    fields: [
      { name: 'regex', input: 'lines' },
      { name: 'most', input: 'number', initial: '256' },
    ],
  },
  words: { fields: [{ name: 'words', input: 'lines' }] },
  secrets: { fields: [], constant: { secrets: true } },
  pii: { fields: [{ name: 'pii', input: 'choices', choices: PII_KINDS }] },
} as const satisfies Readonly<Record<string, MatchForm>>

/** A kind of match that has a form. */
export type MatchKind = keyof typeof MATCH_FORMS

export const MATCH_KINDS = Object.keys(MATCH_FORMS) as readonly MatchKind[]

/** Stands for every kind without a form. */
export const OTHER = 'other' as const

/** The values of a form by the names of its fields: lines and numbers are texts. */
export type MatchValues = Readonly<Record<string, string | string[]>>

/** A match as it is typed. */
export interface TypedMatch {
  readonly kind: MatchKind | typeof OTHER
  readonly values: MatchValues
  /** The whole match as JSON, if its kind has no form. */
  readonly json: string
}

/** The fields of a kind; none for one without a form. */
export function fieldsOf(kind: TypedMatch['kind']): readonly MatchField[] {
  return kind === OTHER ? [] : MATCH_FORMS[kind].fields
}

/** The values that a new guard of a kind begins with. */
export function initialValues(kind: TypedMatch['kind']): MatchValues {
  return Object.fromEntries(
    fieldsOf(kind).map(({ name, input, initial }) => [name, input === 'choices' ? [] : (initial ?? '')]),
  )
}

/** The form values of a match. One that its form could not give back is edited as JSON. */
export function typedMatch(match: Match): TypedMatch {
  const json = JSON.stringify(match, undefined, 2)
  const kind = MATCH_KINDS.find((one) => one in match)
  if (kind === undefined) return { kind: OTHER, values: {}, json }
  const typed: TypedMatch = {
    kind,
    values: Object.fromEntries(
      fieldsOf(kind).map(({ name, input }) => [name, typedValue(match[name], input)]),
    ),
    json: '',
  }
  return isSame(matchOf(typed), match) ? typed : { kind: OTHER, values: {}, json }
}

/** What is typed, in the form of gateway.yaml. Throws a SyntaxError where JSON was typed that is none. */
export function matchOf({ kind, values, json }: TypedMatch): Match {
  if (kind === OTHER) return JSON.parse(json) as Match
  const form: MatchForm = MATCH_FORMS[kind]
  const given = form.fields.flatMap(({ name, input }): [string, unknown][] => {
    const value = values[name] ?? ''
    if (Array.isArray(value)) return [[name, value]]
    if (input === 'lines') return [[name, linesOf(value)]]
    return value.trim() === '' ? [] : [[name, Number(value)]]
  })
  return { ...form.constant, ...Object.fromEntries(given) }
}

/** The lines of a text that are not empty. Spaces within a line are a part of it. */
export function linesOf(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line.trim() !== '')
}

/** What a match finds, in short: the values of its fields. */
export function matchSummary(match: Match): string {
  return Object.values(match)
    .flatMap((value) => (Array.isArray(value) ? value.map(String) : []))
    .join(', ')
}

/** The name of the kind of a match: that of its first member. */
export function kindOf(match: Match): string {
  return MATCH_KINDS.find((kind) => kind in match) ?? Object.keys(match)[0] ?? ''
}

function typedValue(value: unknown, input: MatchField['input']): string | string[] {
  const texts = Array.isArray(value) ? value.map(String) : []
  if (input === 'choices') return texts
  if (input === 'lines') return texts.join('\n')
  return typeof value === 'number' ? String(value) : ''
}

function isSame(one: Match, other: Match): boolean {
  const sorted = (match: Match): string =>
    JSON.stringify(Object.entries(match).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return sorted(one) === sorted(other)
}
