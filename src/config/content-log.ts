import {
  CONTENT_LEVELS,
  CONTENT_LOG_DEFAULTS,
  type ContentLogSettings,
  type ContentPlace,
  type ContentTerms,
} from '../domain/content-log.ts'
import { CONTENT_LOG } from '../domain/records/content-log.ts'
import type { Values } from '../domain/records/record.ts'
import { Role } from '../domain/role.ts'
import { parseDuration } from '../domain/units.ts'
import { type Field, oneOf, Refusal, scalar, section } from './fields.ts'

const SHARE = 'a number from 0 to 1'

const share: Field<number> = scalar(SHARE, ({ value }) => {
  const given = typeof value === 'number' ? value : Number.NaN
  return given >= 0 && given <= 1 ? given : undefined
})

const KEEP = 'a duration such as 24h or 30d'
const DAY_MS = 86_400_000
/** Ten years. */
const MAX_KEEP_MS = 3_650 * DAY_MS

// Whole seconds, as the fields of users and tokens have them. Days are written here alone.
const keep: Field<number> = scalar(KEEP, ({ value }) => {
  if (typeof value !== 'string') return undefined
  const [, days] = /^(\d{1,6}) ?d$/.exec(value.trim()) ?? []
  const given = days === undefined ? parseDuration(value) : Number(days) * DAY_MS
  if (given === undefined) return undefined
  return given >= 1000 && given <= MAX_KEEP_MS
    ? Math.floor(given / 1000) * 1000
    : new Refusal('a duration from 1s to 3650d')
})

const store: Field<ContentPlace> = scalar('database', ({ value }) =>
  value === 'database' ? { kind: 'database' as const } : new Refusal('database'),
)

/** `docs/configuration.md: Content log`. */
export const contentLogSchema: Field<ContentLogSettings> = section({
  what: oneOf(CONTENT_LEVELS).default(CONTENT_LOG_DEFAULTS.what),
  sample: share.default(CONTENT_LOG_DEFAULTS.sample),
  keep: keep.default(CONTENT_LOG_DEFAULTS.keepMs),
  store: store.default(CONTENT_LOG_DEFAULTS.store),
  readers: oneOf([Role.admin, Role.root]).optional(),
})
  .transform(({ keep, readers, ...given }): ContentLogSettings => ({ ...given, keepMs: keep, readers }))
  .default(CONTENT_LOG_DEFAULTS)

/** `{ what, sample, keep }` of a group, a user or a token. */
export const contentTermsSchema: Field<ContentTerms | undefined> = section({
  what: oneOf(CONTENT_LEVELS).optional(),
  sample: share.optional(),
  keep: keep.optional(),
})
  .transform(
    ({ keep, ...given }): ContentTerms => ({ ...given, ...(keep !== undefined && { keepMs: keep }) }),
  )
  .optional()

/** The fields of a user or a token whose terms are in gateway.yaml. */
export type DeclaredContentLog = Values<typeof CONTENT_LOG.fields>

/** The fields of declared terms; what they do not say follows the more general settings. */
export function declaredContentLog(terms: ContentTerms | undefined): DeclaredContentLog | undefined {
  if (!terms) return undefined
  return {
    content_log_what: terms.what ?? '',
    content_log_sample: terms.sample ?? null,
    content_log_keep: terms.keepMs === undefined ? null : terms.keepMs / 1000,
  }
}
