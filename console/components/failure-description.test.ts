import { expect, test } from 'vitest'
import { failures as english } from '../locales/en/failures.ts'
import { failures as chinese } from '../locales/zh/failures.ts'
import { failureDescription } from './failure-description.ts'

test.each([
  ['ECONNREFUSED', 'connection refused', '连接被拒绝'],
  ['status 503', 'answered 503', '答复 503'],
  ['first byte time-out', 'no answer in time', '未按时答复'],
  ['a cause of a later version', 'a cause of a later version', 'a cause of a later version'],
])('the cause %s of a failed attempt is a word in each language', (cause, inEnglish, inChinese) => {
  expect(failureDescription(cause, english)).toBe(inEnglish)
  expect(failureDescription(cause, chinese)).toBe(inChinese)
})
