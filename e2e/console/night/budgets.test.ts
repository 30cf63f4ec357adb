import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../../../test/fixtures/behaviour.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

/** Quota units in a dollar. */
const DOLLAR = 500_000
/** What a call of the scripted model costs here, in quota units: 0.1 M tokens at $1 and $2 a million. */
const TENTH_OF_A_DOLLAR = usageText(50_000, 25_000)

type Fields = Record<string, unknown>

describe.skipIf(withoutBrowser())('budgets in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true })
  const choose = async (page: Page, name: string, option: string): Promise<void> => {
    await page.getByRole('combobox', { name, exact: true }).click()
    await page.getByRole('option', { name: option, exact: true }).click()
  }
  const user = (id: number) => stage.api<Fields>('GET', `/api/user/${id}`)
  async function spend(key: string = PEOPLE.caller.key): Promise<number> {
    stage.upstream.script('scripted', { kind: 'whole', usage: TENTH_OF_A_DOLLAR })
    return stage.call('scripted', key)
  }
  /** Changes the key of the caller, as the caller. */
  async function setOwnKey(fields: object): Promise<void> {
    const { items } = await stage.api<{ items: Fields[] }>('GET', `/api/user/${PEOPLE.caller.id}/tokens`)
    const answer = await fetch(`${stage.gateway.url}/api/token/`, {
      method: 'PUT',
      headers: {
        authorization: PEOPLE.caller.accessToken,
        'gateway-user': String(PEOPLE.caller.id),
        'content-type': 'application/json',
      },
      body: JSON.stringify({ id: items[0]?.['id'], ...fields }),
    })
    expect(await answer.json()).toMatchObject({ success: true })
  }
  const option = (key: string, value: object) =>
    stage.api('PUT', '/api/option/', { key, value: JSON.stringify(value) })

  test("a user's budget, in money, and rate limits can be set when the user is added, and in the profile", async () => {
    const page = await stage.open('root', '/users?new=1')
    await field(page, 'Username').fill('dora')
    await field(page, 'Password').fill('a password of dora')
    await field(page, 'Budget').fill('20')
    await choose(page, 'Budget period', 'Week')
    await field(page, 'Requests per window').fill('60')
    await choose(page, 'Window', '1 hour')
    await page.getByRole('button', { name: 'Create user' }).click()
    await page.getByRole('status').filter({ hasText: 'created' }).waitFor()
    const { items } = await stage.api<{ items: Fields[] }>('GET', '/api/user/search?keyword=dora')
    expect(items[0]).toMatchObject({
      budget: 20 * DOLLAR,
      budget_period: 'week',
      rate_limit_requests: 60,
      rate_limit_window: 3600,
    })

    await page.goto(`/users/${String(items[0]?.['id'])}`)
    await field(page, 'Budget').fill('12.50')
    await choose(page, 'Budget period', 'Month')
    await field(page, 'Tokens per window').fill('1000')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor()
    expect(await user(Number(items[0]?.['id']))).toMatchObject({
      budget: 12.5 * DOLLAR,
      budget_period: 'month',
      rate_limit_requests: 60,
      rate_limit_tokens: 1000,
    })
    await page.close()
  })

  test('budget meters and the limit that applies first look the same to a member and to an administrator', async () => {
    await stage.api('PUT', '/api/user/', { id: PEOPLE.caller.id, budget: 2 * DOLLAR, budget_period: 'month' })
    await option('GroupRatio', { default: 1, sales: 1 })
    await option('GroupBudget', { sales: { budget: DOLLAR, budget_period: 'month' } })
    const channel = {
      name: 'sold',
      type: 1,
      key: 'k',
      base_url: stage.upstream.baseUrl('scripted'),
      models: 'scripted',
      group: 'sales',
    }
    await stage.api('POST', '/api/channel/', { mode: 'single', channel })
    await stage.api('PUT', '/api/user/', { id: PEOPLE.caller.id, group: 'sales' })
    await setOwnKey({ budget: 5 * DOLLAR, budget_period: 'month' })
    expect(await spend()).toBe(200)
    const resets = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + 1, 1))
    const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' }).format(resets)
    const check = async (page: Page): Promise<void> => {
      const own = page.getByRole('meter', { name: 'Budget of cal' }).first()
      await own.getByText(`$0.10 of $2.00, resets ${day}`).waitFor()
      expect(await own.getAttribute('aria-valuenow')).toBe('5')
      const group = page.getByRole('meter', { name: 'Budget of sales' }).first()
      await group.getByText(`$0.10 of $1.00, resets ${day}`).waitFor()
      expect(await group.getAttribute('aria-valuenow')).toBe('10')
      await page.getByText('by the budget of the group sales').first().waitFor()
    }
    const checkKey = async (page: Page): Promise<void> => {
      const meter = page.getByRole('meter', { name: 'Budget of own' }).first()
      await meter.getByText(`$0.10 of $5.00, resets ${day}`).waitFor()
      expect(await meter.getAttribute('aria-valuenow')).toBe('2')
    }
    const member = await stage.open('caller', '/')
    await check(member)
    await checkKey(member)
    await member.getByText('$0.90', { exact: true }).waitFor()
    await member.goto('/keys')
    await check(member)
    await checkKey(member)
    await member.getByRole('row', { name: /own.*\$0\.90/ }).waitFor()
    await member.getByRole('link', { name: 'own', exact: true }).click()
    await member.getByRole('heading', { name: 'own' }).waitFor()
    await check(member)
    await checkKey(member)
    await member.close()

    await option('GroupBudget', { sales: { budget: 1, budget_period: 'month' } })
    await expect.poll(() => spend()).toBe(403)
    const refused = await stage.open('root', '/logs?status=refused')
    const table = refused.getByRole('table', { name: 'Refused calls' })
    await expect
      .poll(async () => {
        await refused.reload()
        await table.waitFor()
        return table.getByText('Refused: budget').count()
      })
      .toBeGreaterThan(0)
    await table.getByText('Refused: budget').first().click()
    const way = refused.getByRole('link', { name: 'Open the group' })
    expect(await way.getAttribute('href')).toContain('/groups?group=sales')
    await refused.close()
    await option('GroupBudget', { sales: { budget: DOLLAR, budget_period: 'month' } })

    const root = await stage.open('root', '/users')
    await root
      .getByRole('row', { name: /cal/ })
      .getByRole('meter', { name: 'Budget of cal' })
      .getByText(`$0.10 of $2.00, resets ${day}`)
      .waitFor()
    await root.getByRole('row', { name: /cal.*\$0\.90.*by the budget of the group sales/ }).waitFor()
    await root.goto(`/users/${PEOPLE.caller.id}`)
    await check(root)
    await root.getByRole('tab', { name: 'Keys' }).click()
    await checkKey(root)
    await stage.api('PUT', '/api/user/', { id: PEOPLE.caller.id, budget: DOLLAR / 20 })
    await root.goto(`/users/${PEOPLE.caller.id}`)
    const full = root.getByRole('meter', { name: 'Budget of cal' })
    await full.getByText(`$0.10 of $0.05, resets ${day}, used up`).waitFor()
    expect(await full.getAttribute('aria-valuenow')).toBe('100')
    await root.close()
    await stage.api('PUT', '/api/user/', { id: PEOPLE.caller.id, group: 'default' })
    await setOwnKey({ budget: 0, budget_period: '' })
  })

  test.each([
    {
      username: 'pat',
      budget_period: 'month',
      named: 'the day',
      word: 'on',
      options: { day: 'numeric', month: 'short' },
    },
    {
      username: 'quinn',
      budget_period: 'day',
      named: 'the time of today',
      word: 'at',
      options: { hour: '2-digit', minute: '2-digit' },
    },
  ] as const)(
    'the meter of a budget by $budget_period that will run out before its reset names $named',
    async ({ username, budget_period, word, options }) => {
      await stage.api('POST', '/api/user/', {
        username,
        password: `a password of ${username}`,
        role: 1,
        quota: 10 * DOLLAR,
        budget: DOLLAR,
        budget_period,
      })
      const { items } = await stage.api<{ items: Fields[] }>('GET', `/api/user/search?keyword=${username}`)
      const id = Number(items[0]?.['id'])
      const { key } = await stage.api<{ key: string }>('POST', `/api/user/${id}/tokens`, {
        name: 'paced',
        expired_time: -1,
        remain_quota: 0,
        unlimited_quota: true,
      })
      for (let call = 0; call < 8; call += 1) expect(await spend(key)).toBe(200)
      const now = new Date()
      const [start = 0, reset = 0] = [0, 1].map((periods) =>
        budget_period === 'month'
          ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + periods, 1)
          : Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + periods),
      )
      const page = await stage.open('root', '/account', { isAlone: true })
      // At half of the period, $0.80 of $1.00 are spent: it lasts for five eighths of the period.
      await page.clock.setFixedTime((start + reset) / 2)
      await page.goto(`/users/${id}`)
      const end = new Date(start + (reset - start) * (5 / 8))
      const named = new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'Europe/Berlin' })
        .format(end)
        // The console has three letters for each month.
        .replace('Sept', 'Sep')
      const meter = page.getByRole('meter', { name: `Budget of ${username}` })
      await meter.getByText(new RegExp(`, used up ${word} ${named}$`)).waitFor()
      // A twentieth of the period is not over.
      await page.clock.setFixedTime(start + (reset - start) / 21)
      await page.reload()
      await meter.waitFor()
      expect(await meter.getByText('used up').count()).toBe(0)
      await page.close()
    },
  )

  test('the meter of a budget shows the amount held by running calls in addition to the spent amount', async () => {
    await stage.api('PUT', '/api/user/', { id: PEOPLE.caller.id, budget: 2 * DOLLAR, budget_period: 'month' })
    expect(await spend()).toBe(200)
    const before = await user(PEOPLE.caller.id)
    const answer = Promise.withResolvers<void>()
    stage.upstream.script('scripted', { kind: 'whole', usage: TENTH_OF_A_DOLLAR, after: answer.promise })
    const call = stage.call('scripted', PEOPLE.caller.key)
    await expect.poll(async () => (await user(PEOPLE.caller.id))['budget_held']).toBeGreaterThan(0)
    const held = Number((await user(PEOPLE.caller.id))['budget_held'])
    const dollars = (units: unknown): number => Number(units) / DOLLAR
    /** What the meter says, as numbers: spent, limit, and held if that is shown. */
    const shown = async (page: Page): Promise<{ spent: number; limit: number; held: number | undefined }> => {
      const text = await page.getByRole('meter', { name: 'Budget of cal' }).first().innerText()
      const [, spent, limit, , amount] =
        /^\$([\d.]+) of \$([\d.]+), resets [^,]+(, \$([\d.]+) held)?/.exec(text) ?? []
      return {
        spent: Number(spent),
        limit: Number(limit),
        held: amount === undefined ? undefined : Number(amount),
      }
    }
    const root = await stage.open('root', `/users/${PEOPLE.caller.id}`)
    const member = await stage.open('caller', '/')
    for (const page of [root, member]) {
      await page.getByRole('meter', { name: 'Budget of cal' }).first().getByText(' held').waitFor()
      const meter = await shown(page)
      expect(meter).toMatchObject({ limit: 2, spent: expect.closeTo(dollars(before['budget_used']), 2) })
      // Small amounts are shown with more digits than two.
      expect(meter.held).toBeCloseTo(dollars(held), 3)
    }
    answer.resolve()
    expect(await call).toBe(200)
    for (const page of [root, member]) {
      await page.reload()
      await page.getByRole('meter', { name: 'Budget of cal' }).first().waitFor()
      expect(await shown(page)).toEqual({
        limit: 2,
        spent: expect.closeTo(dollars(before['budget_used']) + 0.1, 2),
        held: undefined,
      })
      await page.close()
    }
  })

  test('a key with a used-up budget is marked; Raise budget shows the old and new amount, after which calls work', async () => {
    await stage.api('PUT', '/api/user/', {
      id: PEOPLE.caller.id,
      budget: DOLLAR / 4,
      budget_period: 'month',
    })
    while ((await spend()) === 200);
    const member = await stage.open('caller', '/keys')
    await member.getByRole('row', { name: /own/ }).getByText('Budget used up').waitFor()
    expect(await member.getByRole('row', { name: /own/ }).getByText('Works').count()).toBe(0)

    const root = await stage.open('root', `/users/${PEOPLE.caller.id}`)
    await root.getByRole('button', { name: 'Raise budget' }).click()
    const dialog = root.getByRole('dialog', { name: 'Raise budget' })
    await field(root, 'Amount').fill('5')
    await dialog.getByText('$0.25 → $5.25').waitFor()
    await dialog.getByRole('button', { name: 'Raise budget' }).click()
    await root.getByRole('meter', { name: 'Budget of cal' }).getByText('of $5.25').waitFor()
    expect(await spend()).toBe(200)
    await member.reload()
    await member.getByRole('row', { name: /own/ }).getByText('Works').waitFor()
    await member.close()

    await root.goto('/audit')
    const row = root.getByRole('row', { name: /cal/ }).filter({ hasText: /2625000|5\.25/ })
    await row
      .filter({ hasText: /125000|0\.25/ })
      .first()
      .waitFor()
    await root.close()
  })

  test('a budget is raised after another field was changed, and shown anew after the budget itself was', async () => {
    const { id } = PEOPLE.caller
    await stage.api('PUT', '/api/user/', { id, budget: DOLLAR, budget_period: 'month' })
    const page = await stage.open('root', `/users/${id}`)
    const raise = page.getByRole('button', { name: 'Raise budget' })
    const dialog = page.getByRole('dialog', { name: 'Raise budget' })
    const add = dialog.getByRole('button', { name: 'Raise budget' })
    await raise.click()
    await stage.api('PUT', '/api/user/', { id, remark: 'changed meanwhile' })
    await field(page, 'Amount').fill('2')
    await add.click()
    await expect.poll(() => user(id)).toMatchObject({ budget: 3 * DOLLAR, remark: 'changed meanwhile' })
    await dialog.waitFor({ state: 'detached' })

    await page.getByRole('meter', { name: 'Budget of cal' }).getByText('of $3.00').waitFor()
    await raise.click()
    await stage.api('PUT', '/api/user/', { id, budget: 10 * DOLLAR })
    await field(page, 'Amount').fill('2')
    await add.click()
    await dialog.getByText('Somebody else has changed this meanwhile.').waitFor()
    await dialog.getByText('$10.00 → $12.00').waitFor()
    await add.click()
    await expect.poll(() => user(id)).toMatchObject({ budget: 12 * DOLLAR })
    await page.close()
  })
})
