import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('ways on from where there is nothing, or nothing was done', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  test.each([
    ['member', '/keys/9999', 'This key is no longer there, or not yours.', 'All keys', '/keys'],
    ['root', '/users/9999', 'This user is no longer there.', 'All users', '/users'],
    ['root', '/channels/9999', 'This channel is no longer there.', 'All channels', '/channels'],
    [
      'root',
      '/logs/01234567-89ab-7000-8000-000000000000',
      'This call is not in the log, or not yours.',
      'All calls',
      '/logs',
    ],
    ['member', '/users/1', 'This page is for administrators.', 'Go to the start page', '/'],
  ] as const)(
    'an empty page names the next step: for %s, %s shows "%s" with the link "%s"',
    async (person, path, text, label, to) => {
      const page = await stage.open(person, path)
      await page.getByText(text, { exact: true }).waitFor()
      await page.getByRole('link', { name: label, exact: true }).click()
      await expect.poll(() => new URL(page.url()).pathname).toBe(to)
      await page.close()
    },
  )

  test('empty lists have a button that creates a key, opens the playground or clears the filters', async () => {
    for (const [path, role, name] of [
      ['/keys', 'button', 'Create key'],
      ['/playground', 'link', 'Create key'],
      ['/logs', 'link', 'Open the playground'],
      ['/usage', 'link', 'Open the playground'],
      ['/keys?q=nowhere', 'button', 'Clear filters'],
    ] as const) {
      const page = await stage.open('member', path)
      await page.getByRole('main').getByRole(role, { name, exact: true }).first().waitFor()
      await page.close()
    }
  })

  test('a form that the gateway refused shows its message, with the request id folded away', async () => {
    const page = await stage.open('root', '/users?new=1')
    const dialog = page.getByRole('dialog', { name: 'Add user' })
    await dialog.getByRole('textbox', { name: 'Username' }).fill('ann')
    await dialog.getByRole('textbox', { name: 'Password' }).fill('a long password')
    await dialog.getByRole('button', { name: 'Create user' }).click()
    await page.route('**/api/user/', (route) =>
      route.fulfill({
        status: 409,
        headers: { 'x-request-id': 'id-of-this-request' },
        json: { success: false, code: 'invalid_request', message: 'the sentence of the gateway' },
      }),
    )
    await dialog.getByRole('textbox', { name: 'Username' }).fill('dora')
    await dialog.getByRole('button', { name: 'Create user' }).click()
    const alert = dialog.getByRole('alert')
    await alert.getByText('the sentence of the gateway').waitFor()
    expect(await alert.getByText('id-of-this-request').isVisible()).toBe(false)
    await alert.getByText('Details').click()
    expect(await alert.getByText('id-of-this-request').isVisible()).toBe(true)
    await page.close()
  })

  test('a form whose request got no response asks the user to check whether the change was saved', async () => {
    const page = await stage.open('root', '/users?new=1')
    const dialog = page.getByRole('dialog', { name: 'Add user' })
    await dialog.getByRole('textbox', { name: 'Username' }).fill('emil')
    await dialog.getByRole('textbox', { name: 'Password' }).fill('a long password')
    await page.route('**/api/user/', (route) => route.abort())
    await dialog.getByRole('button', { name: 'Create user' }).click()
    await dialog.getByText('No answer came. Look whether it was saved.').waitFor()
    expect(await dialog.getByText('Nothing has changed').count()).toBe(0)
    await page.close()
  })

  test('a read whose connection was closed is sent once more, a write is not', async () => {
    const page = await stage.open('root', '/account')
    await page.getByRole('heading', { level: 1 }).waitFor()
    let reads = 0
    // Playwright sends what it intercepts over connections of its own, so that only the first failure is simulated.
    await page.route('**/api/user/?*', (route) => {
      reads += 1
      return reads === 1 ? route.abort('connectionclosed') : route.fallback()
    })
    await page.goto('/users')
    await page.getByRole('link', { name: 'root', exact: true }).first().waitFor()
    expect(reads).toBeGreaterThanOrEqual(2)
    expect(await page.getByRole('alert').count()).toBe(0)
    let writes = 0
    await page.route('**/api/user/', (route) => {
      writes += 1
      return route.abort('connectionclosed')
    })
    await page.goto('/users?new=1')
    const dialog = page.getByRole('dialog', { name: 'Add user' })
    await dialog.getByRole('textbox', { name: 'Username' }).fill('olga')
    await dialog.getByRole('textbox', { name: 'Password' }).fill('a long password')
    await dialog.getByRole('button', { name: 'Create user' }).click()
    await dialog.getByText('No answer came. Look whether it was saved.').waitFor()
    expect(writes).toBe(1)
    await page.close()
  })

  test('two users who edit different fields of one key both succeed', async () => {
    const id = await keyOf(stage, 'edited twice')
    const open = async (): Promise<Page> => {
      const page = await stage.open('root', `/keys/${id}?tab=settings`)
      await page.getByRole('textbox', { name: 'Name' }).waitFor()
      return page
    }
    const [first, second] = [await open(), await open()]
    await first.getByRole('textbox', { name: 'Allowed addresses' }).fill('127.0.0.1')
    await first.getByRole('button', { name: 'Save changes' }).click()
    await expect.poll(() => read(stage, id)).toMatchObject({ allow_ips: '127.0.0.1' })
    await second.getByRole('textbox', { name: 'Name' }).fill('edited by two')
    await second.getByRole('button', { name: 'Save changes' }).click()
    await second.getByRole('heading', { level: 1, name: 'edited by two' }).waitFor()
    expect(await second.getByRole('dialog').count()).toBe(0)
    expect(await read(stage, id)).toMatchObject({ name: 'edited by two', allow_ips: '127.0.0.1' })
    await first.close()
    await second.close()
  })

  test('on the page of a call j and k open its neighbours in the list, Esc returns to the list, and user and key are links', async () => {
    for (const model of ['demo-chat', 'demo-reason', 'demo-claude']) expect(await stage.call(model)).toBe(200)
    const page = await stage.open('root', '/logs')
    const rows = page.getByRole('table', { name: 'Calls' }).locator('[data-row-link]')
    await rows.nth(2).waitFor()
    await rows.first().focus()
    await page.keyboard.press('Enter')
    const sheet = page.getByRole('dialog', { name: 'Call details' })
    await sheet.getByText('demo-claude').first().waitFor()
    await page.keyboard.press('j')
    await sheet.locator('strong', { hasText: /^demo-reason$/ }).waitFor()
    await sheet.getByRole('button', { name: 'Next call' }).click()
    await sheet.locator('strong', { hasText: /^demo-chat$/ }).waitFor()
    await page.keyboard.press('k')
    await sheet.locator('strong', { hasText: /^demo-reason$/ }).waitFor()
    expect(await sheet.getByRole('link', { name: 'root', exact: true }).getAttribute('href')).toBe('/users/1')
    expect(await sheet.getByRole('link', { name: 'first', exact: true }).getAttribute('href')).toMatch(
      /^\/keys\/\d+$/,
    )
    expect(
      await sheet
        .getByRole('link', { name: 'demo-reason-upstream' })
        .or(sheet.getByRole('link', { name: /upstream/ }))
        .first()
        .getAttribute('href'),
    ).toMatch(/^\/channels\/\d+$/)
    await page.keyboard.press('Escape')
    await sheet.waitFor({ state: 'detached' })
    await expect.poll(() => rows.nth(1).evaluate((row) => row === document.activeElement)).toBe(true)
    await page.close()
  })

  test('Esc gives the focus back to the row of a call that was opened by keyboard, by pointer or by its address', async () => {
    expect(await stage.call('demo-chat')).toBe(200)
    const page = await stage.open('root', '/logs')
    const first = page.getByRole('table', { name: 'Calls' }).locator('[data-row-link]').first()
    const sheet = page.getByRole('dialog', { name: 'Call details' })
    for (const open of [
      async () => {
        await first.focus()
        await page.keyboard.press('Enter')
      },
      () => first.click(),
      async () => page.goto(`/logs/${await first.getAttribute('data-row-link')}`),
    ]) {
      await open()
      await sheet.getByRole('heading', { name: 'Cost' }).waitFor()
      await page.keyboard.press('Escape')
      await sheet.waitFor({ state: 'detached' })
      await expect.poll(() => first.evaluate((row) => row === document.activeElement)).toBe(true)
    }
    await page.close()
  })

  test('the dialog that shows a newly created key has the focus on Copy key', async () => {
    const page = await stage.open('member', '/keys?new=1')
    const dialog = page.getByRole('dialog', { name: 'Create key' })
    await dialog.getByRole('textbox', { name: 'Name' }).fill('focused')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    const copy = page.getByRole('dialog', { name: 'Key created' }).getByRole('button', { name: 'Copy key' })
    await copy.waitFor()
    await expect.poll(() => copy.evaluate((button) => button === document.activeElement)).toBe(true)
    await page.close()
  })
})

async function keyOf(stage: ConsoleStage, name: string): Promise<number> {
  await stage.api('POST', '/api/token/', {
    name,
    unlimited_quota: true,
    remain_quota: 0,
    expired_time: -1,
  })
  const { items } = await stage.api<{ items: readonly { id: number; name: string }[] }>(
    'GET',
    '/api/token/?page_size=100',
  )
  return items.find((key) => key.name === name)!.id
}

function read(stage: ConsoleStage, id: number): Promise<object> {
  return stage.api<object>('GET', `/api/token/${id}`)
}
