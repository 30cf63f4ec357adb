/** Parts of a call that a guard checks; `docs/guards.md: Places`. */
export const GUARD_PLACES = ['input', 'output', 'tool_arguments', 'tool_results'] as const

/** A part of a call that a guard checks. */
export type GuardPlace = (typeof GUARD_PLACES)[number]

/** What a guard does about a match. */
export const GUARD_ACTIONS = ['block', 'redact', 'replace', 'flag'] as const

/** What a guard does about a match. */
export type GuardAction = (typeof GUARD_ACTIONS)[number]

/** Whether a guard acts, or only reports what it would have found. */
export const GUARD_MODES = ['enforce', 'monitor'] as const

/** What happens if a guard cannot decide. */
export const GUARD_FAILURES = ['block', 'pass'] as const

/** Kinds of personal data that `match.pii` finds. */
export const PII_KINDS = ['email', 'phone', 'credit_card', 'iban', 'ip', 'ssn'] as const

/** A kind of personal data. */
export type PiiKind = (typeof PII_KINDS)[number]

/** What a guard decided about a call, in the order in which a later one prevails. `docs/guards.md: Verdicts`. */
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

/** What a guard looks for: texts that are found in the gateway itself. */
export type GuardMatch =
  | {
      readonly kind: 'regex'
      readonly patterns: readonly string[]
      /** Maximum length of a match in characters. */
      readonly most: number
    }
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'secrets' }
  | { readonly kind: 'pii'; readonly kinds: readonly PiiKind[] }

/** What a guard looks for, as `redaction/rule.ts` compiles it. */
export function textMatch(match: GuardMatch) {
  switch (match.kind) {
    case 'regex':
      return { regex: match.patterns, most: match.most }
    case 'words':
      return { words: match.words }
    case 'secrets':
      return { secrets: true } as const
    case 'pii':
      return { pii: match.kinds }
  }
}

/** A guard as gateway.yaml declares it; `docs/configuration.md: Guards`. */
export interface Guard {
  readonly name: string
  readonly where: readonly GuardPlace[]
  readonly do: GuardAction
  readonly mode: (typeof GUARD_MODES)[number]
  readonly match: GuardMatch
  /** Scopes; undefined for every model, group, user or token. Users and tokens are names. */
  readonly models: readonly string[] | undefined
  readonly groups: readonly string[] | undefined
  readonly users: readonly string[] | undefined
  readonly tokens: readonly string[] | undefined
  /** The share of calls that are checked, from 0 to 1. */
  readonly sample: number
  /** Milliseconds for the whole answer of a service. */
  readonly timeout: number
  readonly on_failure: (typeof GUARD_FAILURES)[number]
  /** Whether the caller pays for the guard's own calls. */
  readonly charge: boolean
  /** Characters of an answer that are judged at a time; 0 for the whole. */
  readonly most_delay: number
  /** What redaction writes in place of a match. */
  readonly with: string
}
