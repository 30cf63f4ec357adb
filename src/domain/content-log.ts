import type { Role } from './role.ts'

/**
 * What the content log keeps of a call, from least to most. `metadata` contains sizes, digests, roles, names of
 * tools, parameters and the finish reason, but no texts; `redacted` is `full` without secrets and personal data.
 */
export const CONTENT_LEVELS = ['none', 'metadata', 'redacted', 'full'] as const

/** What the content log keeps of a call. */
export type ContentLevel = (typeof CONTENT_LEVELS)[number]

/** Levels whose texts telemetry exports; what it gets is what is kept. */
export const EXPORTED_LEVELS: ReadonlySet<ContentLevel> = new Set(['redacted', 'full'])

/** What one place says about the content log; absent values follow the next more general place. */
export interface ContentTerms {
  readonly what?: ContentLevel | undefined
  /** Share of the calls that are kept, from 0 to 1. */
  readonly sample?: number | undefined
  /** Milliseconds for which content is kept. */
  readonly keepMs?: number | undefined
}

/** A bucket of a server that speaks the protocol of S3. */
export interface BucketPlace {
  readonly kind: 's3'
  readonly bucket: string
  /** Without slashes around it; may be empty. */
  readonly prefix: string
  /** URL of the server, to which paths `/bucket/key` are added. */
  readonly endpoint: string
  readonly region: string
}

/** Credentials of a bucket. */
export interface BucketKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** Where content is kept: in the gateway's database, or in a bucket. */
export type ContentPlace = { readonly kind: 'database' } | BucketPlace

/** `docs/configuration.md: Content log`. */
export interface ContentLogSettings {
  readonly what: ContentLevel
  readonly sample: number
  readonly keepMs: number
  readonly store: ContentPlace
  /** The lowest role that may read what others said; undefined if none may. */
  readonly readers: Role | undefined
}

const DAY_MS = 86_400_000

/** The settings if the file has no `content_log`. */
export const CONTENT_LOG_DEFAULTS: ContentLogSettings = {
  what: 'none',
  sample: 1,
  keepMs: 30 * DAY_MS,
  store: { kind: 'database' },
  readers: undefined,
}

/** What is kept of one call, and for how long. */
export interface ContentPolicy {
  readonly what: Exclude<ContentLevel, 'none'>
  readonly keepMs: number
}

/** Fields of a user or a token that concern the content log, as the records declare them. */
interface ContentFields {
  readonly content_log_what: ContentLevel | ''
  readonly content_log_sample: number | null
  /** Seconds. */
  readonly content_log_keep: number | null
}

/**
 * What is kept of a call; undefined if nothing is. Of the user, the group and the general settings, the
 * nearest that says something counts, value by value. A token only lessens. `random`: a number from 0 to 1, of
 * which the samples are taken. `docs/api.md: Content log`.
 */
export function contentPolicy(
  general: ContentLogSettings,
  group: ContentTerms | undefined,
  user: ContentFields,
  token: ContentFields,
  random: () => number,
): ContentPolicy | undefined {
  const given = user.content_log_what || (group?.what ?? general.what)
  if (given === 'none') return undefined
  const what = lesser(given, token.content_log_what)
  if (what === 'none') return undefined
  const sample = Math.min(
    user.content_log_sample ?? group?.sample ?? general.sample,
    token.content_log_sample ?? 1,
  )
  if (sample < 1 && random() >= sample) return undefined
  const userKeepMs = user.content_log_keep === null ? undefined : user.content_log_keep * 1000
  const tokenKeepMs = (token.content_log_keep ?? Infinity) * 1000
  return { what, keepMs: Math.min(userKeepMs ?? group?.keepMs ?? general.keepMs, tokenKeepMs) }
}

function lesser(given: ContentLevel, token: ContentLevel | ''): ContentLevel {
  if (token === '') return given
  return CONTENT_LEVELS.indexOf(token) < CONTENT_LEVELS.indexOf(given) ? token : given
}
