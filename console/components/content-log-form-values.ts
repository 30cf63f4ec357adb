import { CONTENT_LEVELS, type ContentLevel } from '../../src/domain/content-log.ts'

/**
 * How much the content log may record of the calls of a key or a user. Empty: the setting of the next higher
 * level (user, group, gateway.yaml) applies.
 */
export const CONTENT_LEVEL_CHOICES = ['', ...CONTENT_LEVELS] as const

/**
 * The settings of the content log of a key or a user, as typed. For an empty text, the setting of the next
 * higher level (user, group, gateway.yaml) applies.
 */
export interface ContentLogFormValues {
  readonly content_log_what: ContentLevel | ''
  /** The percentage of the calls that are recorded. */
  readonly content_log_sample: string
  /** Seconds until a recording is deleted. */
  readonly content_log_keep: string
}

/** The settings of the content log in the gateway's format. */
interface ContentFields {
  readonly content_log_what: ContentLevel | ''
  readonly content_log_sample: number | null
  readonly content_log_keep: number | null
}

/**
 * Empty settings of the content log, for which those of the next higher level (user, group, gateway.yaml)
 * apply.
 */
export const EMPTY_CONTENT_LOG_VALUES: ContentLogFormValues = {
  content_log_what: '',
  content_log_sample: '',
  content_log_keep: '',
}

/** The form values of the content log of a key or a user. */
export function contentLogFormValues({
  content_log_what: what,
  content_log_sample: sample,
  content_log_keep: keep,
}: {
  readonly content_log_what: string
  readonly content_log_sample: number | null
  readonly content_log_keep: number | null
}): ContentLogFormValues {
  return {
    content_log_what: CONTENT_LEVEL_CHOICES.find((choice) => choice === what) ?? '',
    content_log_sample: sample === null ? '' : String(Number((sample * 100).toFixed(6))),
    content_log_keep: keep === null ? '' : String(keep),
  }
}

/** The typed values that differ from the values `before`, in the gateway's format. */
export function changedContentLogFields(
  typed: ContentLogFormValues,
  before: ContentLogFormValues,
): Partial<ContentFields> {
  const share = shareIn(typed.content_log_sample)
  return {
    ...(typed.content_log_what !== before.content_log_what && { content_log_what: typed.content_log_what }),
    ...(typed.content_log_sample !== before.content_log_sample && { content_log_sample: share ?? null }),
    ...(typed.content_log_keep !== before.content_log_keep && {
      content_log_keep: typed.content_log_keep === '' ? null : Number(typed.content_log_keep),
    }),
  }
}

/** Whether a typed percentage is empty, or a number from 0 to 100. */
export function isPercentOrEmpty(typed: string): boolean {
  return typed.trim() === '' || shareIn(typed) !== undefined
}

function shareIn(typed: string): number | undefined {
  const percent = typed.trim().replace(/ ?%$/, '')
  if (!/^\d{1,3}(?:\.\d{1,6})?$/.test(percent) || Number(percent) > 100) return undefined
  return Number((Number(percent) / 100).toFixed(8))
}
