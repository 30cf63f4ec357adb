import type { BucketLocation } from './bucket.ts'
import type { Role } from './role.ts'

/**
 * What the content log keeps of a call, from least to most. `metadata` contains sizes, digests, roles, names of
 * tools, parameters and the finish reason, but no texts; `redacted` is `full` without secrets and personal data.
 */
export const CONTENT_LEVELS = ['none', 'metadata', 'redacted', 'full'] as const

/** How much of a call's content the content log keeps. */
export type ContentLevel = (typeof CONTENT_LEVELS)[number]

/** Levels at which telemetry exports texts, in the form in which the content log keeps them. */
export const EXPORTED_LEVELS: ReadonlySet<ContentLevel> = new Set(['redacted', 'full'])

/**
 * Settings of the content log for a user, a group or a token. Absent values follow the more general settings.
 */
export interface ContentTerms {
  readonly what?: ContentLevel | undefined
  /** Share of the calls that are kept, from 0 to 1. */
  readonly sample?: number | undefined
  /** Milliseconds for which content is kept. */
  readonly keepMs?: number | undefined
}

/** Where content is kept: in the gateway's database, or in a bucket. */
export type ContentLocation = { readonly kind: 'database' } | BucketLocation

/** General settings of the content log: `docs/configuration.md: Content log`. */
export interface ContentLogSettings {
  readonly what: ContentLevel
  readonly sample: number
  readonly keepMs: number
  readonly store: ContentLocation
  /** The lowest role that may read the content of other users' calls; undefined if none may. */
  readonly readers: Role | undefined
}

const DAY_MS = 86_400_000

/** The settings that apply if gateway.yaml has no section `content_log`. */
export const CONTENT_LOG_DEFAULTS: ContentLogSettings = {
  what: 'none',
  sample: 1,
  keepMs: 30 * DAY_MS,
  store: { kind: 'database' },
  readers: undefined,
}

/** What is kept of one call, and for how many milliseconds. */
export interface ContentPolicy {
  readonly what: Exclude<ContentLevel, 'none'>
  readonly keepMs: number
}

/** The content log's fields in the records of users and tokens; empty or null means not set. */
interface ContentFields {
  readonly content_log_what: ContentLevel | ''
  readonly content_log_sample: number | null
  /** Retention in seconds; null if not set. */
  readonly content_log_keep: number | null
}

/**
 * What is kept of a call; undefined if nothing is. For each value, the user's setting takes precedence over
 * the group's, and that over the general one. A token can only reduce what is kept. `random` returns a number
 * from 0 to 1, which decides whether the call is in the sample. `docs/api.md: Content log`.
 */
export function contentPolicy(
  general: ContentLogSettings,
  group: ContentTerms | undefined,
  user: ContentFields,
  token: ContentFields,
  random: () => number,
): ContentPolicy | undefined {
  const given = contentLevelOf(general, group, user)
  if (given === 'none') return undefined
  const what = lesser(given, token.content_log_what)
  if (what === 'none') return undefined
  const sample = Math.min(
    user.content_log_sample ?? group?.sample ?? general.sample,
    token.content_log_sample ?? 1,
  )
  if (sample < 1 && random() >= sample) return undefined
  return { what, keepMs: contentKeepMs(general, group, user, token) }
}

/** The content that is kept of a user's calls in a group, unless the token reduces it. */
export function contentLevelOf(
  general: ContentLogSettings,
  group: ContentTerms | undefined,
  user: Pick<ContentFields, 'content_log_what'>,
): ContentLevel {
  return user.content_log_what || (group?.what ?? general.what)
}

/**
 * Milliseconds for which the content of a call is kept. `user` and `token` are undefined if they were deleted.
 */
export function contentKeepMs(
  general: ContentLogSettings,
  group: ContentTerms | undefined,
  user: Pick<ContentFields, 'content_log_keep'> | undefined,
  token: Pick<ContentFields, 'content_log_keep'> | undefined,
): number {
  const userKeepS = user?.content_log_keep ?? undefined
  const given = userKeepS === undefined ? (group?.keepMs ?? general.keepMs) : userKeepS * 1000
  return Math.min(given, (token?.content_log_keep ?? Infinity) * 1000)
}

function lesser(given: ContentLevel, token: ContentLevel | ''): ContentLevel {
  if (token === '') return given
  return CONTENT_LEVELS.indexOf(token) < CONTENT_LEVELS.indexOf(given) ? token : given
}
