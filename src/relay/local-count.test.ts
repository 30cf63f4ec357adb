import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { afterAll, expect, test, vi } from 'vitest'
import { LocalCount } from './local-count.ts'

const count = new LocalCount(0, { start: (_, make) => make() })
afterAll(() => count.close())

test('texts for charges are counted before others, of which few are counted at a time', async () => {
  const order: string[] = []
  const noting = (name: string) => (): void => void order.push(name)
  const long = 'apple '.repeat(2_000)
  const told = ['told 1', 'told 2', 'told 3'].map((name) => count.countLowPriority(long).then(noting(name)))
  await setImmediate()
  const charged = ['charged 1', 'charged 2'].map((name) => count.count('apple').then(noting(name)))
  await Promise.all([...told, ...charged])
  // The first count was already running.
  expect(order).toEqual(['told 1', 'charged 1', 'charged 2', 'told 2', 'told 3'])
})

test('short texts of one turn are sent to the thread together', async () => {
  await count.count('warm')
  const posted = vi.spyOn(Worker.prototype, 'postMessage')
  const texts = Array.from({ length: 20 }, (_, i) => 'apple '.repeat(i + 1).trimEnd())
  const counts = await Promise.all(texts.map((text) => count.countLowPriority(text)))
  expect(counts).toEqual(texts.map((_, i) => i + 1))
  expect(posted).toHaveBeenCalledOnce()
  posted.mockRestore()
})

test('the counter is busy while 32 texts of either kind are being counted or wait', async () => {
  const counts = Array.from({ length: 31 }, (_, i) =>
    i % 2 ? count.count('a') : count.countLowPriority('a'),
  )
  expect(count.isBusy).toBe(false)
  counts.push(count.count('a'))
  expect(count.isBusy).toBe(true)
  expect(await Promise.all(counts)).toEqual(Array.from({ length: 32 }, () => 1))
  expect(count.isBusy).toBe(false)
})

test('an empty text has no tokens, and texts being counted when the thread ends are estimated by their length', async () => {
  expect(await count.count('')).toBe(0)
  const counts = [count.count('x'.repeat(400_000)), count.countLowPriority('é'.repeat(10))]
  await count.close()
  expect(await Promise.all(counts)).toEqual([100_000, 5])
  expect(await count.count('apple apple')).toBe(2)
})
