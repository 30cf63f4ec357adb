import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

interface Made {
  readonly id: number
  readonly key: string
}
const NEW = { name: 'found by its end', expired_time: -1, remain_quota: 0, unlimited_quota: true }

describe.skipIf(withoutBrowser())('keys of all in the console', () => {
  let stage: ConsoleStage
  let made: Made
  let owner = 0
  beforeAll(async () => {
    stage = await startConsoleStage()
    const { items } = await stage.api<{ items: { id: number }[] }>(
      'GET',
      `/api/user/search?keyword=${PEOPLE.member.username}`,
    )
    owner = items[0]?.id ?? 0
    made = await stage.api<Made>('POST', `/api/user/${owner}/tokens`, NEW)
  })
  afterAll(async () => {
    await stage?.close()
  })
  const present = () =>
    stage.api<Readonly<Record<string, unknown>>>('GET', `/api/user/${owner}/tokens/${made.id}`)

  test('the page of a key has its own calls alone, also beside a key of the same name, and links keep names with commas', async () => {
    const username = 'smith, john'
    const credentials = { username, password: 'password of smith', quota: 5_000_000 }
    const { id: user } = await stage.api<{ id: number }>('POST', '/api/user/', credentials)
    const [twin, unused] = [NEW, NEW].map((one) =>
      stage.api<Made>('POST', `/api/user/${user}/tokens`, { ...one, name: 'billing, nightly' }),
    )
    const { id, key } = (await twin) ?? made
    expect(await stage.call('demo-chat', key)).toBe(200)
    const page = await stage.open('root', `/users/${user}/keys/${(await unused)?.id}`)
    await page.getByText('No calls yet').waitFor()
    const calls = page.getByRole('table', { name: 'Calls' })
    for (const path of [`/users/${user}/keys/${id}`, `/users/${user}?tab=calls`]) {
      await page.goto(path)
      await page.getByRole('link', { name: 'All calls' }).click()
      await page.getByRole('heading', { level: 1, name: 'Logs' }).waitFor()
      await expect.poll(() => calls.getByRole('row').count()).toBe(2)
    }
    await page.goto(`/users/${user}?tab=usage`)
    await page.getByRole('link', { name: 'In usage' }).first().click()
    await page.waitForURL(/usage/)
    await page
      .getByRole('button', { name: username })
      .or(page.getByText(username, { exact: true }))
      .waitFor()
    await page.close()
  })

  test('an administrator finds a key by its last four characters, sets its budget alone, replaces and deletes it', async () => {
    const page = await stage.open('admin', '/user-keys')
    await page.getByRole('searchbox', { name: 'Last four characters' }).fill(made.key.slice(-4))
    const rows = page.getByRole('row', { name: /found by its end/ })
    await expect.poll(() => page.getByRole('row').count()).toBe(2)
    await rows.getByRole('link', { name: NEW.name }).click()
    await page.getByRole('heading', { level: 1, name: NEW.name }).waitFor()
    await page.getByRole('tab', { name: 'Settings' }).click()
    expect(await page.getByRole('tab', { name: 'Snippets' }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Reveal key' }).count()).toBe(0)
    await page.getByRole('textbox', { name: 'Budget' }).fill('5')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await expect.poll(async () => (await present())['budget']).toBe(2_500_000)
    // Only the budget is the operator's now.
    expect(await present()).not.toHaveProperty('operator_limits')

    await page.getByRole('button', { name: 'New key' }).click()
    const dialog = page.getByRole('dialog', { name: 'New key' })
    await dialog.getByRole('button', { name: 'New key' }).click()
    await dialog.getByRole('button', { name: 'Show key' }).click()
    const fresh = await dialog.getByRole('textbox', { name: 'API key' }).inputValue()
    expect(fresh).not.toBe(made.key)
    expect(await stage.call('scripted', made.key)).toBe(401)
    await dialog.getByRole('button', { name: 'Done' }).click()

    await page.getByRole('button', { name: 'Disable' }).click()
    await expect.poll(async () => (await present())['status']).toBe(2)
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { level: 1, name: 'Keys of all' }).waitFor()
    await page.getByText('No key has all of this.').or(page.getByRole('table')).first().waitFor()
    await page.close()
  })
})
