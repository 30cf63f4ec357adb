import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, readAgain, startConsoleStage } from '../console-stage.ts'

/** Models without a price. */
const NOVEL = ['novel-a', 'novel-b']
/** The prices that *More prices* shows. */
const MORE = [
  'Cache writes 5 min',
  'Cache writes 1 h',
  'Per call',
  'Web search',
  'Image input',
  'Audio input',
  'Image output',
  'Audio output',
  'Per second',
  'Per million characters',
]

describe.skipIf(withoutBrowser())('prices', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    stage.upstream.script('scripted', { kind: 'whole' })
    await stage.api('POST', '/api/channel/', {
      name: 'other',
      type: 1,
      base_url: stage.upstream.baseUrl('novel'),
      key: 'k',
      models: [...NOVEL, 'gpt-4o-mini'].join(','),
    })
    for (const model of ['demo-chat', 'scripted', 'scripted']) await stage.call(model)
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('the list of models shows each price in its own unit', async () => {
    await stage.api('PUT', '/api/option/', { key: 'SecondPrice', value: '{"novel-a":0.0001}' })
    await stage.api('PUT', '/api/option/', {
      key: 'ImagePrice',
      value: '{"novel-b":{"default":0.08,"1024x1024":0.04}}',
    })
    const page = await stage.open('admin', '/models?q=novel')
    const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name} `) })
    await row('novel-a').getByText('$0.0001 a second').waitFor()
    await row('novel-b').getByText('from $0.04 an image').waitFor()
    expect(await row('novel-b').getByText('$0.00', { exact: true }).count()).toBe(0)
    await page.close()
    for (const key of ['SecondPrice', 'ImagePrice'])
      await stage.api('PUT', '/api/option/', { key, value: '{}' })
  })

  test('a what-if calculation shows a difference of $0 without price changes, otherwise the sum of the differences of all calls', async () => {
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
    await page.close()
  })

  test('a model that will end has a badge with the day, which shows administrators the keys and users that still call it', async () => {
    const end = new Date(Date.now() + 40 * 86_400_000).toISOString().slice(0, 10)
    stage.upstream.decide('scripted', ({ method }) =>
      method === 'GET'
        ? {
            kind: 'status',
            status: 200,
            body: JSON.stringify({ data: [{ id: 'scripted', shutdown_date: end }] }),
          }
        : { kind: 'whole' },
    )
    await stage.declare('options: { model_dates: true }')
    const dateOf = async () =>
      (await stage.api<{ model: string; shutdown_date: string | null }[]>('GET', '/api/models')).find(
        ({ model }) => model === 'scripted',
      )?.shutdown_date
    await expect.poll(dateOf, { timeout: 30_000 }).toBe(end)
    await stage.call('scripted')
    const page = await stage.open('admin', '/models')
    const row = page.getByRole('table', { name: 'Models' }).getByRole('row', { name: /^scripted / })
    await row.getByRole('button', { name: `scripted: Ends on ${end}` }).click()
    const dialog = page.getByRole('dialog', { name: `scripted: Ends on ${end}` })
    await dialog.getByText('It has no successor').waitFor()
    const callers = dialog.getByRole('table', { name: 'Keys that called it on the last seven days' })
    await callers.getByRole('row', { name: /^first root \d+$/ }).waitFor()
    const badges = page.getByRole('table', { name: 'Models' }).getByText(/Ends on/)
    expect(await badges.count()).toBe(1)
    await page.close()
    const own = await stage.open('member', '/models')
    const ownRow = own.getByRole('table', { name: 'Models' }).getByRole('row', { name: /^scripted / })
    await ownRow.getByText(`Ends on ${end}`).waitFor()
    expect(await ownRow.getByRole('button').count()).toBe(0)
    await own.close()
  })

  test('two changes of a price are merged, and the same amount is asked about', async () => {
    const model = 'gpt-4o-mini'
    await setPrice(model, { input: '9', output: '9' })
    const page = await stage.open('root', `/models?edit=${model}`, { isAlone: true })
    const dialog = page.getByRole('dialog', { name: 'Edit price' })
    const save = dialog.getByRole('button', { name: 'Save price' })
    await dialog.getByRole('textbox', { name: 'Output' }).fill('8')
    await setPrice(model, { input: '100', output: '9' })
    await readAgain(page, '/api/models')
    await save.click()
    await dialog.waitFor({ state: 'detached' })
    expect((await priceOf(model)).price).toMatchObject({ input: '100', output: '8' })

    await page
      .getByRole('row', { name: new RegExp(model) })
      .getByRole('button', { name: 'Edit price' })
      .click()
    await dialog.getByRole('textbox', { name: 'Input', exact: true }).fill('7')
    await setPrice(model, { input: '50', output: '8' })
    await save.click()
    const conflict = page.getByRole('dialog', { name: 'Changed meanwhile' })
    expect(await conflict.getByRole('row', { name: /Input/ }).innerText()).toMatch(/7\s+50/)
    await conflict.getByRole('button', { name: 'Overwrite' }).press('Escape')
    await conflict.waitFor({ state: 'detached' })
    await save.click()
    await conflict.getByRole('button', { name: 'Overwrite' }).click()
    await expect.poll(async () => (await priceOf(model)).price).toMatchObject({ input: '7', output: '8' })
    await setPrice(model, null)
    await page.close()
  })

  /** Sets a price over HTTP. */
  const setPrice = (model: string, price: object | null): Promise<unknown> =>
    stage.api('PUT', '/api/models/price', { model, price })
  const priceOf = async (model: string): Promise<{ price: Record<string, unknown>; tiers: unknown[] }> => {
    const all = await stage.api<{ model: string; price: Record<string, unknown>; tiers: unknown[] }[]>(
      'GET',
      '/api/models',
    )
    const found = all.find((one) => one.model === model)
    if (!found) throw new Error(`${model} is not listed`)
    return found
  }

  test('models can be filtered by vendor and by Without a price, and one request sets a price for all selected models', async () => {
    const page = await stage.open('root', '/models')
    const table = page.getByRole('table', { name: 'Models' })
    await page.getByRole('switch', { name: 'Without a price' }).click({ force: true })
    await expect.poll(() => table.getByRole('row').count()).toBe(NOVEL.length + 1)
    const requests: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'PUT') requests.push(new URL(request.url()).pathname)
    })
    for (const name of NOVEL) await page.getByRole('checkbox', { name: `Choose ${name}` }).check()
    await page.getByRole('button', { name: 'Set price' }).click()
    const dialog = page.getByRole('dialog', { name: 'Set price' })
    await dialog.getByRole('textbox', { name: 'Input', exact: true }).fill('1')
    await dialog.getByRole('textbox', { name: 'Output' }).fill('3')
    await dialog.getByRole('button', { name: 'Save price' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(requests).toEqual(['/api/models/prices'])
    for (const name of NOVEL) expect((await priceOf(name)).price).toMatchObject({ input: '1', output: '3' })
    await page.getByText('No model has this in its name.').waitFor()

    await page.goto('/models')
    await page.getByRole('combobox', { name: 'Vendor' }).click()
    await page.getByRole('option', { name: 'openai' }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('vendor')).toBe('openai')
    await table.getByRole('row', { name: /gpt-4o-mini/ }).waitFor()
    expect(await table.getByRole('row', { name: /novel/ }).count()).toBe(0)
    await page.close()
  })

  test('Edit price has fields for all token prices and tiers, Cancel changes nothing, and Save keeps prices without a field', async () => {
    await setPrice('gpt-4o-mini', {
      input: '1',
      output: '2',
      tools: { web_fetch: '0.01' },
      cache_write_5m: '9',
    })
    const page = await stage.open('root', '/models?q=gpt-4o-mini')
    const open = async () => {
      await page.getByRole('button', { name: 'Edit price' }).click()
      return page.getByRole('dialog', { name: 'Edit price' })
    }
    const first = await open()
    await first.getByRole('textbox', { name: 'Input', exact: true }).fill('7')
    await first.getByRole('button', { name: 'Cancel' }).click()
    await first.waitFor({ state: 'detached' })
    expect((await priceOf('gpt-4o-mini')).price).toMatchObject({ input: '1' })

    const dialog = await open()
    await dialog.getByRole('button', { name: 'More prices' }).click()
    for (const name of MORE)
      expect(await dialog.getByRole('textbox', { name, exact: true }).count(), name).toBe(1)
    const write = dialog.getByRole('textbox', { name: 'Cache writes 5 min' })
    expect(await write.inputValue()).toBe('9')
    await dialog.getByRole('textbox', { name: 'Audio input' }).fill('5')
    await dialog.getByRole('button', { name: 'Add a tier of service' }).click()
    const service = dialog.getByRole('group', { name: 'Tier of service 1' })
    await service.getByRole('combobox', { name: 'Tier' }).fill('flex')
    await dialog.getByRole('button', { name: 'Save price' }).click()
    await service.getByText('Enter a factor, or an input and an output.').waitFor()
    await service.getByRole('textbox', { name: 'Factor' }).fill('0.4')
    await dialog.getByRole('button', { name: 'Add a region' }).click()
    const region = dialog.getByRole('group', { name: 'Region 1' })
    await region.getByRole('textbox', { name: 'Region' }).fill('us')
    await region.getByRole('textbox', { name: 'Factor' }).fill('1.1')
    await dialog.getByRole('button', { name: 'Add a price for long prompts' }).click()
    const tier = dialog.getByRole('group', { name: 'Long prompts 1' })
    await tier.getByRole('textbox', { name: 'Above tokens' }).fill('1000')
    await tier.getByRole('textbox', { name: 'Input', exact: true }).fill('2')
    await tier.getByRole('textbox', { name: 'Output' }).fill('4')
    await dialog.getByRole('button', { name: 'Save price' }).click()
    await dialog.waitFor({ state: 'detached' })
    const { price, tiers } = await priceOf('gpt-4o-mini')
    expect(price).toMatchObject({
      input: '1',
      output: '2',
      cache_write_5m: '9',
      audio_input: '5',
      tools: { web_fetch: '0.01' },
      service: { flex: '0.4' },
      regions: { us: '1.1' },
    })
    const row = page.getByRole('table', { name: 'Models' }).getByRole('row', { name: /gpt-4o-mini/ })
    await row.getByText('Flex ×0.4, us ×1.1').waitFor()
    expect(tiers).toMatchObject([{ above: 1000, input: '2', output: '4' }])
    // A row that is removed is a change of the form.
    const last = await open()
    await last.getByRole('button', { name: 'Remove price 1 for long prompts' }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Leave without saving' }).click()
    await last.waitFor({ state: 'detached' })
    await setPrice('gpt-4o-mini', null)
    await page.close()
  })

  test('the pages of models show the tiers and regions of a model with their prices', async () => {
    const service = { flex: '0.5', ultrafast: { input: '20', output: '40' } }
    await setPrice('gpt-4o-mini', { input: '1', output: '2', service, regions: { us: '1.1' } })
    for (const person of ['admin', 'caller'] as const) {
      const page = await stage.open(person, '/models?q=gpt-4o-mini')
      const row = page.getByRole('table', { name: 'Models' }).getByRole('row', { name: /gpt-4o-mini/ })
      await row.getByText('Flex ×0.5, Ultrafast $20.00 in, $40.00 out, us ×1.1').waitFor()
      await page.close()
    }
    await setPrice('gpt-4o-mini', null)
  })

  test('the page of models and the playground show prices in the display currency', async () => {
    await stage.api('PUT', '/api/option/', { key: 'general_setting.quota_display_type', value: 'CNY' })
    await stage.api('PUT', '/api/option/', { key: 'USDExchangeRate', value: '7' })
    const page = await stage.open('root', '/models?q=scripted')
    const row = page.getByRole('table', { name: 'Models' }).getByRole('row', { name: /scripted/ })
    await row.getByText('¥7.00').waitFor()
    await row.getByText('¥14.00').waitFor()
    await page.getByText('CNY per million tokens').waitFor()
    await page.goto('/playground?model=scripted')
    await page.getByText('¥7.00 in, ¥14.00 out per million').first().waitFor()
    await page.close()
    await stage.api('PUT', '/api/option/', { key: 'general_setting.quota_display_type', value: 'USD' })
  })

  test('a model for embeddings has no price of output', async () => {
    const model = 'text-embedding-of-the-test'
    const channel = {
      name: 'vectors',
      type: 1,
      key: 'k',
      base_url: stage.upstream.baseUrl('v'),
      models: model,
      group: 'default',
    }
    await stage.api('POST', '/api/channel/', { mode: 'single', channel })
    await stage.api('PUT', '/api/models/price', { model, price: { input: '2', output: '0' } })
    for (const person of ['root', 'caller'] as const) {
      const page = await stage.open(person, `/models?q=${model}`)
      const row = page.getByRole('table', { name: 'Models' }).getByRole('row', { name: new RegExp(model) })
      await row.getByText('$2.00').waitFor()
      expect(await row.getByText('$0.00').count()).toBe(0)
      await page.close()
    }
  })

  test('the page of models shows a member the endpoints of a model in words', async () => {
    const page = await stage.open('caller', '/models?q=scripted')
    const row = page.getByRole('table', { name: 'Models' }).getByRole('row', { name: /scripted/ })
    const words = row.getByText('Chat, Messages, Responses, Gemini')
    await words.waitFor()
    // None of them is in the tooltip alone.
    expect(
      await words.evaluate(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight),
    ).toBeLessThanOrEqual(1)
    expect(await page.getByText(/\b(?:compat|vendor)\b/).count()).toBe(0)
    await page.close()
  })
})
