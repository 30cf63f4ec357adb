import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from './chromium.ts'
import { type ConsoleStage, startConsoleStage } from './console-stage.ts'

describe.skipIf(withoutBrowser())('prices', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    stage.upstream.script('scripted', { kind: 'whole' })
    for (const model of ['demo-chat', 'scripted', 'scripted']) await stage.call(model)
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('103: without a change the difference is 0; with another price it is that of each call', async () => {
    const page = await stage.open('admin', '/what-if')
    await page.getByRole('button', { name: 'Calculate' }).click()
    const difference = page.getByRole('status', { name: 'Difference' })
    await difference.getByText('$0.00').waitFor()

    await page.getByRole('button', { name: 'Add price' }).click()
    const change = page.getByRole('group', { name: 'Another price' })
    await change.getByRole('combobox', { name: 'Model' }).click()
    await page.getByRole('option', { name: 'scripted', exact: true }).click()
    await change.getByRole('textbox', { name: 'Input', exact: true }).fill('0')
    await change.getByRole('textbox', { name: 'Output' }).fill('0')
    await change.getByRole('textbox', { name: 'Cached input' }).fill('0')
    await page.getByRole('button', { name: 'Calculate' }).click()
    const { items } = await stage.api<{ items: { model_name: string; quota: number }[] }>('GET', '/api/log/')
    const charged = items
      .filter(({ model_name }) => model_name === 'scripted')
      .reduce((sum, { quota }) => sum + quota, 0)
    const row = page.getByRole('table', { name: 'Result' }).getByRole('row', { name: /^scripted 2 / })
    await expect
      .poll(() => row.getByRole('cell').nth(4).locator('[title]').getAttribute('title'))
      .toBe(`${-charged / 500_000} USD`)
    await page.context().close()
  })
})
