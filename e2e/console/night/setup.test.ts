import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

const MODEL = 'test-model'
const SECRET = 'upstream-key-0123456789'

describe.skipIf(withoutBrowser())('the first run', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage('fresh')
    stage.upstream.decide('scripted', ({ method, headers, text }) => {
      if (headers.authorization !== `Bearer ${SECRET}`) return { kind: 'status', status: 401 }
      if (method === 'GET') return { kind: 'whole', body: JSON.stringify({ data: [{ id: MODEL }] }) }
      return text.includes('"stream":true') ? { kind: 'stream', word: 'hello ' } : { kind: 'whole' }
    })
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('the first run leads from an empty gateway to the cost of a first call', async () => {
    const page = await stage.open('root', '/')
    await page.getByRole('heading', { level: 1, name: 'Set up Sluice' }).waitFor()
    const steps = page.getByRole('list', { name: 'Setup steps' }).getByRole('listitem')
    const current = page.locator('[aria-current="step"]')
    await current.filter({ hasText: 'Add a channel' }).waitFor()
    await current.getByRole('button').click()

    await page.getByRole('combobox', { name: 'Provider' }).click()
    await page.getByRole('option', { name: 'Other, compatible with OpenAI' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('mine')
    await page.getByRole('textbox', { name: 'Base URL' }).fill('http://127.0.0.1:1/v1')
    await page.getByRole('textbox', { name: 'API keys' }).fill(SECRET)
    await page.getByRole('combobox', { name: 'Models' }).fill(MODEL)
    await page.getByRole('combobox', { name: 'Models' }).press('Enter')
    const result = page.getByRole('status', { name: 'Test result' })
    const testing = page.getByRole('button', { name: 'Test connection' })
    await testing.click()
    await result.filter({ hasText: /Check the base URL\./ }).waitFor()
    await page.getByRole('textbox', { name: 'Base URL' }).fill(stage.upstream.baseUrl('scripted'))
    await page.getByRole('textbox', { name: 'API keys' }).fill('a-wrong-key')
    await testing.click()
    await result.filter({ hasText: /Check the API key\./ }).waitFor()
    expect(await result.innerText()).not.toContain('a-wrong-key')
    await page.getByRole('textbox', { name: 'API keys' }).fill(SECRET)
    await testing.click()
    await result.filter({ hasText: /^Answered in [\d.]+ s$/ }).waitFor()
    await page.getByRole('button', { name: 'Fetch models' }).click()
    const models = page.getByRole('dialog', { name: 'Fetch models' })
    expect(await models.getByRole('checkbox', { name: MODEL }).isChecked()).toBe(true)
    await models.getByRole('button', { name: 'Take chosen' }).click()
    await page.getByText('1 model listed by the upstream').waitFor()
    await page.getByRole('button', { name: 'Save channel' }).click()

    await current.filter({ hasText: 'Create a key' }).waitFor()
    await steps.filter({ hasText: 'Add a channel' }).getByText('Done').waitFor()
    // Programs can do the steps, too.
    await stage.api('POST', '/api/token/', {
      name: 'by a program',
      remain_quota: 0,
      unlimited_quota: true,
      expired_time: -1,
    })
    await current.filter({ hasText: 'Make a call' }).getByRole('button').click()

    const message = page.getByRole('textbox', { name: 'Message' })
    expect(await message.inputValue()).toBe('Say hello in one sentence.')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const cost = page.getByRole('log', { name: 'Conversation' }).getByRole('link', { name: /^Call details/ })
    const shown = await cost.innerText()
    await cost.click()
    await page
      .getByRole('table', { name: 'Cost lines' })
      .getByRole('row', { name: `Charge ${shown}` })
      .waitFor()

    await page.goto('/setup')
    await expect.poll(() => steps.filter({ hasText: 'Done' }).count()).toBe(4)
    await page.goto('/')
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.close()
  })
})
