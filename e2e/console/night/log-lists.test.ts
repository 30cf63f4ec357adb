import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { usageText } from '../../../test/fixtures/behaviour.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

/** The status of a call of a model without a price. */
const UNPRICED = 400

/** Makes a call, and four that are refused: by the model, its price, the budget and the key. */
async function fill(stage: ConsoleStage): Promise<void> {
  await stage.api('POST', '/api/channel/', {
    name: 'priceless',
    type: 1,
    base_url: stage.upstream.baseUrl('scripted'),
    key: 'k',
    models: 'priceless',
  })
  stage.upstream.script('scripted', { kind: 'whole', usage: usageText(1000, 100) })
  expect(await stage.call('scripted', PEOPLE.caller.key)).toBe(200)
  expect(await stage.call('no-such-model', PEOPLE.caller.key)).toBe(503)
  expect(await stage.call('priceless', PEOPLE.caller.key)).toBe(UNPRICED)
  await stage.api('PUT', '/api/user/', { id: PEOPLE.caller.id, budget: 1, budget_period: 'month' })
  const soon = { timeout: 60_000, interval: 100 }
  await vi.waitFor(async () => expect(await stage.call('scripted', PEOPLE.caller.key)).toBe(403), soon)
  await stage.api('PUT', '/api/user/', { id: PEOPLE.caller.id, budget: 0, budget_period: '' })
  expect(await stage.call('scripted', `sk-${'z'.repeat(48)}`)).toBe(401)
  const refused = () => stage.api<{ total: number }>('GET', '/api/log/refused')
  await vi.waitFor(async () => expect((await refused()).total).toBeGreaterThanOrEqual(4), soon)
  // Suggestions of filters come from the sums, which are written later.
  const counted = () => stage.api<{ total: number }>('GET', '/api/usage/refusals')
  await vi.waitFor(async () => expect((await counted()).total).toBeGreaterThanOrEqual(4), soon)
}

describe.skipIf(withoutBrowser())('lists of calls', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    await fill(stage)
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('the filter by session shows a session as it is named, also with a comma', async () => {
    const page = await stage.open('root', `/logs?session=${encodeURIComponent('a%2Cb')}`)
    const field = page.getByRole('textbox', { name: 'Session' })
    await expect.poll(() => field.inputValue()).toBe('a,b')
    await field.fill('c,d%')
    await expect.poll(() => new URL(page.url()).searchParams.get('session')).toBe('c%2Cd%25')
    expect(await field.inputValue()).toBe('c,d%')
    await page.close()
  })

  test('refused calls are listed with the limit or setting that refused them, and their details link to it', async () => {
    for (const [person, links] of [
      [
        'root',
        {
          'Refused: budget': ['Open the user', `/users/${PEOPLE.caller.id}`],
          'Refused: model without a price': ['Open the prices of models', '&edit='],
        },
      ],
      [
        'caller',
        {
          'Refused: budget': undefined,
          'Refused: model without a price': undefined,
          'Refused: no such model': ['Open the key', '/keys/'],
        },
      ],
    ] as const) {
      const page = await stage.open(person, '/logs')
      await page.getByRole('table', { name: 'Calls' }).waitFor()
      await page.getByRole('combobox', { name: 'Status' }).click()
      await page.getByRole('option', { name: 'Refused' }).click()
      const table = page.getByRole('table', { name: 'Refused calls' })
      await table.waitFor()
      expect(new URL(page.url()).searchParams.get('status')).toBe('refused')
      expect(await table.getByText('Refused: unknown key').count()).toBe(person === 'root' ? 1 : 0)
      for (const [word, link] of Object.entries(links)) {
        await table.getByRole('row').filter({ hasText: word }).first().getByText(word).click()
        const sheet = page.getByRole('dialog', { name: 'Call details' })
        await sheet.getByRole('heading', { name: 'Why' }).waitFor()
        if (link === undefined) await sheet.getByText('Ask an administrator.').waitFor()
        else expect(await sheet.getByRole('link', { name: link[0] }).getAttribute('href')).toContain(link[1])
        await page.keyboard.press('Escape')
        await sheet.waitFor({ state: 'hidden' })
      }
      await page.getByRole('combobox', { name: 'Refused for' }).fill('bud')
      await page.getByRole('option', { name: 'budget' }).click()
      await expect.poll(() => table.getByText('Refused: no such model').count()).toBe(0)
      await page.close()
    }
  })

  test('an empty log says that refused calls are left out where a filter cannot match them', async () => {
    const page = await stage.open('root', '/logs?channel=second')
    await page.getByText(/^No call matches these filters\. Calls that were refused .* left out/).waitFor()
    await page.goto('/logs?model=no-such-model')
    const table = page.getByRole('table', { name: 'Calls' })
    await table.getByText('no such model').first().waitFor()
    await page.close()
  })

  test('tables show times of day, with the date if it is not today, and relative times in the tooltip', async () => {
    const page = await stage.open('root', '/logs', { isAlone: true })
    const time = page.getByRole('table', { name: 'Calls' }).locator('time').first()
    expect(await time.innerText()).toMatch(/^\d\d:\d\d:\d\d$/)
    const csv = page.getByRole('link', { name: 'Download CSV' })
    expect(await csv.getAttribute('href')).toContain('tz=Europe%2FBerlin')
    expect(await time.getAttribute('title')).toMatch(
      /^(?:now|\d+ (?:min|sec)\. ago) · .*\d{4}.* Europe\/Berlin$/,
    )
    await page.clock.setFixedTime(Date.now() + 3 * 86_400_000)
    await page.reload()
    await page.goto('/logs?period=all')
    expect(await time.innerText()).toMatch(/^\d{1,2} [A-Z][a-z]{2}, \d\d:\d\d:\d\d$/)
    expect(await time.getAttribute('title')).toMatch(/^\d days ago · /)
    await page.close()
  })

  test('a click on a column heading sorts a list over all pages, and the address keeps the order', async () => {
    for (const name of ['beta', 'alpha', 'gamma'])
      await stage.api('POST', '/api/token/', {
        name,
        expired_time: -1,
        remain_quota: 0,
        unlimited_quota: true,
      })
    // Neither the order of time nor its reverse is one of costs.
    for (const output of [3000, 1000, 4000, 2000]) {
      stage.upstream.script('tired', { kind: 'whole', usage: usageText(1000, output) })
      expect(await stage.call('tired')).toBe(200)
    }
    for (const [path, table, heading, field, cell] of [
      ['/keys', 'API keys', 'Name', 'name', 'td:first-child a'],
      ['/users', 'Users', 'Name', 'username', 'td:first-child a'],
      ['/channels', 'Channels', 'Name', 'name', 'td:first-child a'],
      ['/logs', 'Calls', 'Cost', 'quota', 'td[data-label="Cost"]'],
    ] as const) {
      const page = await stage.open('root', path)
      const list = page.getByRole('table', { name: table })
      const head = list.getByRole('columnheader', { name: heading })
      const shown = (): Promise<string[]> => list.locator(`tbody ${cell}`).allInnerTexts()
      await head.getByRole('button').click()
      const first = path === '/logs' ? 'descending' : 'ascending'
      await expect.poll(() => head.getAttribute('aria-sort')).toBe(first)
      const at = new URL(page.url()).searchParams
      expect([at.get('sort'), at.get('order')], path).toEqual([field, path === '/logs' ? 'desc' : 'asc'])
      const sorted = async (): Promise<boolean> => {
        const texts = await shown()
        const inOrder = path === '/logs' ? texts.toSorted().toReversed() : texts.toSorted()
        return texts.length > 0 && texts.join() === inOrder.join()
      }
      await expect.poll(sorted).toBe(true)
      const before = await shown()
      await head.getByRole('button').click()
      await expect.poll(() => head.getAttribute('aria-sort')).not.toBe(first)
      await page.reload()
      await expect.poll(async () => (await shown()).join()).toBe(before.toReversed().join())
      await page.goBack()
      await expect.poll(async () => (await shown()).join()).toBe(before.join())
      await page.close()
    }
  })

  test('every page of a list is reached, one beyond the end leads to the last, and the playground offers all keys', async () => {
    const ofCaller = `/api/user/${PEOPLE.caller.id}/tokens`
    const { items } = await stage.api<{ items: { id: number }[] }>('GET', ofCaller)
    for (let key = 0; key < 100; key += 1)
      await stage.api('POST', ofCaller, {
        name: `bulk ${key}`,
        expired_time: -1,
        remain_quota: 0,
        unlimited_quota: true,
      })
    const page = await stage.open('root', `/users/${PEOPLE.caller.id}?tab=keys`)
    await page.getByText('Page 1 of 3').waitFor()
    const oldest = page.getByRole('row').filter({ hasText: 'own' })
    for (const path of [
      `/users/${PEOPLE.caller.id}?tab=keys&p=3`,
      `/users/${PEOPLE.caller.id}?tab=keys&p=9`,
    ]) {
      await page.goto(path)
      await oldest.waitFor()
      expect(new URL(page.url()).searchParams.get('p'), path).toBe('3')
    }
    await page.goto('/logs?p=99')
    await page.getByRole('table', { name: 'Calls' }).waitFor()
    expect(new URL(page.url()).searchParams.get('p')).toBe('1')
    await page.close()
    const playground = await stage.open('caller', `/playground?key=${items[0]?.id}`)
    await expect
      .poll(() => playground.getByRole('combobox', { name: 'Key', exact: true }).inputValue())
      .toBe('own')
    await playground.close()
  })

  test('the audit log names fields, values and the owners of keys in words, in Chinese too', async () => {
    const { items } = await stage.api<{ items: { id: number }[] }>(
      'GET',
      `/api/user/${PEOPLE.caller.id}/tokens`,
    )
    const id = items[0]?.id
    for (const status of [2, 1])
      await stage.api('PUT', `/api/user/${PEOPLE.caller.id}/tokens`, { id, status })
    for (const [locale, table, words] of [
      ['en-US', 'Changes', /Key of cal[\s\S]*Status:\s*Enabled\s*→\s*Disabled/],
      ['zh-CN', '更改', /cal 的密钥[\s\S]*状态：\s*已启用\s*→\s*已停用/],
    ] as const) {
      const page = await stage.open('root', '/audit?kind=key', { locale })
      const changes = page.getByRole('table', { name: table })
      await changes.waitFor()
      expect(await changes.innerText()).toMatch(words)
      expect(await changes.innerText()).not.toMatch(/user_id|remain_quota|status/)
      await page.close()
    }
  })

  test('on a phone the filters of the log are behind a button, and the first call is on the first screen', async () => {
    const page = await stage.open('root', '/logs', { viewport: { width: 375, height: 740 }, hasTouch: true })
    const row = page.getByRole('table', { name: 'Calls' }).locator('tbody tr').first()
    await row.waitFor()
    const { y = 0, height = 0 } = (await row.boundingBox()) ?? {}
    expect(y + height).toBeLessThanOrEqual(740)
    expect(y).toBeGreaterThan(0)
    const model = page.getByRole('combobox', { name: 'Model' })
    expect(await model.isVisible()).toBe(false)
    const button = page.getByRole('button', { name: 'Filters' })
    expect(await button.getAttribute('aria-expanded')).toBe('false')
    await button.click()
    await model.fill('scri')
    await page.getByRole('option', { name: 'scripted' }).click()
    await page
      .getByRole('status', { name: 'Totals of these calls' })
      .getByText(/^1 call\b/)
      .waitFor()
    await page.getByRole('button', { name: 'Filters (1)' }).click()
    expect(await model.isVisible()).toBe(false)
    await page.close()
    const wide = await stage.open('root', '/logs')
    await wide.getByRole('combobox', { name: 'Model' }).waitFor()
    expect(await wide.getByRole('button', { name: /^Filters/ }).count()).toBe(0)
    await wide.close()
  })

  test('the log of any status has each refused call once, among the settled ones of its pages', async () => {
    for (let call = 0; call < 56; call += 1) {
      if (call % 14 === 0) expect(await stage.call(`unknown-${call}`)).toBe(503)
      expect(await stage.call('demo-chat')).toBe(200)
    }
    const ofAll = () => stage.api<{ total: number }>('GET', '/api/log/refused?model_name=unknown-42')
    await vi.waitFor(async () => expect((await ofAll()).total).toBe(1), { timeout: 60_000, interval: 100 })
    const page = await stage.open('root', '/logs')
    const table = page.getByRole('table', { name: 'Calls' })
    const refusedOf = async (): Promise<string[]> =>
      (await table.getByRole('row').filter({ hasText: 'Refused' }).allInnerTexts()).flatMap(
        (text) => /unknown-\d+/.exec(text)?.[0] ?? [],
      )
    const pages: string[] = []
    for (const path of ['/logs', '/logs?p=2']) {
      await page.goto(path)
      await table.locator('tbody tr').first().waitFor()
      await page.waitForLoadState('networkidle')
      pages.push(...(await refusedOf()))
    }
    expect(pages).toEqual(['unknown-42', 'unknown-28', 'unknown-14', 'unknown-0'])
    await page.close()
  })
})
