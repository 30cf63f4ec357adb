import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('the overview', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  test("a member's overview shows the base URL, snippets and models with prices, and reports when the first call arrives", async () => {
    const page = await stage.open('caller', '/')
    const connect = page.getByRole('region', { name: 'Connect' })
    const address = connect.getByRole('textbox', { name: 'Base URL' })
    expect(await address.inputValue()).toBe(`${stage.gateway.url}/v1`)
    await connect.getByRole('tablist', { name: 'Snippets' }).waitFor()
    const allowed = await stage.api<{ model: string }[]>('GET', '/api/models')
    const snippet = await connect.getByRole('tabpanel').innerText()
    expect(snippet).toContain(`${stage.gateway.url}/v1/chat/completions`)
    const called = /"model":"([^"]+)"/.exec(snippet)?.[1]
    expect(allowed.map(({ model }) => model)).toContain(called)
    await connect.getByRole('button', { name: 'Copy base URL' }).waitFor()
    await connect.getByRole('link', { name: 'Create key' }).waitFor()
    const status = connect.getByRole('status', { name: 'First call' })
    await status.getByText(/^Waiting for a call/).waitFor()
    // A call of somebody else is not the one that is waited for.
    await stage.call('demo-chat')
    const rows = (): Promise<{ total: number }> => stage.api('GET', '/api/log/')
    await expect.poll(async () => (await rows()).total).toBe(1)
    const polled = (): Promise<unknown> => page.waitForResponse(/\/api\/log\/self/)
    for (let poll = 0; poll < 2; poll += 1) await polled()
    await status.getByText(/^Waiting for a call/).waitFor()
    await stage.call('demo-chat', PEOPLE.caller.key)
    await status.getByText('Your first call arrived').waitFor()
    // Asked again, it waits for another one.
    await connect.getByRole('button', { name: 'Try it' }).click()
    await status.getByText(/^Waiting for a call/).waitFor()
    await stage.call('demo-chat', PEOPLE.caller.key)
    await status.getByText('Your first call arrived').waitFor()
    await page.getByRole('region', { name: 'Left', exact: true }).getByText('$10.00').waitFor()
    const models = page.getByRole('table', { name: 'Models you may call' })
    const row = models.getByRole('row', { name: /^demo-chat / })
    expect(await row.innerText()).toMatch(/\$0\.50\s+\$2\.00/)
    await page.close()
  })

  test('the overview of an account without quota names whom to ask for it', async () => {
    await stage.api('POST', '/api/user/', { username: 'poor', password: 'poor password', role: 1, quota: 0 })
    const page = await stage.open(undefined, '/login')
    await page.getByRole('textbox', { name: 'Username' }).fill('poor')
    await page.getByRole('textbox', { name: 'Password' }).fill('poor password')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page
      .getByRole('region', { name: 'Left', exact: true })
      .getByText('There is no quota left on your account. Ask an administrator.')
      .waitFor()
    await page.close()
  })

  test("an administrator's overview shows 30 days of everyone's spending, the month's projection, errors, p95 and budgets", async () => {
    stage.upstream.script('scripted', { kind: 'status', status: 500 })
    expect(await stage.call('scripted', PEOPLE.caller.key)).toBeGreaterThanOrEqual(500)
    await stage.call('demo-chat', PEOPLE.caller.key)
    type Sums = { readonly totals: { readonly requests: number; readonly failed: number } }
    const sums = async () => (await stage.api<Sums>('GET', '/api/usage')).totals
    await expect.poll(async () => (await sums()).failed).toBe(1)
    await stage.api('PUT', '/api/user/', { id: 1, budget: 500_000, budget_period: 'month' })
    const { requests, failed } = await sums()
    const page = await stage.open('root', '/', { isAlone: true })
    // The first days of a month are too few for a projection.
    const day = Number(new Intl.DateTimeFormat('en', { day: 'numeric', timeZone: 'Europe/Berlin' }).format())
    if (day <= 2) {
      await page.clock.setFixedTime(Date.now() + 3 * 86_400_000)
      await page.reload()
    }
    const spend = page.getByRole('region', { name: 'Spend' })
    await spend.getByText(/^at this pace \$\d/).waitFor()
    await spend.getByText(`${Math.round((failed / (requests + failed)) * 100)}%`, { exact: true }).waitFor()
    await spend.getByText(/^\d[\d.,]* (?:ms|s)$/).waitFor()
    await page
      .getByRole('region', { name: 'Budgets' })
      .getByRole('meter', { name: 'Budget of root' })
      .waitFor()
    await spend.getByRole('figure', { name: 'Last 30 days' }).getByRole('listitem').nth(29).waitFor()
    for (const label of ['This month', 'Errors', '95% answered within'])
      await spend.getByText(label).waitFor()
    expect(await spend.getByText('Left on your account').count()).toBe(0)
    await page.getByRole('region', { name: 'Your account' }).getByText('Left on your account').waitFor()
    await page.close()
  })

  test.each([
    ['wide', { width: 1280, height: 800 }],
    ['narrow', { width: 375, height: 740 }],
  ] as const)('notifications cover no primary button of a %s page', async (_, viewport) => {
    const page = await stage.open('root', '/keys', { viewport })
    const row = page.getByRole('row', { name: /first/ })
    await row.getByRole('button', { name: 'Disable' }).click()
    const undo = page.getByRole('button', { name: 'Undo' })
    await undo.waitFor()
    await page.waitForTimeout(500)
    expect(await coveredButtons(page)).toEqual([])
    for (const [path, heading] of [
      ['/playground', 'Playground'],
      ['/settings', 'Settings'],
      ['/models', 'Models'],
    ] as const) {
      await page.evaluate((to) => history.pushState({}, '', to), path)
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
      await page.waitForTimeout(300)
      expect(await undo.isVisible()).toBe(true)
      expect(await coveredButtons(page)).toEqual([])
    }
    await undo.click()
    await page.close()
  })
})

/** The names of primary buttons that a message overlaps. */
function coveredButtons(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const notes = [...document.querySelectorAll('.mantine-Notification-root')].map((one) =>
      one.getBoundingClientRect(),
    )
    return [...document.querySelectorAll<HTMLElement>('main [data-variant="filled"]')]
      .filter((button) => {
        const { left, right, top, bottom } = button.getBoundingClientRect()
        return notes.some(
          (note) => note.left < right && note.right > left && note.top < bottom && note.bottom > top,
        )
      })
      .map((button) => button.innerText)
  })
}
