import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('the command palette', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.api('POST', '/api/channel/', {
      name: 'azure-eu',
      type: 1,
      base_url: stage.upstream.baseUrl('azure'),
      key: 'k',
      models: 'gpt-4o-mini',
    })
    stage.upstream.script('azure', { kind: 'whole' })
  })
  afterAll(async () => {
    await stage?.close()
  })

  /** Types into the palette, and returns the option with that name. */
  async function typed(page: Page, text: string, name: RegExp | string) {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search pages and actions' }).fill(text)
    const option = page.getByRole('dialog', { name: 'Command palette' }).getByRole('option', { name })
    await option.waitFor()
    return option
  }

  test('the command palette finds keys, models, users, channels and calls, and opens the page of each', async () => {
    const page = await stage.open('root', '/usage')
    await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor()
    for (const [text, name, path] of [
      [PEOPLE.root.key.slice(-4), /^Key first/, /^\/keys\/\d+$/],
      ['firs', /^Key first/, /^\/keys\/\d+$/],
      ['gpt-4o-mi', 'Model gpt-4o-mini', /^\/models$/],
      ['ann', 'User ann', /^\/users\/\d+$/],
      ['azure-e', 'Channel azure-eu', /^\/channels\/\d+$/],
    ] as const) {
      // Pages and tasks have these words too.
      await (await typed(page, text, name)).click()
      await expect.poll(() => new URL(page.url()).pathname).toMatch(path)
    }
    await stage.call('demo-chat')
    const { items } = await stage.api<{ items: { id: string }[] }>('GET', '/api/log/')
    await typed(page, items[0]?.id ?? '', 'Call of demo-chat root')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/logs/${items[0]?.id}`)
    await page.close()
  })

  test('the command palette can disable and test a channel, edit a price, and show the spending of a user', async () => {
    const page = await stage.open('root', '/keys')
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
    const statusOf = async (): Promise<number | undefined> => {
      const { items } = await stage.api<{ items: { name: string; status: number }[] }>(
        'GET',
        '/api/channel/?page_size=100',
      )
      return items.find(({ name }) => name === 'azure-eu')?.status
    }
    await typed(page, 'disable azure', 'Disable channel azure-eu')
    await page.keyboard.press('Enter')
    await expect.poll(statusOf).toBe(2)
    await page.getByRole('button', { name: 'Undo' }).click()
    await expect.poll(statusOf).toBe(1)
    await typed(page, 'test azure', 'Test channel azure-eu')
    await page.keyboard.press('Enter')
    await page.getByText('Channel “azure-eu” answered').waitFor()
    expect(stage.upstream.received('azure')).toHaveLength(1)
    await typed(page, 'price gpt-4o-mi', 'Edit price of gpt-4o-mini')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Edit price' })
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    await typed(page, 'spend ann', 'Spend of ann')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).search).toBe('?user=ann')
    await typed(page, 'add user', 'Add user')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Add user' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Add user' }).waitFor({ state: 'detached' })
    await typed(page, 'create key', 'Create key')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Create key' }).waitFor()
    await page.close()
  })

  test('the command palette finds no commands that only administrators may use when a member searches', async () => {
    const page = await stage.open('caller', '/keys')
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
    await typed(page, 'create key', 'Create key')
    const search = page.getByRole('combobox', { name: 'Search pages and actions' })
    for (const text of [
      'disable azure',
      'test azure',
      'price gpt-4o-mi',
      'spend ann',
      'add user',
      'azure',
      'bea',
    ]) {
      await search.fill(text)
      await page.getByText('Nothing found.').waitFor()
      await page.waitForTimeout(400)
      expect(await page.getByRole('option').count(), text).toBe(0)
    }
    await page.close()
  })
})
