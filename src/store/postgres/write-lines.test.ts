import { expect, test } from 'vitest'
import { StoreUnavailable } from '../store-unavailable.ts'
import { WriteLines } from './write-lines.ts'

const A_MINUTE_MS = 60_000

/** A write that ends when the test says so; `begun` has its name once it runs. */
function heldWrite(name: string, begun: string[]) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const write = async (): Promise<string> => {
    begun.push(name)
    await promise
    return name
  }
  return { write, end: resolve }
}

test('the writes of a line run one after another, also after one that failed, and other lines do not wait', async () => {
  const lines = new WriteLines(A_MINUTE_MS)
  const begun: string[] = []
  const first = heldWrite('first', begun)
  const results = [
    lines.run('a', first.write),
    lines.run('a', () => Promise.reject(new Error('the second'))),
    lines.run('a', async () => begun.push('third')),
  ]
  await lines.run('b', async () => begun.push('elsewhere'))
  expect(begun).toEqual(['first', 'elsewhere'])
  first.end()
  expect((await Promise.allSettled(results)).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
  ])
  expect(begun).toEqual(['first', 'elsewhere', 'third'])
})

test('a write that waits too long is refused, and those behind it still wait for those before it', async () => {
  const lines = new WriteLines(20)
  const begun: string[] = []
  const first = heldWrite('first', begun)
  const firstResult = lines.run('a', first.write)
  await expect(lines.run('a', async () => begun.push('second'))).rejects.toThrow(StoreUnavailable)
  const third = lines.run('a', async () => begun.push('third')).catch((error: unknown) => error)
  expect(await third).toBeInstanceOf(StoreUnavailable)
  expect(begun).toEqual(['first'])
  first.end()
  expect(await firstResult).toBe('first')
  await expect.poll(() => lines.run('a', async () => 'later').catch(() => '')).toBe('later')
})
