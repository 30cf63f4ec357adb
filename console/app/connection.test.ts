import { QueryObserver } from '@tanstack/react-query'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

// Where the module looks for the base path.
vi.stubGlobal('document', { querySelector: () => null })
const { reportConnectionLost, waitForConnection } = await import('./connection.ts')
const { queryClient } = await import('./query-client.ts')

/** Reports a lost connection, and counts how often a query of the page was read when it is back. */
async function readsAfter(answers: readonly boolean[]): Promise<number> {
  const left = [...answers]
  vi.stubGlobal('fetch', async () => {
    if (left.shift() === false) throw new TypeError('unreachable')
    return new Response('ready\n')
  })
  let reads = 0
  const observer = new QueryObserver(queryClient, { queryKey: ['page'], queryFn: () => (reads += 1) })
  const stop = observer.subscribe(() => {})
  await vi.advanceTimersByTimeAsync(0)
  expect(observer.getCurrentResult().isSuccess).toBe(true)
  reportConnectionLost()
  await vi.advanceTimersByTimeAsync(60_000)
  await waitForConnection()
  stop()
  return reads
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  queryClient.clear()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('after a lost connection the data of the page is read again', async () => {
  expect(await readsAfter([false, false, true])).toBe(2)
})

test('one address that cannot be reached, while the gateway answers, does not reload the page', async () => {
  expect(await readsAfter([true])).toBe(1)
})
