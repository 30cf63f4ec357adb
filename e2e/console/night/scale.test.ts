import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'
import { addManyCalls } from '../many-calls.ts'

const KEYS = 10_000
const CALLS = 1_000_000
/** The number of runs, of which the best time counts, as other work on the machine is not the console's. */
const RUNS = 5

describe.skipIf(withoutBrowser())(`the console with ${KEYS} keys and ${CALLS} calls`, () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.declare('options: { max_user_tokens: 20000 }')
    await stage.gateway.stop()
    await addManyCalls(stage.gateway.dataDir, { keys: KEYS, calls: CALLS })
    await stage.gateway.restart()
  })
  afterAll(async () => {
    await stage?.close()
  })

  /** Milliseconds from the navigation, or from `since`, to the frame that shows all of these. */
  async function paintedMs(page: Page, selectors: readonly string[], since = 0): Promise<number> {
    const shown = await page.waitForFunction(
      (wanted) => wanted.every((selector) => document.querySelector(selector)) && performance.now(),
      selectors,
    )
    return Number(await shown.jsonValue()) - since
  }

  /** The best time of opening a page with an empty cache of responses. */
  async function openedMs(page: Page, path: string, selectors: readonly string[]): Promise<number> {
    const times: number[] = []
    for (let run = 0; run < RUNS; run += 1) {
      await page.goto(path, { waitUntil: 'commit' })
      times.push(await paintedMs(page, selectors))
    }
    const best = Math.min(...times)
    console.log(`${path}: painted after ${times.map(Math.round).join(', ')} ms`)
    return best
  }

  const row = (label: string): string => `table[aria-label="${label}"] tbody tr`

  test('the list of many keys is shown and filtered within a second, and the keyboard moves through its pages', async () => {
    const page = await stage.open('root', '/keys')
    expect(await openedMs(page, '/keys', [row('API keys')])).toBeLessThan(1000)

    const filter = page.getByRole('searchbox', { name: 'Filter keys' })
    const times: number[] = []
    for (let run = 0; run < RUNS; run += 1) {
      const wanted = `key ${KEYS - 7 - run}`
      await filter.fill(wanted.slice(0, -1))
      await page.waitForLoadState('networkidle')
      const since = await page.evaluate(() => performance.now())
      await filter.press('End')
      await filter.pressSequentially(wanted.slice(-1))
      const found = await page.waitForFunction((name) => {
        const names = [...document.querySelectorAll('table[aria-label="API keys"] tbody tr')]
        return names.length < 3 && names.some((one) => one.textContent.includes(name)) && performance.now()
      }, wanted)
      times.push(Number(await found.jsonValue()) - since)
    }
    console.log(`filtered after ${times.map(Math.round).join(', ')} ms`)
    expect(Math.min(...times)).toBeLessThan(1000)

    await page.goto('/keys')
    const pages = Math.ceil((KEYS + 1) / 50)
    const position = page.getByRole('status').filter({ hasText: / of / })
    await position.filter({ hasText: `Page 1 of ${pages}` }).waitFor()
    const next = page.getByRole('button', { name: 'Next page' })
    await next.focus()
    for (let number = 2; number < 5; number += 1) {
      await page.keyboard.press('Enter')
      await position.filter({ hasText: `Page ${number} of ${pages}` }).waitFor()
      expect(await next.evaluate((button) => button === document.activeElement)).toBe(true)
    }
    await page.close()
  })

  test('the usage page for 90 days and the log are each shown within 1.5 s', async () => {
    const page = await stage.open('root', '/account')
    const usage = ['figure[aria-label="Spend"] path, figure[aria-label="Spend"] rect', row('Breakdown')]
    const sums = '[role="status"][aria-label="Totals of these calls"]:not(:empty)'
    const slow: string[] = []
    for (const [path, selectors] of [
      ['/usage?period=90d', usage],
      ['/usage?period=90d&by=key', usage],
      ['/logs', [row('Calls'), sums]],
      ['/logs?period=30d', [row('Calls'), sums]],
      ['/', ['section[aria-label="Spend"] dd', row('Calls')]],
    ] as const) {
      const best = await openedMs(page, path, selectors)
      if (best > 1500) slow.push(`${path}: ${best} ms`)
    }
    expect(slow).toEqual([])
    await page.close()
  })
})
