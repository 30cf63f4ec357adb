import { execFileSync } from 'node:child_process'
import process from 'node:process'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { collectGarbageWhenIdle } from './idle-memory.ts'

/** The resident size after the start in bytes. */
const START_BYTES = 150e6

let openExchanges = 0
let full = 0
let young = 0
let residentBytes = START_BYTES
/** The resident size after a full collection. */
let collectedBytes = Number.POSITIVE_INFINITY
/** The resident size after a trim of the C library's heap. */
let trimmedBytes = Number.POSITIVE_INFINITY
let giving: { stop(): void }
beforeEach(() => {
  vi.useFakeTimers()
  openExchanges = 0
  full = 0
  young = 0
  residentBytes = START_BYTES
  collectedBytes = Number.POSITIVE_INFINITY
  trimmedBytes = Number.POSITIVE_INFINITY
  begin()
})
afterEach(() => {
  giving.stop()
  vi.useRealTimers()
})

function begin(): void {
  giving = collectGarbageWhenIdle(() => openExchanges, {
    collectAll: () => {
      full += 1
      residentBytes = Math.min(residentBytes, collectedBytes)
    },
    collectYoung: () => (young += 1),
    trim: async () => void (residentBytes = Math.min(residentBytes, trimmedBytes)),
    residentBytes: () => residentBytes,
  })
}

/** Lets this number of seconds pass, with this number of requests in flight in each. */
async function pass(seconds: number, underWay = 0): Promise<void> {
  openExchanges = underWay
  await vi.advanceTimersByTimeAsync(seconds * 1_000)
}

describe('when memory is released', () => {
  test('the gateway releases memory three seconds after it has started, and not again while it is idle', async () => {
    await pass(2)
    expect(full).toBe(0)
    await pass(1)
    expect(full).toBe(1)
    await pass(3_600)
    expect([full, young]).toEqual([1, 0])
  })

  test('the gateway releases memory three seconds after the calls that arrived during its start have ended', async () => {
    await pass(20, 1)
    await pass(3)
    expect(full).toBe(1)
  })

  test('a minute after the last call only young garbage is collected, unless the process has grown by three quarters', async () => {
    await pass(3)
    await pass(100, 1)
    residentBytes = 1.74 * START_BYTES
    await pass(59)
    expect(young).toBe(0)
    await pass(1)
    expect(young).toBe(1)
    await pass(500)
    expect([full, young]).toEqual([1, 1])
  })

  test('a full garbage collection runs ten minutes after the last call if the process has grown by a quarter', async () => {
    await pass(3)
    await pass(10, 1)
    residentBytes = 1.24 * START_BYTES
    await pass(3_600)
    expect([full, young]).toEqual([1, 1])
    await pass(10, 1)
    residentBytes = 1.26 * START_BYTES
    await pass(599)
    expect(full).toBe(1)
    await pass(1)
    expect(full).toBe(2)
    await pass(3_600)
    expect(full).toBe(2)
  })

  test('young garbage is collected a minute after calls that were in progress since the start', async () => {
    await pass(100, 1)
    await pass(60)
    expect([full, young]).toEqual([0, 1])
  })

  test('a full garbage collection runs a minute after the last call if the process has grown by three quarters', async () => {
    await pass(3)
    await pass(100, 1)
    residentBytes = 1.76 * START_BYTES
    await pass(60)
    expect([full, young]).toEqual([1, 1])
    await pass(1)
    expect([full, young]).toEqual([2, 1])
    // Live memory is not collected again before there was more work.
    await pass(3_600)
    expect([full, young]).toEqual([2, 1])
  })

  test.each([
    [2, 1.74, 1],
    [2, 1.76, 2],
  ])(
    'growth of an idle process is measured from its size after the collection at the start, which had been %d times as large',
    async (before, after, collections) => {
      giving.stop()
      residentBytes = before * START_BYTES
      collectedBytes = START_BYTES
      begin()
      await pass(3)
      await pass(100, 1)
      residentBytes = after * START_BYTES
      collectedBytes = Number.POSITIVE_INFINITY
      await pass(61)
      expect(full).toBe(collections)
    },
  )

  test('the growth that triggers a full garbage collection is measured from the smallest process size in any idle minute', async () => {
    residentBytes = 1.4 * START_BYTES
    await pass(3)
    residentBytes = START_BYTES
    await pass(60)
    await pass(100, 1)
    residentBytes = 1.76 * START_BYTES
    await pass(61)
    expect(full).toBe(2)
  })

  test('no full garbage collection runs if trimming the heap has released enough memory', async () => {
    await pass(3)
    await pass(100, 1)
    residentBytes = 2 * START_BYTES
    trimmedBytes = 1.2 * START_BYTES
    await pass(3_600)
    expect([full, young]).toEqual([1, 1])
  })

  test('a full garbage collection of an idle process runs every ten minutes at most', async () => {
    residentBytes = 2 * START_BYTES
    await pass(100, 1)
    residentBytes = 4 * START_BYTES
    await pass(61)
    expect(full).toBe(1)
    await pass(10, 1)
    await pass(500)
    expect([full, young]).toEqual([1, 2])
    await pass(100)
    expect([full, young]).toEqual([2, 2])
  })

  test('a full garbage collection runs earlier if the process has grown by a quarter since the last one', async () => {
    await pass(3)
    await pass(10, 1)
    residentBytes = 2 * START_BYTES
    await pass(61)
    expect(full).toBe(2)
    await pass(10, 1)
    residentBytes = 2.49 * START_BYTES
    await pass(100)
    expect(full).toBe(2)
    residentBytes = 2.51 * START_BYTES
    await pass(1)
    expect(full).toBe(3)
  })

  test('the growth that triggers a release of memory is measured from the size after the heap was last trimmed', async () => {
    await pass(3)
    await pass(10, 1)
    residentBytes = 4 * START_BYTES
    trimmedBytes = 2 * START_BYTES
    await pass(61)
    expect(full).toBe(2)
    await pass(10, 1)
    trimmedBytes = Number.POSITIVE_INFINITY
    residentBytes = 2.6 * START_BYTES
    await pass(61)
    expect(full).toBe(3)
  })
})

/**
 * Leaves 400 MB of free blocks in the C library's heap, and prints the resident megabytes before and after.
 */
const SCRIPT = `
  const { trimHeap } = await import(process.argv[1])
  const megabytes = () => Math.round(process.memoryUsage.rss() / 1e6)
  let buffers = Array.from({ length: 20_000 }, (_, i) => Buffer.alloc(16_000 + (i % 8_000), 1))
  buffers = buffers.filter((_, i) => i % 200 === 0)
  gc()
  await new Promise((resolve) => setTimeout(resolve, 200))
  gc()
  const before = megabytes()
  await trimHeap()
  console.log(JSON.stringify({ before, after: megabytes(), kept: buffers.length }))
`

test.runIf(process.platform === 'linux')(
  'free blocks in the heap of the C library are returned to the system',
  () => {
    const module = new URL('idle-memory.ts', import.meta.url).href
    const printed = execFileSync(
      process.execPath,
      ['--expose-gc', '--input-type=module', '-e', SCRIPT, module],
      {
        encoding: 'utf8',
        timeout: 240_000,
      },
    )
    const { before, after } = JSON.parse(printed) as { before: number; after: number }
    expect(before).toBeGreaterThan(300)
    expect(after).toBeLessThan(before / 2)
  },
)
