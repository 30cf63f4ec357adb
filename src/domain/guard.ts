/** Parts of a call that a guard checks; `docs/guards.md: Places`. */
export const GUARD_PLACES = ['input', 'output', 'tool_arguments', 'tool_results'] as const

/** A part of a call that a guard checks. */
export type GuardPlace = (typeof GUARD_PLACES)[number]

/** What a guard does if it finds something. */
export const GUARD_ACTIONS = ['block', 'redact', 'replace', 'flag'] as const

/** What a guard does if it finds something. */
export type GuardAction = (typeof GUARD_ACTIONS)[number]

/** Whether a guard acts on what it finds, or only reports it. */
export const GUARD_MODES = ['enforce', 'monitor'] as const

/** What happens to a call if the guard's service fails. */
export const GUARD_FAILURES = ['block', 'pass'] as const

/** Kinds of personal data that `match.pii` finds. */
export const PII_KINDS = ['email', 'phone', 'credit_card', 'iban', 'ip', 'ssn'] as const

/** A kind of personal data. */
export type PiiKind = (typeof PII_KINDS)[number]

/** Header with the verdicts of the guards; `docs/guards.md: Verdicts`. */
export const GUARDS_HEADER = 'x-gateway-guards'

/**
 * What a guard decided about a call. If several guards decide, the last of their decisions in this list
 * counts. `docs/guards.md: Verdicts`.
 */
export const GUARD_VERDICTS = [
  'allowed',
  'failed_passed',
  'flagged',
  'redacted',
  'failed_blocked',
  'blocked',
] as const

/** What a guard decided about a call. */
export type GuardVerdict = (typeof GUARD_VERDICTS)[number]

/**
 * What a guard looks for if the gateway itself searches the text. Apart from `kind`, the members are those of gateway.yaml,
 * and of `RuleMatch` in `@sluice/screen`, which compiles them.
 */
export type TextMatch =
  | {
      readonly kind: 'regex'
      readonly regex: readonly string[]
      /** Maximum length of a match in characters. */
      readonly most: number
    }
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'secrets'; readonly secrets: true }
  | { readonly kind: 'pii'; readonly pii: readonly PiiKind[] }

/** What a guard looks for if an external service decides; `docs/guards.md: Services`. */
export type ServiceMatch =
  | {
      readonly kind: 'moderation'
      readonly model: string
      /**
       * Minimum scores, from 0 to 1, at which a category counts as a match. If empty, the categories that the
       * model flags are matches.
       */
      readonly thresholds: Readonly<Record<string, number>>
    }
  | {
      readonly kind: 'webhook'
      readonly url: string
      readonly headers: Readonly<Record<string, string>>
    }
  | {
      readonly kind: 'presidio'
      readonly url: string
      readonly language: string
      /** Minimum score of a match, from 0 to 1. */
      readonly score: number
      /** Kinds of personal data to look for; all of them if empty. */
      readonly entities: readonly string[]
    }
  | {
      readonly kind: 'bedrock'
      readonly base_url: string
      readonly region: string
      readonly guardrail: string
      readonly version: string
      readonly keys: readonly string[]
    }
  | {
      readonly kind: 'lakera'
      readonly base_url: string
      readonly key: string
      readonly project_id: string | undefined
    }

/** What a guard looks for. */
export type GuardMatch = TextMatch | ServiceMatch

/** A guard for which an external service decides. */
export type ServiceGuard = Guard & { readonly match: ServiceMatch }

/** A guard for which the gateway itself searches the text. */
export type TextGuard = Guard & { readonly match: TextMatch }

const TEXT_KINDS: Readonly<Record<TextMatch['kind'], true>> = {
  regex: true,
  words: true,
  secrets: true,
  pii: true,
}

/** Whether the gateway itself searches the text for matches. */
export function isTextMatch(match: GuardMatch): match is TextMatch {
  return Object.hasOwn(TEXT_KINDS, match.kind)
}

/** Whether an external service decides for a guard. */
export function isServiceGuard(guard: Guard): guard is ServiceGuard {
  return !isTextMatch(guard.match)
}

/** Whether the gateway itself decides for a guard. */
export function isTextGuard(guard: Guard): guard is TextGuard {
  return isTextMatch(guard.match)
}

/** A streamed answer is checked in sections, each of which repeats this many characters of the one before. */
export const CHECK_WINDOW_OVERLAP = 200

/**
 * Minimum of `most_delay` in characters: at least half of each section is new, so that a service checks no
 * text more than twice.
 */
export const MIN_CHECK_WINDOW = 2 * CHECK_WINDOW_OVERLAP

/** Shown in place of a secret. */
export const HIDDEN_SECRET = '***'

/** A guard as gateway.yaml declares it; `docs/configuration.md: Guards`. */
export interface Guard {
  readonly name: string
  readonly where: readonly GuardPlace[]
  readonly do: GuardAction
  readonly mode: (typeof GUARD_MODES)[number]
  readonly match: GuardMatch
  /** Names of the models, groups, users and tokens to which the guard applies; undefined for all of them. */
  readonly models: readonly string[] | undefined
  readonly groups: readonly string[] | undefined
  readonly users: readonly string[] | undefined
  readonly tokens: readonly string[] | undefined
  /** The share of calls that the guard checks, from 0 to 1. */
  readonly sample: number
  /** Milliseconds within which a service must have answered. */
  readonly timeout: number
  readonly on_failure: (typeof GUARD_FAILURES)[number]
  /** Whether calls that the guard makes to a model are charged to the caller. */
  readonly charge: boolean
  /**
   * Maximum number of characters of a streamed answer that are checked, and held back, at a time; 0 to check
   * the whole answer at its end.
   */
  readonly most_delay: number
  /** Text that replaces a match. */
  readonly with: string
}

/**
 * The action of a guard for a match. A guard with mode `monitor` only reports matches. So does a guard that
 * would change a signed text.
 */
export function actionOf({ mode, do: action }: Guard, isSigned: boolean): GuardAction {
  if (mode === 'monitor') return 'flag'
  return isSigned && action !== 'block' ? 'flag' : action
}

const VERDICTS = {
  flag: 'flagged',
  redact: 'redacted',
  replace: 'redacted',
  block: 'blocked',
} as const satisfies Readonly<Record<GuardAction, GuardVerdict>>

/** The verdict on a text in which a guard with this action has found matches. */
export function verdictOf(action: GuardAction, matches: number): 'allowed' | (typeof VERDICTS)[GuardAction] {
  return matches === 0 ? 'allowed' : VERDICTS[action]
}
