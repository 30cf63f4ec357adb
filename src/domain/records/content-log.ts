import { CONTENT_LEVELS } from '../content-log.ts'
import { integerType, nullableType, numberType, oneOfType } from './field-types.ts'
import { declareRecord, type Fields, type Row } from './record.ts'

/** Maximum retention in seconds: ten years, as in gateway.yaml. */
const MAX_KEEP_SECONDS = 315_360_000

const share = numberType('a number from 0 to 1', { minimum: 0, maximum: 1 })

const keep = integerType(`whole seconds from 1 to ${MAX_KEEP_SECONDS}`, {
  minimum: 1,
  maximum: MAX_KEEP_SECONDS,
})

/**
 * Fields of a user or a token that determine how much content of its calls is kept; `docs/api.md: Content
 * log`. If a field is empty or null, the value of the user, then of the group, then of gateway.yaml's
 * `content_log` applies.
 */
function contentLogFields<const Edit extends 'holder' | 'admin'>(edit: Edit) {
  const common = { audit: true, admission: 'heed', edit } as const
  return {
    content_log_what: {
      ...common,
      type: oneOfType(['', ...CONTENT_LEVELS], `one of ${CONTENT_LEVELS.join(', ')}, or an empty text`),
      default: '',
    },
    content_log_sample: { ...common, type: nullableType(share), default: null },
    /** Retention in seconds; null if not set. */
    content_log_keep: { ...common, type: nullableType(keep), default: null },
  } as const satisfies Fields
}

/** The content log's fields of a token. They can only reduce what is kept. */
export const TOKEN_CONTENT_FIELDS = contentLogFields('holder')

/** The content log's fields of a user, which only administrators can set. */
export const USER_CONTENT_FIELDS = contentLogFields('admin')

/** The content log's fields as a record, which converts values to database columns. */
export const CONTENT_LOG = declareRecord('', TOKEN_CONTENT_FIELDS)

/** Database columns of the content log's fields. */
export type ContentLogColumns = Readonly<Row<typeof TOKEN_CONTENT_FIELDS>>
