import { expect, test } from 'vitest'
import { shareConcurrentRuns } from './open.ts'

test('requests for a shared operation that arrive while it runs share its next run', async () => {
  const ends: (() => void)[] = []
  const run = shareConcurrentRuns(() => new Promise((resolve) => ends.push(resolve)))
  const first = run()
  const [second, third] = [run(), run()]
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await first
  await Promise.resolve()
  expect(ends).toHaveLength(2)
  ends[1]?.()
  await Promise.all([second, third])
  void run()
  expect(ends).toHaveLength(3)
})

test('a failed run of a shared operation rejects only the requests that waited for that run', async () => {
  let runs = 0
  const run = shareConcurrentRuns(() => {
    runs += 1
    return runs === 1 ? Promise.reject(new Error('no')) : Promise.resolve()
  })
  const first = run()
  const second = run()
  await expect(first).rejects.toThrow('no')
  await expect(second).resolves.toBeUndefined()
})
