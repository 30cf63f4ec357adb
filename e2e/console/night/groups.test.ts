import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, readAgain, startConsoleStage } from '../console-stage.ts'

interface Group {
  readonly group: string
  readonly ratio: string
  readonly open: boolean
  readonly budget: number
}

describe.skipIf(withoutBrowser())('groups in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })
  const groupNamed = async (name: string): Promise<Group | undefined> =>
    (await stage.api<Group[]>('GET', '/api/group/all')).find(({ group }) => group === name)

  test('root adds a group, changes it and deletes it', async () => {
    const page = await stage.open('root', '/groups')
    await page.getByRole('button', { name: 'Add group' }).click()
    const adding = page.getByRole('dialog', { name: 'Add group' })
    await adding.getByRole('textbox', { name: 'Name' }).fill('lab')
    await adding.getByRole('textbox', { name: 'Ratio' }).fill('0.50')
    await adding.getByRole('textbox', { name: 'Budget', exact: true }).fill('5')
    await adding.getByRole('button', { name: 'Create group' }).click()
    await expect.poll(() => groupNamed('lab')).toMatchObject({ ratio: '0.5', open: false, budget: 2_500_000 })

    await page.getByRole('link', { name: 'lab' }).click()
    const dialog = page.getByRole('dialog', { name: 'lab' })
    await dialog.getByText('No user belongs to this group.').waitFor()
    await dialog.getByRole('checkbox', { name: 'Keys of any user may name this group' }).check()
    await dialog.getByRole('button', { name: 'Save changes' }).click()
    await expect.poll(() => groupNamed('lab')).toMatchObject({ ratio: '0.5', open: true, budget: 2_500_000 })

    await page.getByRole('link', { name: 'lab' }).click()
    await page.getByRole('dialog', { name: 'lab' }).getByRole('button', { name: 'Delete group' }).click()
    const question = page.getByRole('dialog', { name: 'Delete group' })
    await question.getByText('“lab”').waitFor()
    expect(await groupNamed('lab')).toBeDefined()
    await question.getByRole('button', { name: 'Delete group' }).click()
    await expect.poll(() => groupNamed('lab')).toBeUndefined()
    await page.close()
  })

  test("a change of a group keeps another administrator's changes, and asks about a field that both changed", async () => {
    await stage.api('POST', '/api/group/', { group: 'shared' })
    const page = await stage.open('root', '/groups?group=shared', { isAlone: true })
    const dialog = page.getByRole('dialog', { name: 'shared' })
    const opened = dialog.getByRole('checkbox', { name: 'Keys of any user may name this group' })
    await opened.check()
    const others = { ratio: '2', budget: 500_000, budget_period: 'day' }
    await stage.api('PUT', '/api/group/', { group: 'shared', ...others })
    await readAgain(page, '/api/group/all')
    await dialog.getByRole('button', { name: 'Save changes' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await groupNamed('shared')).toMatchObject({ ...others, open: true })

    await page.getByRole('link', { name: 'shared' }).click()
    await dialog.getByRole('textbox', { name: 'Ratio' }).fill('3')
    await stage.api('PUT', '/api/group/', { group: 'shared', ratio: '4' })
    await dialog.getByRole('button', { name: 'Save changes' }).click()
    const conflict = page.getByRole('dialog', { name: 'Changed meanwhile' })
    expect(await conflict.getByRole('row', { name: /Ratio/ }).innerText()).toMatch(/3\s+4/)
    await conflict.getByRole('button', { name: 'Overwrite' }).press('Escape')
    await conflict.waitFor({ state: 'detached' })
    await dialog.getByRole('button', { name: 'Save changes' }).click()
    await conflict.getByRole('button', { name: 'Overwrite' }).click()
    await expect.poll(() => groupNamed('shared')).toMatchObject({ ...others, ratio: '3', open: true })
    await page.close()
  })

  test('Back asks before it closes a changed dialog, which its own buttons close without', async () => {
    await stage.api('POST', '/api/group/', { group: 'half' })
    const page = await stage.open('root', '/groups')
    const dialog = page.getByRole('dialog', { name: 'half' })
    const question = page.getByRole('dialog', { name: 'Leave this form?' })
    const change = async (): Promise<void> => {
      await page.getByRole('link', { name: 'half' }).click()
      await dialog.getByRole('textbox', { name: 'Ratio' }).fill('3')
    }
    await change()
    await page.goBack()
    await question.getByRole('button', { name: 'Stay here' }).click()
    await question.waitFor({ state: 'detached' })
    await page.goBack()
    await question.press('Escape')
    await question.waitFor({ state: 'detached' })
    expect(await dialog.getByRole('textbox', { name: 'Ratio' }).inputValue()).toBe('3')
    await page.goBack()
    await question.getByRole('button', { name: 'Leave without saving' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(new URL(page.url()).search).toBe('')
    await change()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.close()
  })

  test('a group of gateway.yaml is locked', async () => {
    const page = await stage.open('root', '/groups?group=vip')
    const dialog = page.getByRole('dialog', { name: 'vip' })
    await dialog.getByText('gateway.yaml').waitFor()
    expect(await dialog.getByRole('textbox', { name: 'Budget', exact: true }).isDisabled()).toBe(true)
    expect(await dialog.getByRole('button', { name: /Save changes|Delete group/ }).count()).toBe(0)
    await page.close()
  })

  test('an administrator sees the members of a group, and cannot change it', async () => {
    const page = await stage.open('admin', '/groups?group=default')
    const dialog = page.getByRole('dialog', { name: 'default' })
    await dialog.getByRole('link', { name: PEOPLE.member.username }).waitFor()
    expect(await dialog.getByRole('textbox', { name: 'Ratio' }).isDisabled()).toBe(true)
    expect(await dialog.getByRole('button', { name: 'Save changes' }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Add group' }).count()).toBe(0)
    await page.close()
  })
})
