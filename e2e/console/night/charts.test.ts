import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { errorBody, usageText } from '../../../test/fixtures/behaviour.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

interface NewKey {
  readonly id: number
  readonly key: string
}

/** Makes two keys of the same name, calls of three keys, failed calls and refused ones. */
async function fill(stage: ConsoleStage): Promise<void> {
  const twin = async (): Promise<NewKey> =>
    stage.api<NewKey>('POST', `/api/user/${PEOPLE.caller.id}/tokens`, {
      name: 'twin',
      expired_time: -1,
      remain_quota: 0,
      unlimited_quota: true,
    })
  const [one, two] = [await twin(), await twin()]
  stage.upstream.script('scripted', { kind: 'whole', usage: usageText(1000, 100) })
  for (const key of [one.key, two.key, two.key]) expect(await stage.call('scripted', key)).toBe(200)
  expect(await stage.call('scripted')).toBe(200)
  stage.upstream.script('scripted', { kind: 'status', status: 400, body: errorBody('no') })
  expect(await stage.call('scripted')).toBe(400)
  stage.upstream.script('scripted', { kind: 'status', status: 404, body: errorBody('no') })
  for (let n = 0; n < 2; n += 1) await stage.call('scripted', PEOPLE.caller.key)
  for (let n = 0; n < 3; n += 1) expect(await stage.call('no-such-model')).toBe(503)
  const sums = async () =>
    (await stage.api<{ totals: { requests: number; failed: number } }>('GET', '/api/usage')).totals
  const soon = { timeout: 60_000, interval: 100 }
  await vi.waitFor(async () => expect(await sums()).toMatchObject({ requests: 4, failed: 3 }), soon)
  const refused = () => stage.api<{ total: number }>('GET', '/api/usage/refusals')
  await vi.waitFor(async () => expect(await refused()).toMatchObject({ total: 3 }), soon)
}

describe.skipIf(withoutBrowser())('charts of usage', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    await fill(stage)
  })
  afterAll(async () => {
    await stage?.close()
  })

  async function open(search = ''): Promise<Page> {
    const page = await stage.open('root', `/usage${search}`)
    await page.getByRole('table', { name: 'Breakdown' }).waitFor()
    return page
  }

  /** The sums of the columns of a chart's table, by their headings. */
  async function sumsOf(page: Page, name: string): Promise<Record<string, number>> {
    const table = page.getByRole('figure', { name }).getByRole('table', { name })
    const heads = await table.getByRole('columnheader').allInnerTexts()
    const rows = await table.locator('tbody tr').all()
    const sums: Record<string, number> = {}
    for (const row of rows)
      for (const [index, text] of (await row.getByRole('cell').allInnerTexts()).entries())
        if (index > 0) sums[heads[index] ?? ''] = (sums[heads[index] ?? ''] ?? 0) + Number(text)
    return sums
  }

  test('the errors chart and its table can show errors by cause, refusals by error code, and errors by user', async () => {
    const page = await open('?period=today')
    const figure = page.getByRole('figure', { name: 'Errors' })
    const by = figure.getByRole('combobox', { name: 'Errors by' })
    await figure.getByRole('button', { name: 'Show as table' }).click()
    expect(await sumsOf(page, 'Errors')).toEqual({ scripted: 3 })
    await by.click()
    await page.getByRole('option', { name: 'Cause' }).click()
    await figure.getByRole('columnheader', { name: 'Unknown model' }).waitFor()
    expect(await sumsOf(page, 'Errors')).toEqual({ 'Unknown model': 2, 'Refused by provider': 1 })
    expect(new URL(page.url()).searchParams.get('errors')).toBe('cause')
    await by.click()
    await page.getByRole('option', { name: 'Refusals' }).click()
    await figure.getByRole('columnheader', { name: 'model_not_found' }).waitFor()
    expect(await sumsOf(page, 'Errors')).toEqual({ model_not_found: 3 })
    await by.click()
    await page.getByRole('option', { name: 'User' }).click()
    await figure.getByRole('columnheader', { name: 'cal' }).waitFor()
    expect(await sumsOf(page, 'Errors')).toEqual({ cal: 2, root: 1 })
    await page.close()
  })

  test('the usage chart by key labels each series with user and key, and tells apart keys of the same name', async () => {
    const page = await open('?period=today&by=key')
    const figure = page.getByRole('figure', { name: 'Spend' })
    const names = (await figure.getByRole('listitem').allInnerTexts()).map((text) => text.trim())
    expect(names.toSorted()).toEqual([
      'cal / own',
      expect.stringMatching(/^cal \/ twin \(….{4}\)$/),
      expect.stringMatching(/^cal \/ twin \(….{4}\)$/),
      'root / first',
    ])
    expect(new Set(names).size).toBe(4)
    await page.close()
    const own = await stage.open('caller', '/usage?period=today&by=key')
    await own
      .getByRole('figure', { name: 'Spend' })
      .getByText(/^twin \(….{4}\)$/)
      .first()
      .waitFor()
    await own.close()
  })

  test('chart axes have ticks at round amounts, and tooltips have the sum and the shares of a bar', async () => {
    const page = await open('?period=today&by=user')
    const figure = page.getByRole('figure', { name: 'Spend' })
    const ticks = figure.locator('.recharts-cartesian-axis-tick-value').filter({ hasText: /^\$/ })
    await ticks.first().waitFor()
    const amounts = (await ticks.allTextContents()).map((text) => Number(text.replace('$', '')))
    expect(amounts[0]).toBe(0)
    const step = (amounts[1] ?? 0) / 10 ** Math.floor(Math.log10(amounts[1] ?? 1))
    expect([1, 2, 2.5, 5]).toContain(Number(step.toPrecision(6)))
    expect(amounts).toEqual(amounts.map((_, index) => Number(((amounts[1] ?? 0) * index).toPrecision(6))))
    const bar = figure.locator('.recharts-bar-rectangle rect').first()
    const box = await bar.boundingBox()
    await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + 2)
    const tooltip = figure.locator('.recharts-tooltip-wrapper table')
    await tooltip.waitFor()
    expect(await tooltip.locator('tbody tr').allInnerTexts()).toEqual([
      expect.stringMatching(/cal\s+\$0\.0036\s+75%/),
      expect.stringMatching(/root\s+\$0\.0012\s+25%/),
    ])
    expect(await tooltip.locator('tfoot').innerText()).toMatch(/Sum\s+\$0\.0048/)
    const over = await tooltip.boundingBox()
    expect(
      (over?.x ?? 0) >= (box?.x ?? 0) + (box?.width ?? 0) ||
        (over?.x ?? 0) + (over?.width ?? 0) <= (box?.x ?? 0),
    ).toBe(true)
    expect(await page.getByRole('group', { name: 'Totals' }).innerText()).not.toMatch(/%/)
    await page.mouse.click((box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + 2)
    await page.waitForURL(/\/logs\?.*period=custom/)
    await page.close()
  })

  test('each series of a chart has its own label and its own combination of colour and dashed line', async () => {
    const page = await open('?period=today&by=user')
    const marks = (name: string) =>
      page
        .getByRole('figure', { name })
        .getByRole('listitem')
        .evaluateAll((items) =>
          items.map((item) => {
            const mark = item.querySelector('i')
            return {
              label: item.textContent.trim(),
              colour: mark === null ? '' : getComputedStyle(mark).borderTopColor,
              isDashed: mark?.dataset['dashed'] === 'true',
            }
          }),
        )
    const latencies = [false, true, false, true]
    await expect.poll(async () => (await marks('Latency')).map(({ isDashed }) => isDashed)).toEqual(latencies)
    for (const name of ['Spend', 'Calls', 'Tokens', 'Latency', 'Errors']) {
      const series = await marks(name)
      expect(series.map(({ label }) => label)).not.toContain('')
      expect(new Set(series.map(({ label }) => label)).size).toBe(series.length)
      expect(new Set(series.map(({ colour, isDashed }) => `${colour} ${isDashed}`)).size).toBe(series.length)
    }
    const lines = page.getByRole('figure', { name: 'Latency' }).locator('.recharts-line-curve')
    const dashed = (): Promise<boolean[]> =>
      lines.evaluateAll((all) => all.map((one) => getComputedStyle(one).strokeDasharray === '4px, 3px'))
    await expect.poll(dashed).toEqual(latencies)
    await page.close()
  })

  test('a renamed channel has one line in the usage chart for its calls before and after, and the log shows its new name', async () => {
    stage.upstream.script('scripted', { kind: 'whole', usage: usageText(1000, 100) })
    const address = stage.upstream.baseUrl('scripted')
    const channel = {
      name: 'before',
      type: 1,
      key: 'sk-x',
      models: 'test-rename',
      base_url: address,
      group: 'default',
    }
    await stage.api('PUT', '/api/models/price', { model: 'test-rename', price: { input: 1, output: 2 } })
    await stage.api('POST', '/api/channel/', { mode: 'single', channel })
    expect(await stage.call('test-rename')).toBe(200)
    const page = await stage.open('root', '/channels?q=before')
    await page.getByRole('link', { name: 'before' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('after')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor()
    expect(await stage.call('test-rename')).toBe(200)
    await page.goto('/logs?model=test-rename')
    const calls = page.getByRole('table', { name: 'Calls' })
    await expect.poll(() => calls.getByRole('cell', { name: 'after', exact: true }).count()).toBe(2)
    await page.goto('/usage?period=today&by=channel&model=test-rename')
    const table = page.getByRole('table', { name: 'Breakdown' })
    await table.getByRole('button', { name: 'after', exact: true }).waitFor()
    expect(await table.locator('tbody tr').count()).toBe(1)
    await page.close()
  })

  test('the suggested name of a new key contains the day of creation, and a number in addition if that name is taken', async () => {
    const page = await stage.open('member', '/keys?new=1')
    const name = page.getByRole('textbox', { name: 'Name' })
    const suggested = /^Key of \d{1,2} [A-Z][a-z]{2}$/
    await expect.poll(() => name.inputValue()).toMatch(suggested)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('dialog', { name: 'Key created' }).getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Create key' }).click()
    await expect.poll(() => name.inputValue()).toMatch(/^Key of \d{1,2} [A-Z][a-z]{2} \(2\)$/)
    await page.close()
  })
})
