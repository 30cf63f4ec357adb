import { expect, test } from 'vitest'
import {
  changedContentLogFields,
  isPercentOrEmpty,
  EMPTY_CONTENT_LOG_VALUES,
  contentLogFormValues,
} from './content-log-form-values.ts'

const saved = { content_log_what: 'metadata', content_log_sample: 0.07, content_log_keep: 86_400 }

test('the form for storing call content shows the sampled share in percent, and settings that are not set as empty fields', () => {
  expect(contentLogFormValues(saved)).toEqual({
    content_log_what: 'metadata',
    content_log_sample: '7',
    content_log_keep: '86400',
  })
  const nothing = { content_log_what: '', content_log_sample: null, content_log_keep: null }
  expect(contentLogFormValues(nothing)).toEqual(EMPTY_CONTENT_LOG_VALUES)
  expect(changedContentLogFields(EMPTY_CONTENT_LOG_VALUES, contentLogFormValues(saved))).toEqual(nothing)
})

test.each([
  ['0', 0],
  ['7 %', 0.07],
  ['12.5', 0.125],
  ['100', 1],
])('a share that is typed as %s per cent is sent as %s', (typed, share) => {
  expect(isPercentOrEmpty(typed)).toBe(true)
  const changed = changedContentLogFields(
    { ...EMPTY_CONTENT_LOG_VALUES, content_log_sample: typed },
    EMPTY_CONTENT_LOG_VALUES,
  )
  expect(changed).toEqual({ content_log_sample: share })
})

test.each(['101', '-1', 'half', '1e1', '0.5.5'])(
  'the form for storing call content accepts a sampled share from 0 to 100 percent only, and not %s',
  (typed) => {
    expect(isPercentOrEmpty(typed)).toBe(false)
  },
)

test('the form for storing call content sends no fields that were not changed', () => {
  expect(changedContentLogFields(contentLogFormValues(saved), contentLogFormValues(saved))).toEqual({})
})
