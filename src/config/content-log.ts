import {
  CONTENT_LEVELS,
  CONTENT_LOG_DEFAULTS,
  type ContentLogSettings,
  type ContentLocation,
  type ContentTerms,
} from '../domain/content-log.ts'
import { CONTENT_LOG } from '../domain/records/content-log.ts'
import type { Values } from '../domain/records/record.ts'
import { Role } from '../domain/role.ts'
import { parseDuration } from '../domain/units.ts'
import { readBaseUrl } from './base-url.ts'
import { type Field, oneOfSchema, InvalidValue, scalarSchema, sectionSchema, textSchema } from './fields.ts'

const SHARE = 'a number from 0 to 1'

const share: Field<number> = scalarSchema(SHARE, ({ value }) => {
  const given = typeof value === 'number' ? value : Number.NaN
  return given >= 0 && given <= 1 ? given : undefined
})

const KEEP = 'a duration such as 24h or 30d'
const DAY_MS = 86_400_000
/** Maximum retention, ten years in milliseconds. */
const MAX_KEEP_MS = 3_650 * DAY_MS

// A retention in milliseconds, rounded down to whole seconds, because users and tokens store seconds. Only
// this field accepts days (`30d`).
const keep: Field<number> = scalarSchema(KEEP, ({ value }) => {
  if (typeof value !== 'string') return undefined
  const [, days] = /^(\d{1,6}) ?d$/.exec(value.trim()) ?? []
  const given = days === undefined ? parseDuration(value) : Number(days) * DAY_MS
  if (given === undefined) return undefined
  return given >= 1000 && given <= MAX_KEEP_MS
    ? Math.floor(given / 1000) * 1000
    : new InvalidValue('a duration from 1s to 3650d')
})

const STORE = 'database, or s3://BUCKET/PREFIX'

/** A valid bucket name. `STEP` matches one part of an object prefix that needs no encoding in a URL. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const STEP = /^(?!\.\.?$)[\w.-]+$/
const MAX_PREFIX = 512

const store: Field<ContentLocation> = scalarSchema(STORE, ({ value }) => {
  if (value === 'database') return { kind: 'database' }
  if (typeof value !== 'string' || !value.startsWith('s3://')) return undefined
  const [bucket = '', ...steps] = value.slice('s3://'.length).replace(/\/$/, '').split('/')
  const prefix = steps.join('/')
  if (!BUCKET.test(bucket)) return new InvalidValue('s3:// and the name of a bucket')
  if (prefix.length > MAX_PREFIX || !steps.every((step) => STEP.test(step)))
    return new InvalidValue('a prefix of letters, digits, ".", "-", "_" and single slashes')
  return { kind: 's3', bucket, prefix, endpoint: '', region: '' }
})

const endpoint: Field<string> = textSchema('an http:// or https:// URL', (given) => {
  const read = readBaseUrl(given)
  return 'url' in read ? read.url : new InvalidValue(read.expected)
})

const DEFAULT_REGION = 'us-east-1'

const region: Field<string> = textSchema('the name of a region such as eu-central-1', (given) =>
  /^[a-z0-9-]{1,64}$/.test(given) ? given : undefined,
)

/** Schema of the section `content_log`: `docs/configuration.md: Content log`. */
export const contentLogSchema: Field<ContentLogSettings> = sectionSchema({
  what: oneOfSchema(CONTENT_LEVELS).default(CONTENT_LOG_DEFAULTS.what),
  sample: share.default(CONTENT_LOG_DEFAULTS.sample),
  keep: keep.default(CONTENT_LOG_DEFAULTS.keepMs),
  store: store.default(CONTENT_LOG_DEFAULTS.store),
  endpoint: endpoint.optional(),
  region: region.optional(),
  readers: oneOfSchema([Role.admin, Role.root]).optional(),
})
  .superRefine((given, ctx) => {
    for (const key of ['endpoint', 'region'] as const)
      if (given[key] !== undefined && given.store.kind !== 's3')
        ctx.addIssue({ code: 'custom', path: [key], message: 'expected only with store: s3://BUCKET/PREFIX' })
  })
  .transform(
    ({
      keep,
      readers,
      what,
      sample,
      store: place,
      endpoint: url,
      region: name = DEFAULT_REGION,
    }): ContentLogSettings => ({
      what,
      sample,
      keepMs: keep,
      readers,
      store:
        place.kind === 's3'
          ? { ...place, endpoint: url ?? `https://s3.${name}.amazonaws.com`, region: name }
          : place,
    }),
  )
  .default(CONTENT_LOG_DEFAULTS)

/** `{ what, sample, keep }`: what content is logged for a group, a user or a token. */
export const contentTermsSchema: Field<ContentTerms | undefined> = sectionSchema({
  what: oneOfSchema(CONTENT_LEVELS).optional(),
  sample: share.optional(),
  keep: keep.optional(),
})
  .transform(
    ({ keep, ...given }): ContentTerms => ({ ...given, ...(keep !== undefined && { keepMs: keep }) }),
  )
  .optional()

/** The stored fields of a user or a token whose content log settings are in gateway.yaml. */
export type DeclaredContentLog = Values<typeof CONTENT_LOG.fields>

/**
 * The stored fields for declared content log settings. A missing setting is stored as empty or null: the more
 * general settings apply.
 */
export function declaredContentLog(terms: ContentTerms | undefined): DeclaredContentLog | undefined {
  if (!terms) return undefined
  return {
    content_log_what: terms.what ?? '',
    content_log_sample: terms.sample ?? null,
    content_log_keep: terms.keepMs === undefined ? null : terms.keepMs / 1000,
  }
}
