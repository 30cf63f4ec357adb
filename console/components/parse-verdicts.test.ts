import { expect, test } from 'vitest'
import { parseVerdicts } from './parse-verdicts.ts'

test("the guard verdicts of a call are parsed into the guard's name, the verdict and the number of matches", () => {
  expect(parseVerdicts('secrets=redacted;count=2, no.words-1=failed_blocked;count=0')).toEqual([
    { name: 'secrets', verdict: 'redacted', count: 2 },
    { name: 'no.words-1', verdict: 'failed_blocked', count: 0 },
  ])
})

test('a text that is not a guard verdict is ignored', () => {
  expect(parseVerdicts('')).toEqual([])
  expect(parseVerdicts('a=eaten;count=1, b=allowed, c=allowed;count=x')).toEqual([])
})
