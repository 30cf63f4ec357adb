import { type GuardMatch as DeclaredMatch, PII_KINDS } from '../../../src/domain/guard.ts'
import type { Texts } from '../../locales/en.ts'

/** What a guard looks for (its *match*), in the form of gateway.yaml. */
export type GuardMatch = Readonly<Record<string, unknown>>

/**
 * A field of a match, and how it is typed. `lines`: a list of texts, one per line; `pairs`: one name and
 * value per line.
 */
export interface MatchField {
  readonly name: string
  readonly input: 'text' | 'lines' | 'pairs' | 'number' | 'choices'
  readonly choices?: readonly string[]
  /** The value that the form of a new guard begins with. */
  readonly initial?: string
  readonly isOptional?: true
  /** Whether the values of pairs are numbers. */
  readonly isNumeric?: true
}

/** How one kind of match is shown as a form. */
interface MatchForm {
  readonly fields: readonly MatchField[]
  /** Fields that always have the same value, so that they need no input. */
  readonly constant?: GuardMatch
  /** Whether an external service decides. The fields are then nested in the field that names the kind. */
  readonly isService?: true
}

/**
 * The kinds of matches that have a form, by the field that identifies the kind. Other kinds are edited as
 * JSON.
 */
export const MATCH_FORMS = {
  regex: {
    fields: [
      { name: 'regex', input: 'lines' },
      { name: 'most', input: 'number', initial: '256', isOptional: true },
    ],
  },
  words: { fields: [{ name: 'words', input: 'lines' }] },
  secrets: { fields: [], constant: { secrets: true } },
  pii: { fields: [{ name: 'pii', input: 'choices', choices: PII_KINDS }] },
  moderation: {
    isService: true,
    fields: [
      { name: 'model', input: 'text' },
      { name: 'thresholds', input: 'pairs', isNumeric: true, isOptional: true },
    ],
  },
  webhook: {
    isService: true,
    fields: [
      { name: 'url', input: 'text' },
      { name: 'headers', input: 'pairs', isOptional: true },
    ],
  },
  presidio: {
    isService: true,
    fields: [
      { name: 'url', input: 'text' },
      { name: 'language', input: 'text', initial: 'en', isOptional: true },
      { name: 'score', input: 'number', initial: '0.5', isOptional: true },
      { name: 'entities', input: 'lines', isOptional: true },
    ],
  },
  bedrock: {
    isService: true,
    fields: [
      { name: 'region', input: 'text' },
      { name: 'guardrail', input: 'text' },
      { name: 'version', input: 'text', initial: 'DRAFT' },
      { name: 'keys', input: 'lines' },
      { name: 'base_url', input: 'text', isOptional: true },
    ],
  },
  lakera: {
    isService: true,
    fields: [
      { name: 'key', input: 'text' },
      { name: 'project_id', input: 'text', isOptional: true },
      { name: 'base_url', input: 'text', isOptional: true },
    ],
  },
} as const satisfies Readonly<Record<DeclaredMatch['kind'], MatchForm>>

export type MatchKind = keyof typeof MATCH_FORMS

export const MATCH_KINDS = Object.keys(MATCH_FORMS) as readonly MatchKind[]

/** The kind of all matches that have no form. */
export const OTHER_KIND = 'other' as const

/** Form values by the names of the fields. Lines and numbers are texts. */
export type MatchFieldValues = Readonly<Record<string, string | string[]>>

/** A match as it is typed. */
export interface MatchFormValues {
  readonly kind: MatchKind | typeof OTHER_KIND
  readonly values: MatchFieldValues
  /** The whole match as JSON, if its kind has no form. */
  readonly json: string
}

/** The fields of a kind; empty for a kind without a form. */
export function fieldsOfKind(kind: MatchFormValues['kind']): readonly MatchField[] {
  return kind === OTHER_KIND ? [] : MATCH_FORMS[kind].fields
}

/** The values that a new guard of a kind begins with. */
export function initialValues(kind: MatchFormValues['kind']): MatchFieldValues {
  return Object.fromEntries(
    fieldsOfKind(kind).map(({ name, input, initial }) => [name, input === 'choices' ? [] : (initial ?? '')]),
  )
}

/**
 * Whether a service decides guards of this kind. True for a kind without a form, because a service may decide
 * it.
 */
export function isDecidedByService(kind: MatchFormValues['kind']): boolean {
  return kind === OTHER_KIND || formOf(kind).isService === true
}

export function isRequiredValueMissing({ name, isOptional }: MatchField, values: MatchFieldValues): boolean {
  const value = values[name] ?? ''
  if (isOptional) return false
  return Array.isArray(value) ? value.length === 0 : value.trim() === ''
}

/** The form values of a match. A match that its form would change is edited as JSON instead. */
export function matchFormValues(match: GuardMatch): MatchFormValues {
  const json = JSON.stringify(match, undefined, 2)
  const kind = MATCH_KINDS.find((one) => one in match)
  if (kind === undefined) return { kind: OTHER_KIND, values: {}, json }
  const members = formOf(kind).isService ? ((match[kind] ?? {}) as GuardMatch) : match
  const typed: MatchFormValues = {
    kind,
    values: Object.fromEntries(
      fieldsOfKind(kind).map(({ name, input }) => [name, typedValue(members[name], input)]),
    ),
    json: '',
  }
  return isSame(matchOfFormValues(typed), match) ? typed : { kind: OTHER_KIND, values: {}, json }
}

/**
 * Converts typed values to a match in the form of gateway.yaml. Throws a SyntaxError if the typed JSON is
 * invalid.
 */
export function matchOfFormValues({ kind, values, json }: MatchFormValues): GuardMatch {
  if (kind === OTHER_KIND) return JSON.parse(json) as GuardMatch
  const { fields, constant, isService } = formOf(kind)
  const given = fields.flatMap((field): [string, unknown][] => {
    const value = valueOf(field, values[field.name] ?? '')
    return value === undefined ? [] : [[field.name, value]]
  })
  const members = { ...constant, ...Object.fromEntries(given) }
  return isService ? { [kind]: members } : members
}

function formOf(kind: MatchKind): MatchForm {
  return MATCH_FORMS[kind]
}

/** The value of a field in gateway.yaml; undefined for an optional field that is empty. */
function valueOf({ input, isOptional, isNumeric }: MatchField, typed: string | string[]): unknown {
  if (Array.isArray(typed)) return typed
  if (typed.trim() === '' && isOptional) return undefined
  if (input === 'lines') return nonEmptyLines(typed)
  if (input === 'number') return Number(typed)
  if (input === 'text') return typed.trim()
  const pairs = nonEmptyLines(typed).map((line): [string, string | number] => {
    const [, name = line, value = ''] = /^([^:]*):(.*)$/.exec(line) ?? []
    return [name.trim(), isNumeric ? Number(value) : value.trim()]
  })
  return Object.fromEntries(pairs)
}

/** The lines of a text that are not empty. Spaces within a line are kept. */
export function nonEmptyLines(text: string): string[] {
  return text.split(/\r?\n/).filter((line) => line.trim() !== '')
}

/** A short description of a match: the lists in its fields, or the name or address of its service. */
export function matchSummary(
  match: GuardMatch,
  { guards, common }: Pick<Texts, 'guards' | 'common'>,
): string {
  const pii: Readonly<Record<string, string>> = guards.pii
  const service = match[kindOfMatch(match)]
  const { model, url, guardrail } = (typeof service === 'object' ? service : {}) as GuardMatch
  const named = [model, url, guardrail].find((one) => typeof one === 'string')
  if (typeof named === 'string') return named
  return Object.entries(match)
    .flatMap(([field, value]) =>
      Array.isArray(value) ? value.map((one) => (field === 'pii' && pii[String(one)]) || String(one)) : [],
    )
    .join(common.comma)
}

/** The name of the kind of a match, which is the name of its first field. */
export function kindOfMatch(match: GuardMatch): string {
  return MATCH_KINDS.find((kind) => kind in match) ?? Object.keys(match)[0] ?? ''
}

function typedValue(value: unknown, input: MatchField['input']): string | string[] {
  const texts = Array.isArray(value) ? value.map(String) : []
  if (input === 'choices') return texts
  if (input === 'lines') return texts.join('\n')
  if (input === 'pairs')
    return Object.entries(value ?? {})
      .map(([name, one]) => `${name}: ${String(one)}`)
      .join('\n')
  return typeof value === 'number' || typeof value === 'string' ? String(value) : ''
}

/** Whether two matches are equal; fields without a value count as absent. */
function isSame(one: GuardMatch, other: GuardMatch): boolean {
  return JSON.stringify(plain(one)) === JSON.stringify(plain(other))
}

function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const members = Object.entries(value).map(([name, one]) => [name, plain(one)] as const)
  const given = members.filter(([, one]) => one !== undefined && one !== '' && !isEmpty(one))
  return Object.fromEntries(given.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
