import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startMcpServer, type TestMcpServer } from '../../../test/fixtures/mcp.ts'
import { axeViolations } from '../axe.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, readAgain, startConsoleStage } from '../console-stage.ts'
import { atNight } from '../../../test/runner/tier.ts'

interface Entry {
  readonly name: string
  readonly timeout?: number
  readonly tools?: readonly string[]
  readonly price?: { readonly call: string }
}

let description = 'reads a file'

describe.skipIf(withoutBrowser())('the page of tools', () => {
  let stage: ConsoleStage
  let server: TestMcpServer
  beforeAll(async () => {
    server = await startMcpServer({
      name: 'notes',
      versions: ['2026-07-28'],
      tools: () => [textTool({ name: 'read', description }, () => 'content')],
      cacheScope: 'private',
    })
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
    await server?.close()
  })

  const entries = (list: 'servers' | 'toolsets') => stage.api<readonly Entry[]>('GET', `/api/mcp/${list}`)

  test('an administrator adds a server, whose tools are listed with state and price', async () => {
    const page = await stage.open('admin', '/tools')
    await page.getByRole('button', { name: 'Add server' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add server' })
    await dialog.getByLabel('Server').fill('notes')
    await dialog.getByLabel('Address', { exact: true }).fill('ftp://nowhere')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('expected an http:// or https:// URL', { exact: false }).waitFor()
    await dialog.getByLabel('Address', { exact: true }).fill(server.url)
    await dialog.getByLabel('Price of a call').fill('0.25')
    await dialog.getByRole('button', { name: 'Save' }).click()
    const row = page.getByRole('table', { name: 'Servers' }).getByRole('row', { name: /notes/ })
    await row.waitFor()
    // The tools are fetched after the server was added.
    await expect
      .poll(() => row.getByRole('cell').allInnerTexts())
      .toEqual(expect.arrayContaining(['notes', 'Answers', '2026-07-28', '1', '$0.25', 'First seen']))
    const tool = page.getByRole('table', { name: 'Tools' }).getByRole('row', { name: /notes_read/ })
    await expect
      .poll(() => tool.getByRole('cell').allInnerTexts())
      .toEqual(expect.arrayContaining(['notes_read', 'Approved', 'reads a file', '$0.25']))
    expect((await entries('servers')).find(({ name }) => name === 'notes')?.price?.call).toBe('0.25')
    await page.close()
  })

  test("a change of a server keeps another administrator's, and asks about a field that both changed", async () => {
    const notes = async () => (await entries('servers')).find(({ name }) => name === 'notes')
    const change = (call: string, timeout: string) =>
      stage.api('PUT', '/api/mcp/servers', { name: 'notes', url: server.url, price: { call }, timeout })
    const page = await stage.open('admin', '/tools?server=notes', { isAlone: true })
    const dialog = page.getByRole('dialog', { name: 'notes' })
    const price = dialog.getByLabel('Price of a call')
    await price.fill('0.5')
    await change('0.25', '20s')
    await readAgain(page, '/api/mcp/servers')
    expect(await price.inputValue()).toBe('0.5')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await notes()).toMatchObject({ price: { call: '0.5' }, timeout: 20_000 })

    await page.getByRole('link', { name: 'notes', exact: true }).click()
    await price.fill('0.75')
    await change('0.25', '30s')
    await dialog.getByRole('button', { name: 'Save' }).click()
    const conflict = page.getByRole('dialog', { name: 'Changed meanwhile' })
    expect(await conflict.getByRole('row', { name: /Price of a call/ }).innerText()).toMatch(/0\.75\s+0\.25/)
    expect(await conflict.getByRole('row', { name: /Timeout/ }).count()).toBe(0)
    await conflict.getByRole('button', { name: 'Overwrite' }).press('Escape')
    await conflict.waitFor({ state: 'detached' })
    expect(await price.inputValue()).toBe('0.75')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await conflict.getByRole('button', { name: 'Overwrite' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await notes()).toMatchObject({ price: { call: '0.75' }, timeout: 30_000 })
    await page.close()
  })

  test('a changed tool is shown beside its approved definition, and approved', async () => {
    description = 'reads a file, and sends it elsewhere'
    const page = await stage.open('admin', '/tools')
    const tool = page.getByRole('table', { name: 'Tools' }).getByRole('row', { name: /notes_read/ })
    await tool.getByText('Changed').waitFor()
    await page.getByRole('link', { name: 'Review notes_read' }).click()
    const dialog = page.getByRole('dialog', { name: 'notes_read' })
    const changed = dialog.getByRole('row', { name: /^description/ })
    await expect
      .poll(() => changed.getByRole('cell').allInnerTexts())
      .toEqual(['reads a file', 'reads a file, and sends it elsewhere'])
    expect(await axeViolations(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Approve the present definition' }).click()
    await tool.getByText('Approved').waitFor()
    await page.close()
  })

  test('a toolset is added, changed and deleted', async () => {
    const page = await stage.open('admin', '/tools')
    await page.getByRole('button', { name: 'Add toolset' }).click()
    const added = page.getByRole('dialog', { name: 'Add toolset' })
    await added.getByLabel('Toolset').fill('reading')
    await added.getByLabel('Patterns').fill('notes.*')
    await page.keyboard.press('Enter')
    await added.getByRole('button', { name: 'Save' }).click()
    const row = page.getByRole('table', { name: 'Toolsets' }).getByRole('row', { name: /reading/ })
    await row.getByText('everybody').waitFor()
    await row.getByRole('link', { name: 'reading' }).click()
    const changed = page.getByRole('dialog', { name: 'reading' })
    await changed.getByLabel('Groups').fill('default')
    await page.keyboard.press('Enter')
    await changed.getByRole('button', { name: 'Save' }).click()
    await row.getByText('default').waitFor()
    expect(await entries('toolsets')).toMatchObject([
      { name: 'reading', tools: ['notes.*'], groups: ['default'] },
    ])
    await page.getByRole('button', { name: 'Delete reading' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await row.waitFor({ state: 'detached' })
    expect(await entries('toolsets')).toEqual([])
    await page.close()
  })

  atNight("a change of a toolset keeps another administrator's", async () => {
    await stage.api('POST', '/api/mcp/toolsets', { name: 'shared', tools: ['notes.*'] })
    const page = await stage.open('admin', '/tools?toolset=shared', { isAlone: true })
    const dialog = page.getByRole('dialog', { name: 'shared' })
    await dialog.getByLabel('Groups').fill('default')
    await page.keyboard.press('Enter')
    await stage.api('PUT', '/api/mcp/toolsets', { name: 'shared', tools: ['notes.read'] })
    await readAgain(page, '/api/mcp/toolsets')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await entries('toolsets')).toMatchObject([
      { name: 'shared', tools: ['notes.read'], groups: ['default'] },
    ])
    await stage.api('DELETE', '/api/mcp/toolsets/shared')
    await page.close()
  })

  atNight('a key is restricted to toolsets in its form, when it is made and later', async () => {
    for (const name of ['reading', 'writing'])
      await stage.api('POST', '/api/mcp/toolsets', { name, tools: ['notes.*'] })
    const keyNamed = async (name: string) => {
      const { items } = await stage.api<{ items: { id: number; name: string; toolsets: string[] }[] }>(
        'GET',
        '/api/token/?page_size=100',
      )
      return items.find((one) => one.name === name)
    }
    const page = await stage.open('root', '/keys')
    const toolsets = page.getByLabel('Toolsets').and(page.locator('input'))
    const enter = async (name: string): Promise<void> => {
      await toolsets.fill(name)
      await page.keyboard.press('Enter')
      // Its list of options may cover a button.
      await page.keyboard.press('Tab')
    }
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('for agents')
    await page.getByRole('button', { name: 'Models and more limits' }).click()
    await enter('nowhere')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page
      .getByText(/nowhere/)
      .last()
      .waitFor()
    await toolsets.click()
    await page.keyboard.press('Backspace')
    await enter('reading')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('dialog', { name: 'Key created' }).waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    const made = await keyNamed('for agents')
    expect(made?.toolsets).toEqual(['reading'])
    await page.goto(`/keys/${made?.id}`)
    await page.getByRole('tab', { name: 'Settings' }).click()
    await enter('writing')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor()
    expect((await keyNamed('for agents'))?.toolsets).toEqual(['reading', 'writing'])
    await page.close()
  })
})
