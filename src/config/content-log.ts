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
import { type Field, oneOfSchema, scalarSchema, sectionSchema, shareSchema } from './fields.ts'
import {
  keepSchema,
  readBucket,
  refuseServerWithoutBucket,
  serverOfBucket,
  withServer,
} from './storage-fields.ts'

const share = shareSchema('a number from 0 to 1')

const STORE = 'database, or s3://BUCKET/PREFIX'

const store: Field<ContentLocation> = scalarSchema(STORE, ({ value }) => {
  if (value === 'database') return { kind: 'database' }
  return readBucket(value)
})

/** Schema of the section `content_log`: `docs/configuration.md: Content log`. */
export const contentLogSchema: Field<ContentLogSettings> = sectionSchema({
  what: oneOfSchema(CONTENT_LEVELS).default(CONTENT_LOG_DEFAULTS.what),
  sample: share.default(CONTENT_LOG_DEFAULTS.sample),
  keep: keepSchema.default(CONTENT_LOG_DEFAULTS.keepMs),
  store: store.default(CONTENT_LOG_DEFAULTS.store),
  ...serverOfBucket,
  readers: oneOfSchema([Role.admin, Role.root]).optional(),
})
  .superRefine(refuseServerWithoutBucket)
  .transform(
    ({ keep, readers, what, sample, store: place, endpoint, region }): ContentLogSettings => ({
      what,
      sample,
      keepMs: keep,
      readers,
      store: place.kind === 's3' ? withServer(place, { endpoint, region }) : place,
    }),
  )
  .default(CONTENT_LOG_DEFAULTS)

/** `{ what, sample, keep }`: what content is logged for a group, a user or a token. */
export const contentTermsSchema: Field<ContentTerms | undefined> = sectionSchema({
  what: oneOfSchema(CONTENT_LEVELS).optional(),
  sample: share.optional(),
  keep: keepSchema.optional(),
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
