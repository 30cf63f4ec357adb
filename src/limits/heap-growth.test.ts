import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { expect, test } from 'vitest'

const SUBJECT = new URL('./heap-growth.ts', import.meta.url).href

/**
 * Program that fills the old generation with garbage and some live objects, and prints the full collections.
 */
function program(isOverload: boolean): string {
  return `
    import { PerformanceObserver } from 'node:perf_hooks'
    import { setOverloadGrowth } from '${SUBJECT}'
    setOverloadGrowth(${isOverload})
    let full = 0
    new PerformanceObserver((list) => {
      for (const { detail } of list.getEntries()) if (detail.kind === 4) full += 1
    }).observe({ entryTypes: ['gc'] })
    const kept = []
    for (let round = 0; round < 220; round++) {
      for (let i = 0; i < 20; i++)
        kept[(20 * round + i) % 200] = new Array(4_096).fill(round).map((x) => ({ x }))
      await new Promise((resolve) => setImmediate(resolve))
    }
    console.log(full)`
}

function fullCollections(isOverload: boolean): number {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      '--max-old-space-size=512',
      '--max-semi-space-size=4',
      '--single-threaded-gc',
      '--input-type=module',
      '--eval',
      program(isOverload),
    ],
    { encoding: 'utf8', timeout: 240_000 },
  )
  expect(stderr).toBe('')
  return Number(stdout)
}

test('in overload there are fewer full garbage collections', () => {
  const [usual, inOverload] = [fullCollections(false), fullCollections(true)]
  expect(usual).toBeGreaterThan(4)
  expect(inOverload).toBeLessThan(0.75 * usual)
})
