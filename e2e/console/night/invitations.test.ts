import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

interface User {
  readonly id: number
  readonly username: string
  readonly quota: number
  readonly budget: number
  readonly unlimited_quota: boolean
}

describe.skipIf(withoutBrowser())('invitations and new users in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })
  const userNamed = async (name: string): Promise<User | undefined> => {
    const { items } = await stage.api<{ items: User[] }>('GET', `/api/user/search?keyword=${name}`)
    return items.find(({ username }) => username === name)
  }

  test('an administrator makes a link, with which a person creates an account and is signed in', async () => {
    const page = await stage.open('admin', '/users')
    await page.getByRole('button', { name: 'Invite' }).click()
    const dialog = page.getByRole('dialog', { name: 'Invite' })
    await dialog.getByRole('textbox', { name: 'Budget', exact: true }).fill('5')
    await dialog.getByRole('button', { name: 'Make link' }).click()
    const link = await dialog.getByRole('textbox', { name: 'Link of the invitation' }).inputValue()
    expect(link).toMatch(/^http:\/\/[^/]+\/invite#[\w-]{43}$/)
    await dialog.getByRole('row', { name: /default/ }).waitFor()

    const other = await page.context().browser()?.newContext()
    const invited = await other?.newPage()
    if (!invited) throw new Error('no page')
    await invited.goto(link)
    await invited.getByRole('heading', { level: 1, name: 'Join' }).waitFor()
    await invited.getByRole('textbox', { name: 'Username' }).fill('newcomer')
    await invited.getByRole('textbox', { name: 'Password' }).fill('a new password')
    await invited.getByRole('button', { name: 'Create account' }).click()
    await invited.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    expect(await userNamed('newcomer')).toMatchObject({ role: 1, budget: 2_500_000 })

    await invited.goto(link)
    await invited.getByRole('textbox', { name: 'Username' }).fill('another')
    await invited.getByRole('textbox', { name: 'Password' }).fill('a new password')
    await invited.getByRole('button', { name: 'Create account' }).click()
    await invited.getByText('this invitation cannot be accepted').waitFor()
    expect(await userNamed('another')).toBeUndefined()
    await other?.close()
    await page.close()
  })

  test('an administrator withdraws an invitation', async () => {
    await stage.api('POST', '/api/user/invite', {})
    const page = await stage.open('root', '/users?invite=1')
    await page.getByRole('button', { name: 'Withdraw' }).first().click()
    await expect.poll(async () => (await stage.api<unknown[]>('GET', '/api/user/invite')).length).toBe(0)
    await page.close()
  })

  test('a new user can be unlimited, with a generated password that opens the account', async () => {
    const page = await stage.open('root', '/users?new=1')
    const dialog = page.getByRole('dialog', { name: 'Add user' })
    await dialog.getByRole('textbox', { name: 'Username' }).fill('free')
    const field = dialog.getByRole('textbox', { name: 'Password' })
    const copy = dialog.getByRole('button', { name: 'Copy password' })
    await dialog.getByRole('button', { name: 'Generate password' }).click()
    await copy.waitFor()
    await field.fill('typed instead of it')
    expect(await copy.count()).toBe(0)
    await dialog.getByRole('button', { name: 'Generate password' }).click()
    const password = await field.inputValue()
    expect(password).toMatch(/^[A-HJ-NP-Za-km-z2-9]{20}$/)
    await dialog.getByRole('switch', { name: 'Unlimited' }).click()
    await dialog.getByRole('button', { name: 'Create user' }).click()
    await page.getByText('User “free” created').waitFor()
    const made = await userNamed('free')
    expect(made?.unlimited_quota).toBe(true)
    await stage.api('POST', '/api/user/login', { username: 'free', password })

    await page.goto(`/users/${made?.id}`)
    await page.getByRole('switch', { name: 'Unlimited' }).click()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await expect.poll(async () => (await userNamed('free'))?.unlimited_quota).toBe(false)
    await page.close()
  })
})
