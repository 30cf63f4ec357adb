import { execFileSync } from 'node:child_process'
import process from 'node:process'
import { expect, test } from 'vitest'

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
    const module = new URL('trim-heap.ts', import.meta.url).href
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
