import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

const PAGES = [
  '/',
  '/keys',
  '/playground',
  '/usage',
  '/logs',
  '/sessions',
  '/models',
  '/live',
  '/what-if',
  '/channels',
  '/channels/new',
  '/routing',
  '/guards',
  '/guards?new=1',
  '/tools',
  '/batches',
  '/users',
  '/users/1',
  '/audit',
  '/settings',
  '/account',
] as const

describe.skipIf(withoutBrowser())('loading pages of the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    for (const model of ['demo-chat', 'demo-reason']) await stage.call(model)
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('the tab has an icon', async () => {
    const page = await stage.open(undefined, '/login')
    const icon = await page.locator('link[rel="icon"]').getAttribute('href')
    const answer = await page.request.get(icon ?? '')
    expect(answer.headers()['content-type']).toBe('image/svg+xml')
    expect(await answer.text()).toContain('<path')
    await page.close()
  })

  test('the sign-in page loads at most 15 scripts, other pages at most 40, and no page has a layout shift above 0.1', async () => {
    const login = await stage.open(undefined, '/login')
    await login.waitForLoadState('networkidle')
    expect(await scriptsOf(login)).toBeLessThanOrEqual(15)
    await login.close()
    const page = await stage.open('root', '/account', { isAlone: true })
    await page.addInitScript(observeShifts)
    for (const path of PAGES) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.waitForLoadState('networkidle')
      expect.soft(await scriptsOf(page), `scripts of ${path}`).toBeLessThanOrEqual(40)
      expect.soft(await page.evaluate(() => window.shifted), `shift of ${path}`).toBeLessThanOrEqual(0.1)
    }
    await page.close()
  })

  test('the open page of channels transfers at most 100 kB a minute for 100 idle channels', async () => {
    for (let n = 0; n < 100; n += 1)
      await stage.api('POST', '/api/channel/', {
        mode: 'single',
        channel: {
          name: `idle ${n}`,
          type: 1,
          key: 'sk-idle',
          models: 'idle',
          base_url: 'http://127.0.0.1:9',
        },
      })
    const page = await stage.open('root', '/account', { isAlone: true })
    await page.clock.install()
    await page.goto('/channels')
    await page.getByText('idle 50', { exact: true }).waitFor()
    await page.waitForLoadState('networkidle')
    const network = await page.context().newCDPSession(page)
    await network.send('Network.enable')
    let [bytes, polls] = [0, 0]
    const open = new Set<string>()
    network.on('Network.requestWillBeSent', ({ request, requestId }) => {
      open.add(requestId)
      if (request.url.endsWith('/api/channel/health')) polls += 1
    })
    network.on('Network.loadingFailed', ({ requestId }) => open.delete(requestId))
    network.on(
      'Network.requestWillBeSentExtraInfo',
      ({ headers }) => (bytes += JSON.stringify(headers).length),
    )
    // With the headers of the response.
    network.on('Network.loadingFinished', ({ encodedDataLength, requestId }) => {
      bytes += encodedDataLength
      open.delete(requestId)
    })
    // A minute of the page's clock. What the page requests in a step is answered before the next one.
    for (let second = 0; second < 60; second += 1) {
      await page.clock.runFor(1_000)
      await expect.poll(() => open.size).toBe(0)
    }
    console.info(`the page of channels moved ${bytes} bytes in a minute`)
    expect(polls).toBeGreaterThanOrEqual(6)
    expect(bytes).toBeLessThanOrEqual(100_000)
    await page.close()
  })
})

declare global {
  interface Window {
    /** The sum of the layout shifts of a page. */
    shifted: number
  }
}

function observeShifts(): void {
  window.shifted = 0
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      window.shifted += (entry as PerformanceEntry & { value: number }).value
  }).observe({ type: 'layout-shift', buffered: true })
}

/** The number of scripts that a page has requested. */
function scriptsOf(page: Page): Promise<number> {
  return page.evaluate(
    () => performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js')).length,
  )
}
