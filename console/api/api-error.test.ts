import { expect, test } from 'vitest'
import { ApiError, retryWhileBusy } from './api-error.ts'

test('a request that a busy gateway refused is sent twice more, and one that waits longer or failed otherwise is not', () => {
  const refused = (status: number, retryAfter?: number) => new ApiError('no', { status, retryAfter })
  const busy = [refused(503, 1), refused(429, 1)]
  expect(busy.map((error) => [0, 1, 2].map((failures) => retryWhileBusy(failures, error)))).toEqual([
    [true, true, false],
    [true, true, false],
  ])
  const others = [refused(503), refused(429, 60), refused(401), refused(404, 1), refused(0), new TypeError()]
  expect(others.map((error) => retryWhileBusy(0, error))).toEqual(others.map(() => false))
})
