import { CONTENT_LEVELS } from '../content-log.ts'
import { integerWithin, nullable, numberWithin, oneOf } from './field-types.ts'
import { declareRecord, type Fields, type Row } from './record.ts'

/** Ten years, as the longest retention of gateway.yaml. */
const MAX_KEEP_SECONDS = 315_360_000

const share = numberWithin('a number from 0 to 1', { minimum: 0, maximum: 1 })

const keep = integerWithin(`whole seconds from 1 to ${MAX_KEEP_SECONDS}`, {
  minimum: 1,
  maximum: MAX_KEEP_SECONDS,
})

/**
 * Fields of a user or a token that say what is kept of its calls; `docs/api.md: Content log`. An empty text and
 * null follow the more general settings.
 */
function contentLogFields<const Edit extends 'holder' | 'admin'>(edit: Edit) {
  const common = { audit: true, admission: 'heed', edit } as const
  return {
    content_log_what: {
      ...common,
      type: oneOf(['', ...CONTENT_LEVELS], `one of ${CONTENT_LEVELS.join(', ')}, or an empty text`),
      default: '',
    },
    content_log_sample: { ...common, type: nullable(share), default: null },
    /** Seconds. */
    content_log_keep: { ...common, type: nullable(keep), default: null },
  } as const satisfies Fields
}

/** Fields of a token. They only lessen what is kept. */
export const TOKEN_CONTENT_FIELDS = contentLogFields('holder')

/** Fields of a user, which only administrators set. */
export const USER_CONTENT_FIELDS = contentLogFields('admin')

/** The fields as a record, to convert declarations into columns. */
export const CONTENT_LOG = declareRecord('', TOKEN_CONTENT_FIELDS)

/** Columns of these fields. */
export type ContentLogColumns = Readonly<Row<typeof TOKEN_CONTENT_FIELDS>>
