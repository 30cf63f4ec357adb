import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AlertReceiver, startAlertReceiver } from '../../../test/fixtures/alert-receiver.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, type Person, startConsoleStage } from '../console-stage.ts'

const DOLLAR = 500_000

/** What somebody does on the pages, counted: clicks, fields that are filled in, and changes of the page. */
class Work {
  readonly page: Page
  clicks = 0
  fields = 0
  pages = 0

  constructor(page: Page) {
    this.page = page
    let path = new URL(page.url()).pathname
    page.on('framenavigated', () => {
      const next = new URL(page.url()).pathname
      if (next !== path) this.pages += 1
      path = next
    })
  }

  async click(target: Locator): Promise<void> {
    this.clicks += 1
    await target.click()
  }

  /** Opens a page by the navigation. */
  async open(name: string): Promise<void> {
    await this.click(this.page.getByRole('navigation').getByRole('link', { name, exact: true }))
  }

  async fill(name: string, text: string, field: 'textbox' | 'combobox' = 'textbox'): Promise<void> {
    this.fields += 1
    await this.page.getByRole(field, { name, exact: true }).fill(text)
  }

  press(name: string): Promise<void> {
    return this.click(this.page.getByRole('button', { name, exact: true }))
  }

  async choose(name: string, option: string): Promise<void> {
    await this.click(this.page.getByRole('combobox', { name, exact: true }))
    await this.click(this.page.getByRole('option', { name: new RegExp(`^${option}`) }))
  }

  get steps(): number {
    return this.clicks + this.fields
  }
}

describe.skipIf(withoutBrowser())('tasks of operators and developers, in a world of three months', () => {
  let stage: ConsoleStage
  let receiver: AlertReceiver
  beforeAll(async () => {
    stage = await startConsoleStage('world')
    receiver = await startAlertReceiver()
  })
  afterAll(async () => {
    await stage?.close()
    await receiver?.stop()
  })

  async function begin(person: Person): Promise<Work> {
    const page = await stage.open(person, '/')
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    return new Work(page)
  }

  /** Ends a task that began on the overview, which took at most these steps and changes of the page. */
  async function end(work: Work, most: { readonly steps: number; readonly pages: number }): Promise<void> {
    const { clicks, fields, pages } = work
    console.log(`${clicks} clicks, ${fields} fields, ${pages} pages`)
    await work.page.close()
    expect(work.steps).toBeLessThanOrEqual(most.steps)
    expect(pages).toBeLessThanOrEqual(most.pages)
  }

  const answersWithModels = (lane: string, models: readonly string[]): void =>
    stage.upstream.decide(lane, ({ method }) =>
      method === 'GET'
        ? { kind: 'whole', body: JSON.stringify({ data: models.map((id) => ({ id })) }) }
        : { kind: 'whole' },
    )

  // new-api takes 10 steps: Channels, Add, type (2), name, key, address, model, Submit, Test.
  test('a channel compatible with OpenAI is added and tested in at most 9 steps', async () => {
    answersWithModels('task3', ['model-of-task-3'])
    const work = await begin('root')
    await work.open('Channels')
    await work.click(work.page.getByRole('link', { name: 'Add channel' }))
    await work.choose('Provider', 'Other, compatible with OpenAI')
    await work.fill('Base URL', stage.upstream.baseUrl('task3'))
    await work.fill('API keys', 'key-of-task-3')
    await work.fill('Models', 'model-of-task-3,', 'combobox')
    await work.press('Test connection')
    await work.page
      .getByRole('status', { name: 'Test result' })
      .filter({ hasText: /^Answered in/ })
      .waitFor()
    await work.press('Save channel')
    await work.page.waitForURL(/\/channels\/\d+$/)
    await end(work, { steps: 9, pages: 3 })
  })

  // new-api takes 4 steps on the page of a channel: Fetch, Select all, Confirm, Submit.
  test('the models of a provider are taken in at most 4 steps on the page of its channel', async () => {
    answersWithModels('task4', ['one-model', 'another-model'])
    await stage.api('POST', '/api/channel/', {
      name: 'task-4',
      type: 1,
      base_url: stage.upstream.baseUrl('task4'),
      key: 'key-of-task-4',
      models: 'one-model',
    })
    const { items } = await stage.api<{ items: { id: number; name: string }[] }>(
      'GET',
      '/api/channel/?page_size=100',
    )
    const id = items.find(({ name }) => name === 'task-4')?.id
    const page = await stage.open('root', `/channels/${id}`)
    const work = new Work(page)
    await work.press('Fetch models')
    await work.press('Take all')
    await work.press('Take chosen')
    await work.press('Save changes')
    await page.getByText(/saved/i).first().waitFor()
    const { models } = await stage.api<{ models: string }>('GET', `/api/channel/${id}`)
    expect(models.split(',').toSorted()).toEqual(['another-model', 'one-model'])
    await end(work, { steps: 4, pages: 0 })
  })

  // LiteLLM takes 7 steps: Users, Invite, e-mail, budget, period (2), Create; its user then has no password.
  test('a user with a monthly budget is added in at most 6 steps', async () => {
    const work = await begin('root')
    await work.open('Users')
    await work.press('Add user')
    await work.fill('Username', 'petra')
    await work.fill('Password', 'a password of petra')
    await work.fill('Budget', '20')
    await work.press('Create user')
    await work.page.getByRole('status').filter({ hasText: 'created' }).waitFor()
    const { items } = await stage.api<{ items: object[] }>('GET', '/api/user/search?keyword=petra')
    expect(items).toMatchObject([{ budget: 20 * DOLLAR, budget_period: 'month' }])
    await end(work, { steps: 6, pages: 1 })
  })

  // new-api takes 6 steps: Tokens, Add, name, models (2), Submit.
  test('a key limited to a model, with the name that is proposed, is created in at most 6 steps', async () => {
    const work = await begin('member')
    await work.open('API keys')
    await work.press('Create key')
    await work.press('Models and more limits')
    await work.choose('Models', 'gpt-5-mini')
    await work.page.keyboard.press('Tab')
    await work.press('Create')
    await work.page.getByRole('dialog', { name: 'Key created' }).waitFor()
    await end(work, { steps: 6, pages: 1 })
  })

  // Langfuse and Portkey take 6 steps: Logs, period (2), status (2), the row.
  test.each(['root', 'member'] as const)(
    'why a call failed yesterday is found in at most 6 steps by %s',
    async (person) => {
      const work = await begin(person)
      const { page } = work
      await work.open('Logs')
      await work.choose('Period', 'Yesterday')
      await work.choose('Status', 'Failed')
      const rows = page.getByRole('table', { name: 'Calls' }).getByRole('row')
      // All rows but the head: a click is lost if the table changes under it.
      await expect.poll(() => rows.filter({ hasNotText: 'Failed' }).count()).toBe(1)
      await work.click(rows.filter({ hasText: 'Failed' }).first().locator('[data-row-link]'))
      const sheet = page.getByRole('dialog', { name: 'Call details' })
      await sheet.getByRole('heading', { name: 'Why' }).waitFor()
      await sheet.getByText(/Not charged\./).waitFor()
      await end(work, { steps: 6, pages: 2 })
    },
  )

  // new-api takes 4 steps: Channels, Edit, key, Submit.
  test('the key of a provider is replaced in at most 4 steps', async () => {
    const work = await begin('root')
    await work.open('Channels')
    await work.click(work.page.getByRole('link', { name: 'deepseek', exact: true }))
    await work.fill('API keys', 'the-new-key-of-deepseek')
    await work.press('Save changes')
    await work.page.getByRole('status').filter({ hasText: 'saved' }).waitFor()
    // The list of keys has the new one by then, not only after its next refresh.
    expect(await work.page.getByText(/the-\*+seek/).count()).toBe(1)
    await end(work, { steps: 4, pages: 2 })
  })

  // LiteLLM takes 5 steps: Settings, its tab, address, Save, Test.
  test('a receiver of alerts is added and tested in at most 5 steps', async () => {
    const work = await begin('root')
    await work.open('Settings')
    await work.press('Add receiver')
    await work.fill('URL', `${receiver.url}/alerts`)
    const dialog = work.page.getByRole('dialog', { name: 'Add receiver' })
    await work.click(dialog.getByRole('button', { name: 'Add receiver' }))
    await work.click(dialog.getByRole('button', { name: 'Send a test' }))
    await dialog.getByText(/^Answered 204 in /).waitFor()
    expect(receiver.received).toMatchObject([{ type: 'test' }])
    await end(work, { steps: 5, pages: 1 })
  })

  // OpenRouter takes 5 steps: Chat, Add model, the model, message, Send.
  test('two models are compared in at most 5 steps', async () => {
    const work = await begin('root')
    const { page } = work
    await work.open('Playground')
    await work.press('Add model')
    await work.click(page.getByRole('option', { name: /^gpt-5-mini/ }))
    await work.fill('Message', 'Say hello.')
    await work.press('Send')
    const table = page.getByRole('table', { name: 'Comparison' })
    for (const name of ['claude-haiku-4-5', 'gpt-5-mini'])
      await table.getByRole('row', { name: new RegExp(`^${name} .*\\$`) }).waitFor()
    await end(work, { steps: 5, pages: 1 })
  })
})
