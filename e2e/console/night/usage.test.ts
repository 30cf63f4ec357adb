import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../../../test/fixtures/behaviour.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

/** USD that a call of the model `scripted` costs. */
const COST = 0.0012

/** A day in a time zone, as `2026-11-24`, this many days from that time. */
function dayIn(timeZone: string, offset: number, at = Date.now()): string {
  return new Intl.DateTimeFormat('en-CA', { timeZone }).format(at + offset * 86_400_000)
}

interface Totals {
  readonly totals: { readonly requests: number; readonly quota: number }
}

describe.skipIf(withoutBrowser())('the usage page', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    stage.upstream.script('scripted', { kind: 'whole', usage: usageText(1000, 100) })
    stage.upstream.script('first', { kind: 'whole', usage: usageText(1000, 100) })
    for (const [model, key] of [
      ['scripted', PEOPLE.root.key],
      ['scripted', PEOPLE.root.key],
      ['shaky', PEOPLE.caller.key],
    ] as const)
      await stage.call(model, key)
  })
  afterAll(async () => {
    await stage?.close()
  })

  async function open(search = ''): Promise<Page> {
    const sums = (): Promise<Totals> => stage.api<Totals>('GET', '/api/usage?by=none')
    await expect.poll(async () => (await sums()).totals.requests).toBe(3)
    const page = await stage.open('root', `/usage${search}`)
    await page.getByRole('table', { name: 'Breakdown' }).waitFor()
    return page
  }

  function foot(page: Page): ReturnType<Page['locator']> {
    return page.getByRole('table', { name: 'Breakdown' }).locator('tfoot')
  }

  test('the figures and tables of the usage page are the sums of the calls', async () => {
    const page = await open('?period=today')
    const totals = await page.getByRole('group', { name: 'Totals' }).innerText()
    expect(totals).toContain(`$${3 * COST}`)
    expect(totals).toMatch(/Calls\s+3/)
    const { quota } = await stage.api<{ quota: number }>('GET', '/api/log/stat')
    expect(quota / 500_000).toBeCloseTo(3 * COST, 10)
    for (const name of ['Spend', 'Calls', 'Tokens', 'Latency', 'Errors']) {
      const figure = page.getByRole('figure', { name })
      await figure.getByRole('button', { name: 'Show as table' }).click()
      if (name !== 'Errors') await figure.getByRole('table', { name }).waitFor()
    }
    const spend = await page.getByRole('table', { name: 'Spend' }).locator('tbody').innerText()
    expect(spend.match(/\$0\.0012|\$0\.0024/g)?.toSorted()).toEqual(['$0.0012', '$0.0024'])
    const calls = await page.getByRole('table', { name: 'Calls' }).locator('tbody').innerText()
    expect(calls.split(/\s+/)).toEqual(expect.arrayContaining(['1', '2']))
    await page.close()
  })

  test('usage is grouped by key, user, channel or group, and the address keeps the choice', async () => {
    const page = await open()
    for (const [grouping, names] of [
      ['Key', ['root / first', 'cal / own']],
      ['User', ['root', 'cal']],
      ['Channel', ['scripted', 'first']],
      ['Group', ['default']],
    ] as const) {
      await page.getByRole('combobox', { name: 'Group by' }).click()
      await page.getByRole('option', { name: grouping }).click()
      const table = page.getByRole('table', { name: 'Breakdown' })
      await table.getByRole('columnheader', { name: grouping }).waitFor()
      for (const name of names) await table.getByRole('button', { name, exact: true }).waitFor()
      expect(await foot(page).innerText()).toContain(`$${3 * COST}`)
    }
    await page.getByRole('combobox', { name: 'Group by' }).click()
    await page.getByRole('option', { name: 'User' }).click()
    await page
      .getByRole('table', { name: 'Breakdown' })
      .getByRole('button', { name: 'cal', exact: true })
      .click()
    await foot(page)
      .filter({ hasText: `$${COST}` })
      .waitFor()
    expect(new URL(page.url()).searchParams.get('user')).toBe('cal')
    // What the user called: a table by user would have one row.
    const table = page.getByRole('table', { name: 'Breakdown' })
    await table.getByRole('button', { name: 'shaky', exact: true }).waitFor()
    await page.reload()
    await foot(page)
      .filter({ hasText: `$${COST}` })
      .waitFor()
    await page.goBack()
    await foot(page)
      .filter({ hasText: `$${3 * COST}` })
      .waitFor()
    await page.close()
  })

  test('usage is divided into days of the chosen time zone, which the page names', async () => {
    const page = await stage.open('root', '/', { timezoneId: 'Asia/Shanghai' })
    const asked = page.waitForRequest(/\/api\/usage\?/)
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Usage' }).click()
    expect(new URL((await asked).url()).searchParams.get('tz')).toBe('Asia/Shanghai')
    await page.getByText('Times in Asia/Shanghai').waitFor()
    await page.close()
  })

  test('the CSV file of the usage page has the shown rows and a total of them, both with the same sum', async () => {
    const page = await open('?model=scripted')
    await foot(page)
      .filter({ hasText: `$${2 * COST}` })
      .waitFor()
    const href = await page.getByRole('link', { name: 'Download CSV' }).getAttribute('href')
    const [head = '', ...rows] = (await (await page.request.get(href ?? '')).text()).trim().split(/\r?\n/)
    const [start = -1, quota = -1] = ['start', 'quota'].map((name) => head.split(',').indexOf(name))
    const cells = rows.map((row) => row.split(','))
    for (const isTotal of [false, true]) {
      const found = cells.filter((one) => (one[start] === 'total') === isTotal)
      const sum = found.reduce((total, one) => total + Number(one[quota]), 0)
      expect(sum / 500_000).toBeCloseTo(2 * COST, 10)
    }
    await page.close()
  })

  test('each interval of a usage chart links to the log of that time', async () => {
    const page = await open('?period=7d&model=scripted')
    const figure = page.getByRole('figure', { name: 'Calls' })
    await figure.getByRole('button', { name: 'Show as table' }).click()
    const href = await figure.getByRole('link').last().getAttribute('href')
    expect(new URL(href ?? '', page.url()).searchParams.get('model')).toBe('scripted')
    await figure.getByRole('link').last().click()
    await page
      .getByRole('status', { name: 'Totals of these calls' })
      .getByText(/^2 calls/)
      .waitFor()
    const at = new URL(page.url())
    expect(at.pathname + at.search).toBe(href)
    expect(at.searchParams.get('period')).toBe('custom')
    await page.close()
  })

  test.each([
    ['Yesterday', 'yesterday', -1, 0],
    ['Last month', 'last-month', undefined, undefined],
    ['Chosen days', 'custom', -3, -1],
  ] as const)(
    'the period %s is the same time in usage and in the log, in the zone of the account',
    async (name, value, first, end) => {
      const zone = { timezoneId: 'Pacific/Auckland' }
      const page = await stage.open('root', '/usage', zone)
      await page.getByRole('combobox', { name: 'Period' }).click()
      await page.getByRole('option', { name, exact: true }).click()
      if (value === 'custom') {
        await page.waitForURL(/period=custom/)
        const before = await page.evaluate(() => history.length)
        // As the field is while a year is typed.
        for (const day of ['0002-11-01', '0020-11-01', '0202-11-01', dayIn(zone.timezoneId, -3)])
          await page.getByLabel('From', { exact: true }).fill(day)
        await page.waitForURL(new RegExp(`from=${dayIn(zone.timezoneId, -3)}`))
        expect(await page.evaluate(() => history.length)).toBe(before + 1)
        await page.getByLabel('To', { exact: true }).fill(dayIn(zone.timezoneId, -2))
      }
      await expect.poll(() => new URL(page.url()).searchParams.get('period')).toBe(value)
      const { search } = new URL(page.url())
      const range = async (path: string, api: RegExp, names: readonly string[]) => {
        const asked = page.waitForRequest(api)
        await page.goto(`${path}${search}`)
        const { searchParams } = new URL((await asked).url())
        return names.map((one) => Number(searchParams.get(one)))
      }
      const ofUsage = await range('/usage', /\/api\/usage\?/, ['from', 'to'])
      const ofLog = await range('/logs', /\/api\/log\/\?/, ['start_timestamp', 'end_timestamp'])
      // `end_timestamp` is included, `to` is not.
      expect([ofLog[0], (ofLog[1] ?? 0) + 1]).toEqual(ofUsage)
      const days = ofUsage.map((at) => dayIn(zone.timezoneId, 0, at * 1000))
      if (first === undefined) expect(days.map((day) => day.slice(-2))).toEqual(['01', '01'])
      else expect(days).toEqual([first, end].map((offset) => dayIn(zone.timezoneId, offset)))
      await page.close()
    },
  )

  test('a filter of the log suggests values of the period that contain the typed text, and accepts several values', async () => {
    await open().then((page) => page.close())
    const page = await stage.open('root', '/logs')
    const sums = page.getByRole('status', { name: 'Totals of these calls' })
    const model = page.getByRole('combobox', { name: 'Model' })
    await model.fill('SCRI')
    await page.getByRole('option', { name: 'scripted' }).click()
    await sums.getByText(/^2 calls/).waitFor()
    await model.fill('sha')
    await page.getByRole('option', { name: 'shaky' }).click()
    await sums.getByText(/^3 calls/).waitFor()
    expect(new URL(page.url()).searchParams.get('model')).toBe('scripted,shaky')
    await page.reload()
    await sums.getByText(/^3 calls/).waitFor()
    const key = page.getByRole('combobox', { name: 'Key' })
    await key.fill('cal')
    await page.getByRole('option', { name: 'cal / own' }).click()
    await sums.getByText(/^1 call\b/).waitFor()
    await page.keyboard.press('Escape')
    const filter = (name: string): string | null => new URL(page.url()).searchParams.get(name)
    expect(filter('key')).not.toBeNull()
    // A row opens wherever it is clicked.
    const row = page.getByRole('table', { name: 'Calls' }).locator('tbody tr')
    const details = page.getByRole('dialog', { name: 'Call details' })
    for (const label of ['Model', 'Channel', 'Cost']) {
      await row.locator(`td[data-label="${label}"]`).click()
      await details.waitFor()
      await page.keyboard.press('Escape')
      await details.waitFor({ state: 'detached' })
    }
    await page.goto('/logs')
    for (const [label, typed, option, name] of [
      ['User', 'CA', 'cal', 'user'],
      ['Channel', 'irs', 'first', 'channel'],
    ] as const) {
      await page.getByRole('combobox', { name: label }).fill(typed)
      await page.getByRole('option', { name: option, exact: true }).click()
      await sums.getByText(/^1 call\b/).waitFor()
      await page.keyboard.press('Escape')
      expect(filter(name)).toBe(option)
    }
    await page.close()
  })
})
