import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../../../test/fixtures/behaviour.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('users in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })
  const idOf = async (name: string): Promise<number> => {
    const { items } = await stage.api<{ items: { id: number }[] }>('GET', `/api/user/search?keyword=${name}`)
    return items[0]?.id ?? 0
  }

  test('an administrator sets a password, makes a key, and deletes a user after a question with the name', async () => {
    const page = await stage.open('admin', `/users/${await idOf(PEOPLE.member.username)}`)
    await page.getByRole('button', { name: 'Set password' }).click()
    const dialog = page.getByRole('dialog', { name: 'Set password' })
    await dialog.getByLabel('New password').fill('another password')
    await dialog.getByRole('button', { name: 'Set password' }).click()
    await page.getByRole('status').filter({ hasText: 'Password of' }).waitFor()
    const credentials = { username: PEOPLE.member.username, password: 'another password' }
    await stage.api('POST', '/api/user/login', credentials)

    await page.getByRole('button', { name: 'Create key' }).click()
    const made = page.getByRole('dialog', { name: 'Create key' })
    await made.getByRole('textbox', { name: 'Name of the key' }).fill('for ann')
    await made.getByRole('button', { name: 'Create key' }).click()
    const shown = made.getByRole('textbox', { name: 'API key' })
    expect(await shown.inputValue()).toMatch(/^sk-\w{4}…\w{4}$/)
    await made.getByRole('button', { name: 'Show key' }).click()
    const key = await shown.inputValue()
    expect(key).toMatch(/^sk-\w{40,}$/)
    stage.upstream.script('scripted', { kind: 'whole', usage: usageText(100, 50) })
    expect(await stage.call('scripted', key)).toBe(200)
    await made.getByRole('button', { name: 'Done' }).click()
    await made.waitFor({ state: 'detached' })
    expect(await page.content()).not.toContain(key)

    await page.getByRole('tab', { name: 'Usage' }).click()
    for (const [name, text] of [
      ['Spend by model', 'scripted'],
      ['Spend by key', 'for ann'],
    ] as const) {
      const region = page.getByRole('region', { name })
      await region.getByText(text).first().waitFor()
      const link = region.getByRole('link', { name: 'Show in Usage' })
      expect(await link.getAttribute('href')).toContain(`user=${PEOPLE.member.username}`)
    }
    await page.getByRole('tab', { name: 'Profile' }).click()
    await page.getByRole('region', { name: 'Identities' }).waitFor()

    await page.goto('/users')
    const row = page.getByRole('row', { name: new RegExp(PEOPLE.member.username) })
    const active = row.locator('[data-label="Last active"] time')
    expect(Date.now() - Date.parse((await active.getAttribute('datetime')) ?? '')).toBeLessThan(5 * 60_000)
    await row.getByRole('link').click()
    await page.getByRole('textbox', { name: 'Remark' }).fill('not saved')
    await page.getByRole('button', { name: 'Delete user' }).click()
    const question = page.getByRole('dialog', { name: 'Delete user' })
    await question.getByText(`“${PEOPLE.member.username}”`).waitFor()
    await question.getByRole('button', { name: 'Delete user' }).click()
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
    expect(await idOf(PEOPLE.member.username)).toBe(0)
    expect(await stage.call('scripted', key)).toBe(401)
    await page.close()
  })
})
