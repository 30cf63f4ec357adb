import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from './chromium.ts'
import { type ConsoleStage, startConsoleStage } from './console-stage.ts'
import { atNight } from '../../test/runner/tier.ts'

const run = promisify(execFile)

describe.skipIf(withoutBrowser())('API keys', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  async function create(page: Page, name: string): Promise<void> {
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill(name)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('dialog', { name: 'Key created' }).waitFor()
  }

  test('the form of a key shows limits that an operator set, and its holder cannot loosen them', async () => {
    const { items } = await stage.api<{ items: { id: number; username: string }[] }>(
      'GET',
      '/api/user/?page_size=100',
    )
    const ann = items.find(({ username }) => username === 'ann')?.id
    const { id } = await stage.api<{ id: number }>('POST', `/api/user/${ann}/tokens`, {
      name: 'limited one',
      expired_time: -1,
      remain_quota: 500_000,
      unlimited_quota: false,
      model_limits_enabled: true,
      model_limits: 'demo-chat',
    })
    const page = await stage.open('member', '/keys')
    await page
      .getByRole('row', { name: /limited one/ })
      .getByText('Limited', { exact: true })
      .waitFor()
    await page.goto(`/keys/${id}`)
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByText(/^An operator gave limits of this key\./).waitFor()
    expect(await page.getByRole('switch', { name: 'Unlimited' }).isDisabled()).toBe(true)
    const limit = page.getByRole('textbox', { name: 'Spending limit' })
    await limit.fill('2')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText(/remain_quota: an operator set this to 500000/).waitFor()
    await limit.fill('0.5')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor()
    await page.close()
  })

  test('a key has a budget and a rate limit, which can be set at its creation, changed, removed and seen', async () => {
    const keyNamed = async (name: string) => {
      const { items } = await stage.api<{ items: Record<string, string | number>[] }>(
        'GET',
        '/api/token/?page_size=100',
      )
      return items.find((one) => one['name'] === name) ?? {}
    }
    const { quota_per_unit: factor } = await stage.api<{ quota_per_unit: number }>('GET', '/api/status')
    const page = await stage.open('root', '/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    const field = (name: string) => page.getByRole('textbox', { name, exact: true })
    await field('Name').fill('budgeted')
    await page.getByRole('button', { name: 'Models and more limits' }).click()
    await field('Budget').fill('2.50')
    await field('Calls at once').fill('0.5')
    await field('Requests per window').fill('30')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('Enter a whole number from 0 to 1,000,000,000,000.').waitFor()
    await field('Calls at once').fill('4')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'Done' }).click()
    const given = await keyNamed('budgeted')
    expect(given).toMatchObject({
      budget: 2.5 * factor,
      budget_period: 'month',
      rate_limit_requests: 30,
      rate_limit_tokens: 0,
      rate_limit_parallel: 4,
    })

    await page.goto(`/keys/${given['id']}`)
    await page.getByRole('meter', { name: 'Budget of budgeted' }).waitFor()
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByRole('combobox', { name: 'Budget period' }).click()
    await page.getByRole('option', { name: 'Day', exact: true }).click()
    await field('Requests per window').fill('')
    await page.getByRole('combobox', { name: 'Window' }).click()
    await page.getByRole('option', { name: '5 minutes' }).click()
    const save = async () => {
      await page.getByRole('button', { name: 'Save changes' }).click()
      await page.getByRole('status').filter({ hasText: 'Saved' }).last().waitFor()
    }
    await save()
    expect(await keyNamed('budgeted')).toMatchObject({
      budget: 2.5 * factor,
      budget_period: 'day',
      rate_limit_requests: 0,
      rate_limit_parallel: 4,
      rate_limit_window: 300,
    })
    await page.getByRole('combobox', { name: 'Budget period' }).click()
    await page.getByRole('option', { name: 'None', exact: true }).click()
    await save()
    await expect.poll(() => keyNamed('budgeted')).toMatchObject({ budget: 0, budget_period: '' })
    await page.close()
  })

  atNight(
    'in the list of keys, the focus returns to the button that opened a dialog, or after a deletion to the next row',
    async () => {
      for (const name of ['focus-a', 'focus-b', 'focus-c'])
        await stage.api('POST', '/api/token/', {
          name,
          remain_quota: 0,
          unlimited_quota: true,
          expired_time: -1,
        })
      const page = await stage.open('root', '/keys?q=focus-')
      const focusedRow = () => page.evaluate(() => document.activeElement?.closest('tr')?.textContent ?? '')
      const deleting = page.getByRole('row', { name: /focus-b/ }).getByRole('button', { name: 'Delete' })
      const dialog = page.getByRole('dialog', { name: 'Delete key' })
      await deleting.click()
      await dialog.waitFor()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      await expect.poll(() => deleting.evaluate((button) => button === document.activeElement)).toBe(true)
      const names = await page.getByRole('row', { name: /focus-/ }).allInnerTexts()
      const next = names.findIndex((text) => text.includes('focus-b')) === 1 ? names[2] : undefined
      await page.keyboard.press('Enter')
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await dialog.waitFor({ state: 'detached' })
      await expect.poll(focusedRow).toMatch(/focus-[ac]/)
      expect(next).toContain((await focusedRow()).match(/focus-[ac]/)?.[0])
      await page.close()
    },
  )

  async function statusWith(key: string): Promise<number> {
    const { status } = await fetch(`${stage.gateway.url}/v1/models`, {
      headers: { authorization: `Bearer ${key}` },
    })
    return status
  }

  test('a new key is masked until it is revealed, can be copied and used, and is hidden after a click on Done', async () => {
    const page = await stage.open('root', '/keys', { permissions: ['clipboard-read', 'clipboard-write'] })
    await create(page, 'new one')
    const field = page.getByRole('textbox', { name: 'API key' })
    expect(await field.inputValue()).toContain('…')
    await page.getByRole('button', { name: 'Show key' }).click()
    const key = await field.inputValue()
    expect(key).toMatch(/^sk-\w{40,}$/)
    expect(await statusWith(key)).toBe(200)

    await page.getByRole('button', { name: 'Copy key' }).click()
    await page.getByRole('status').filter({ hasText: 'Copied' }).waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key)

    for (const tab of ['curl', 'OpenAI', 'Anthropic', 'Claude Code', 'opencode', 'codex']) {
      await page.getByRole('tab', { name: tab }).click()
      const snippet = await page.getByRole('tabpanel').locator('code').innerText()
      expect(snippet).toContain(stage.gateway.url)
      expect(snippet).toMatch(/demo-/)
      expect(snippet).not.toContain(key)
    }
    await page.getByRole('tab', { name: 'curl' }).click()
    await page.getByRole('button', { name: 'Insert my key' }).click()
    const curl = await page.getByRole('tabpanel').locator('code').innerText()
    const { stdout } = await run('sh', ['-c', curl.replace('curl ', 'curl --silent ')])
    expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion' })

    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const left = await page.evaluate(() =>
      [
        document.documentElement.outerHTML,
        location.href,
        ...Object.values(localStorage),
        ...Object.values(sessionStorage),
      ].join(),
    )
    expect(left).not.toContain(key)
    expect(page.url()).not.toContain(key)
    await page.close()
  })

  test('a stored key can be revealed, and is hidden again after 30 s', async () => {
    const page = await stage.open('root', '/keys', { isAlone: true })
    await page.clock.install()
    const row = page.getByRole('row', { name: /first/ })
    await row.getByRole('button', { name: 'Reveal key' }).click()
    await row.getByText(/^sk-r{48}$/).waitFor()
    await page.clock.fastForward(31_000)
    await row.getByText(/^sk-r{48}$/).waitFor({ state: 'detached' })
    await page.close()
  })

  test('an invalid field of the key form shows its error, and the other fields keep their values', async () => {
    const page = await stage.open('root', '/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create key' })
    await dialog.getByRole('textbox', { name: 'Name' }).fill('')
    await dialog.getByRole('textbox', { name: 'Spending limit' }).fill('-1')
    const more = dialog.getByRole('button', { name: 'Models and more limits' })
    await more.click()
    await dialog.getByRole('textbox', { name: 'Allowed addresses' }).fill('10.0.0.1\n300.1.1.1')
    await more.click()
    await expect.poll(() => dialog.getByRole('textbox').count()).toBe(2)
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await dialog.locator('[aria-invalid="true"]').first().waitFor()
    for (const [field, text] of [
      ['Name', 'Fill this in.'],
      ['Spending limit', 'Enter an amount from 0 on'],
      ['Allowed addresses', '300.1.1.1 is neither an address nor a range of addresses'],
    ] as const) {
      const input = dialog.getByRole('textbox', { name: field })
      expect(await input.getAttribute('aria-invalid')).toBe('true')
      const described = (await input.getAttribute('aria-describedby')) ?? ''
      const said = await Promise.all(
        described.split(/\s+/).map((id) => page.locator(`[id="${id}"]`).innerText()),
      )
      expect(said.join(' ')).toContain(text)
    }
    expect(await dialog.getByRole('textbox', { name: 'Allowed addresses' }).inputValue()).toContain(
      '10.0.0.1',
    )
    await page.close()
  })

  test("a spending limit in money is saved as quota at the server's quota per unit", async () => {
    const page = await stage.open('root', '/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('limited')
    // Unlimited, until a limit is typed.
    const unlimited = page.getByRole('switch', { name: 'Unlimited' })
    expect(await unlimited.isChecked()).toBe(true)
    await page.getByRole('textbox', { name: 'Spending limit' }).fill('2.50')
    expect(await unlimited.isChecked()).toBe(false)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'Done' }).click()
    const { items } = await stage.api<{ items: { name: string; remain_quota: number }[] }>(
      'GET',
      '/api/token/?page_size=100',
    )
    const { quota_per_unit: factor } = await stage.api<{ quota_per_unit: number }>('GET', '/api/status')
    expect(items.find(({ name }) => name === 'limited')?.remain_quota).toBe(2.5 * factor)
    await page
      .getByRole('row', { name: /limited/ })
      .getByText('$2.50')
      .waitFor()
    await page.close()
  })

  test('disabling, enabling and deleting a key apply to the next call, without a reload', async () => {
    const page = await stage.open('root', '/keys')
    await create(page, 'short-lived')
    await page.getByRole('button', { name: 'Show key' }).click()
    const key = await page.getByRole('textbox', { name: 'API key' }).inputValue()
    await page.getByRole('button', { name: 'Done' }).click()
    const row = page.getByRole('row', { name: /short-lived/ })
    await row.getByRole('button', { name: 'Disable' }).click()
    await row.getByText('Disabled').waitFor()
    expect(await statusWith(key)).toBe(401)
    await row.getByRole('button', { name: 'Enable' }).click()
    await row.getByText('Works').waitFor()
    expect(await statusWith(key)).toBe(200)
    await row.getByRole('button', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete key' })
    expect(await dialog.innerText()).toContain('short-lived')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await row.waitFor({ state: 'detached' })
    expect(await statusWith(key)).toBe(401)
    await page.close()
  })

  atNight('Back and Forward of the browser restore the text of a filter', async () => {
    const page = await stage.open('root', '/keys')
    const filter = page.getByRole('searchbox', { name: 'Filter keys' })
    await filter.fill('nothing like this')
    await page.waitForURL(/nothing/)
    await page.goBack()
    await expect.poll(() => filter.inputValue()).toBe('')
    await page.getByRole('link', { name: 'first' }).waitFor()
    await page.goForward()
    await expect.poll(() => filter.inputValue()).toBe('nothing like this')
    await page.close()
  })

  atNight(
    'twenty letters typed fast into the filter of keys cause no 429, and the list shows the result for the whole text',
    async () => {
      const page = await stage.open('root', '/keys')
      const refused: number[] = []
      page.on('response', (response) => {
        if (response.status() === 429) refused.push(response.status())
      })
      await page.getByRole('searchbox', { name: 'Filter keys' }).pressSequentially('firstfirstfirstfirst')
      await page.getByText('No key has this in its name.').waitFor()
      await page.getByRole('searchbox', { name: 'Filter keys' }).fill('firs')
      await page.getByRole('link', { name: 'first' }).waitFor()
      expect(refused).toEqual([])
      await page.close()
    },
  )

  atNight('two changes of one key are asked about in the words of its form, in Chinese, too', async () => {
    const name = 'twice changed'
    await stage.api('POST', '/api/token/', { name, unlimited_quota: true, remain_quota: 0, expired_time: -1 })
    const { items } = await stage.api<{ items: { id: number; name: string }[] }>('GET', '/api/token/')
    const id = items.find((key) => key.name === name)?.id
    const page = await stage.open('root', `/keys/${id}?tab=settings`, { locale: 'zh-CN' })
    await page.getByRole('combobox', { name: '过期时间' }).click()
    await page.getByRole('option', { name: '7 天后' }).click()
    await page.getByRole('textbox', { name: '消费上限' }).fill('7')
    const theirs = { name, unlimited_quota: false, remain_quota: 1_500_000, expired_time: 1_900_000_000 }
    await stage.api('PUT', '/api/token/', { id, ...theirs })
    await page.getByRole('button', { name: '保存更改' }).click()
    const dialog = page.getByRole('dialog', { name: '已被他人修改' })
    const cells = async (): Promise<string[][]> =>
      (await dialog.getByRole('row').allInnerTexts()).map((text) => text.split(/\s*\t\s*/))
    await expect.poll(cells).toEqual([
      ['字段', '你的', '对方的'],
      ['消费上限', '7', '3'],
      ['过期时间', '7 天后', '2030/03/17 18:46:40'],
    ])
    await page.close()
  })
})
