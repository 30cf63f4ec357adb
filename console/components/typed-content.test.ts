import { expect, test } from 'vitest'
import { changedContent, isShare, NO_CONTENT, typedContent } from './typed-content.ts'

const saved = { content_log_what: 'metadata', content_log_sample: 0.07, content_log_keep: 86_400 }

test('the form of stored content shows a share in percent, and empty fields where the general setting applies', () => {
  expect(typedContent(saved)).toEqual({
    content_log_what: 'metadata',
    content_log_sample: '7',
    content_log_keep: '86400',
  })
  const nothing = { content_log_what: '', content_log_sample: null, content_log_keep: null }
  expect(typedContent(nothing)).toEqual(NO_CONTENT)
  expect(changedContent(NO_CONTENT, typedContent(saved))).toEqual(nothing)
})

test.each([
  ['0', 0],
  ['7 %', 0.07],
  ['12.5', 0.125],
  ['100', 1],
])('a share that is typed as %s per cent is sent as %s', (typed, share) => {
  expect(isShare(typed)).toBe(true)
  const changed = changedContent({ ...NO_CONTENT, content_log_sample: typed }, NO_CONTENT)
  expect(changed).toEqual({ content_log_sample: share })
})

test.each(['101', '-1', 'half', '1e1', '0.5.5'])(
  'a share in percent must be a number from 0 to 100, unlike %s',
  (typed) => {
    expect(isShare(typed)).toBe(false)
  },
)

test('the form of stored content sends no unchanged fields', () => {
  expect(changedContent(typedContent(saved), typedContent(saved))).toEqual({})
})
