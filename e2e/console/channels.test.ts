import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from './chromium.ts'
import { type ConsoleStage, startConsoleStage } from './console-stage.ts'

/** The fields of a channel that these tests compare. */
interface Saved {
  readonly id: number
  readonly name: string
  readonly type: number
  readonly other?: string
  readonly base_url: string
  readonly project: string | null
  readonly protocol: readonly string[]
  readonly model_mapping: string
  readonly header_override: string
  readonly param_override: string
  readonly setting: string
  readonly test_model: string
  readonly service_tier: string | null
}

describe.skipIf(withoutBrowser())('the form of a channel', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  async function saved(name: string): Promise<Saved> {
    const { items } = await stage.api<{ items: Saved[] }>('GET', `/api/channel/search?keyword=${name}`)
    const found = items.find((one) => one.name === name)
    if (!found) throw new Error(`there is no channel ${name}`)
    return found
  }

  async function createByApi(fields: object): Promise<number> {
    const channel = { key: 'k', models: 'm', group: 'default', weight: 1, ...fields }
    const { ids } = await stage.api<{ ids: number[] }>('POST', '/api/channel/', { mode: 'single', channel })
    return ids[0] ?? 0
  }

  test('79, 125: the name is filled in for each provider, and a free one where it is taken; typing replaces the chosen provider', async () => {
    const page = await stage.open('root', '/channels/new')
    const name = page.getByRole('textbox', { name: 'Name', exact: true })
    await expect.poll(() => name.inputValue()).toBe('openai')
    await createByApi({ name: 'openai', type: 1 })
    await page.reload()
    await expect.poll(() => name.inputValue()).toBe('openai-2')
    const provider = page.getByRole('combobox', { name: 'Provider' })
    await provider.click()
    await provider.pressSequentially('mis')
    await page.getByRole('option', { name: 'Mistral' }).click()
    await expect.poll(() => name.inputValue()).toBe('mistral')
    await provider.click()
    await provider.pressSequentially('no such provider')
    await page.getByText('Nothing found').waitFor()
    await provider.press('Escape')
    await page.context().close()
  })

  test('80: a test needs no name, and moves the focus to the first invalid field', async () => {
    const page = await stage.open('root', '/channels/new')
    await page.getByRole('combobox', { name: 'Provider' }).click()
    await page.getByRole('option', { name: 'Other, compatible with OpenAI' }).click()
    const name = page.getByRole('textbox', { name: 'Name', exact: true })
    await name.fill('')
    const testing = page.getByRole('button', { name: 'Test connection' })
    const result = page.getByRole('status', { name: 'Test result' })
    await testing.click()
    await result.filter({ hasText: 'Not tested. Base URL: Fill this in.' }).waitFor()
    const url = page.getByRole('textbox', { name: 'Base URL' })
    await expect.poll(() => url.evaluate((field) => field === document.activeElement)).toBe(true)
    await url.fill(stage.upstream.baseUrl('scripted'))
    await testing.click()
    await result.filter({ hasText: 'Not tested. Models: Name at least one model.' }).waitFor()
    await page.getByRole('combobox', { name: 'Models' }).fill('scripted')
    await page.getByRole('combobox', { name: 'Models' }).press('Enter')
    stage.upstream.script('scripted', { kind: 'whole' })
    await testing.click()
    await result.filter({ hasText: /^Answered in/ }).waitFor()
    expect(await name.inputValue()).toBe('')
    await page.context().close()
  })

  test('81: settings under Advanced are saved with the channel, and shown when it is opened again', async () => {
    const page = await stage.open('root', '/channels/new')
    const advanced = page.getByRole('button', { name: 'Advanced', exact: true })
    expect(await advanced.getAttribute('aria-expanded')).toBe('false')
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('advanced')
    await page.getByRole('textbox', { name: 'API keys' }).fill('key-1')
    await page.getByRole('combobox', { name: 'Models' }).fill('asked')
    await page.getByRole('combobox', { name: 'Models' }).press('Enter')
    await advanced.click()
    const fillRow = async (group: string, first: string, second: string): Promise<void> => {
      const rows = page.getByRole('group', { name: group })
      await rows.getByRole('button', { name: 'Add row' }).click()
      await rows.getByRole('textbox').nth(0).fill(first)
      await rows.getByRole('textbox').nth(1).fill(second)
    }
    await fillRow('Model mapping', 'asked', 'sent')
    await fillRow('Headers', 'x-team', 'search')
    await fillRow('Overrides', 'temperature', '0.2')
    await page.getByRole('textbox', { name: 'Proxy' }).fill('http://proxy.example:3128')
    await page.getByRole('textbox', { name: 'Probe every' }).fill('30s')
    await page.getByRole('textbox', { name: 'Test model' }).fill('asked')
    await page.getByRole('textbox', { name: 'System prompt' }).fill('Be brief.')
    const tier = page.getByRole('textbox', { name: 'Service tier' })
    await tier.fill('flex')
    for (const protocol of ['Chat completions', 'Messages'])
      await page.getByRole('group', { name: 'Protocols' }).getByRole('checkbox', { name: protocol }).check()
    // Providers of messages lack this tier; the message is at its field.
    await page.getByRole('button', { name: 'Save channel' }).click()
    await page.getByText(/expected a tier of service that the provider has/).waitFor()
    expect(await tier.getAttribute('aria-invalid')).toBe('true')
    await tier.fill('fast')
    await page.getByRole('button', { name: 'Save channel' }).click()
    await page.getByRole('heading', { level: 1, name: 'advanced' }).waitFor()

    const channel = await saved('advanced')
    expect(channel.protocol).toEqual(['chat', 'messages'])
    expect(JSON.parse(channel.model_mapping)).toEqual({ asked: 'sent' })
    expect(JSON.parse(channel.header_override)).toEqual({ 'x-team': 'search' })
    expect(JSON.parse(channel.param_override)).toEqual({ temperature: 0.2 })
    expect(JSON.parse(channel.setting)).toMatchObject({
      proxy: 'http://proxy.example:3128',
      probe: '30s',
      system_prompt: 'Be brief.',
    })
    expect(channel.test_model).toBe('asked')
    expect(channel.service_tier).toBe('fast')

    await page.reload()
    await advanced.click()
    const shown = (group: string): Promise<string[]> =>
      page
        .getByRole('group', { name: group })
        .getByRole('textbox')
        .evaluateAll((fields) => fields.map((field) => (field as HTMLInputElement).value))
    expect(await shown('Model mapping')).toEqual(['asked', 'sent'])
    expect(await shown('Headers')).toEqual(['x-team', 'search'])
    expect(await shown('Overrides')).toEqual(['temperature', '0.2'])
    expect(await page.getByRole('textbox', { name: 'Probe every' }).inputValue()).toBe('30s')
    expect(await page.getByRole('textbox', { name: 'System prompt' }).inputValue()).toBe('Be brief.')
    expect(await tier.inputValue()).toBe('fast')
    const checked = page.getByRole('group', { name: 'Protocols' }).getByRole('checkbox', { checked: true })
    expect(await checked.count()).toBe(2)
    await page.context().close()
  })

  const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
  const ACCOUNT = JSON.stringify({
    type: 'service_account',
    project_id: 'mine',
    client_email: 'calls@mine.iam.gserviceaccount.com',
    private_key: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
      type: 'pkcs8',
      format: 'pem',
    }),
    token_uri: 'https://oauth2.googleapis.com/token',
  })

  test.each([
    {
      provider: 'Azure OpenAI',
      name: 'azure',
      typed: { 'Base URL': 'https://mine.openai.azure.com', 'API version': '2024-10-21', 'API keys': 'k1' },
      api: { type: 3, base_url: 'https://mine.openai.azure.com', other: '2024-10-21', key: 'k1' },
    },
    {
      provider: 'AWS Bedrock',
      name: 'bedrock',
      typed: { Region: 'eu-central-1', 'API keys': `AKIDEXAMPLE|${SECRET}` },
      api: { type: 33, other: 'eu-central-1', key: `AKIDEXAMPLE|${SECRET}|eu-central-1` },
    },
    {
      provider: 'Google Vertex AI',
      name: 'vertex',
      typed: { Location: 'europe-west4', Project: 'another', 'Service account': ACCOUNT },
      api: { type: 41, other: 'europe-west4', project: 'another', key: ACCOUNT },
    },
  ])(
    '82: the form of a $provider channel has its own fields, and saves the channel that the API would create',
    async (given) => {
      const page = await stage.open('root', '/channels/new')
      await page.getByRole('combobox', { name: 'Provider' }).click()
      await page.getByRole('option', { name: given.provider }).click()
      for (const [label, text] of Object.entries(given.typed))
        await page.getByRole('textbox', { name: label }).fill(text)
      await page.getByRole('combobox', { name: 'Models' }).fill('m')
      await page.getByRole('combobox', { name: 'Models' }).press('Enter')
      await page.getByRole('button', { name: 'Save channel' }).click()
      await page.getByRole('heading', { level: 1, name: given.name }).waitFor()
      await createByApi({ ...given.api, name: `${given.name}-api` })
      const { id: _, name: __, ...byForm } = comparable(await saved(given.name))
      const { id: ___, name: ____, ...byApi } = comparable(await saved(`${given.name}-api`))
      expect(byForm).toEqual(byApi)
      await page.context().close()
    },
  )
})

describe.skipIf(withoutBrowser())('the list of channels', () => {
  let stage: ConsoleStage
  const long = `a-channel-${'with-a-long-name-'.repeat(4)}xy`
  beforeAll(async () => {
    stage = await startConsoleStage()
    stage.upstream.script('scripted', { kind: 'whole' })
    await stage.api('POST', '/api/channel/', {
      mode: 'single',
      channel: {
        name: long,
        type: 1,
        base_url: stage.upstream.baseUrl('scripted'),
        key: 'k',
        models: 'scripted',
        group: 'default',
      },
    })
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('83: the result of a test is a line below the row, and nothing moves, also with a long name', async () => {
    expect(long).toHaveLength(80)
    const page = await stage.open('root', '/channels')
    const row = page.getByRole('row', { name: new RegExp(long) })
    await row.getByText('Not called yet').waitFor()
    const boxes = (): Promise<unknown> =>
      row.getByRole('cell').evaluateAll((cells) =>
        cells.map((cell) => {
          const { x, y, width, height } = cell.getBoundingClientRect()
          return [x, y, width, height].map(Math.round)
        }),
      )
    const inView = async (): Promise<void> => {
      for (const part of [
        row.getByText('Not called yet').or(row.getByText('Works', { exact: true })),
        row.getByRole('button', { name: 'Disable' }),
        row.getByRole('button', { name: 'Delete' }),
      ]) {
        const { x = -1, width = 0 } = (await part.boundingBox()) ?? {}
        expect(x).toBeGreaterThan(224)
        expect(x + width).toBeLessThanOrEqual(1280)
      }
    }
    await inView()
    const before = await boxes()
    await row.getByRole('button', { name: 'Test', exact: true }).click()
    const line = row.locator('xpath=./following-sibling::tr[1]')
    await line
      .getByRole('status', { name: 'Test result' })
      .getByText(/^Answered in/)
      .waitFor()
    await inView()
    await row.getByText('Works', { exact: true }).waitFor()
    expect(await boxes()).toEqual(before)
    expect(await row.getByRole('link').getAttribute('title')).toBe(long)
    await line.getByRole('button', { name: 'Close' }).click()
    await line.getByRole('status', { name: 'Test result' }).waitFor({ state: 'detached' })
    await page.context().close()
  })

  test('84, 85: channels are found by a part of their name and by their condition, and are tested in one request', async () => {
    const page = await stage.open('root', '/channels')
    const rows = page.getByRole('table', { name: 'Channels' }).locator('tbody').getByRole('link')
    await page.getByRole('searchbox', { name: 'Filter channels' }).fill('sec')
    await expect.poll(() => rows.allInnerTexts()).toEqual(['second'])
    expect(page.url()).toContain('q=sec')
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('/test')) asked.push(new URL(request.url()).pathname)
    })
    stage.upstream.script('second', { kind: 'status', status: 500 })
    await page.getByRole('button', { name: 'Test all' }).click()
    await page
      .getByRole('status', { name: 'Test result' })
      .getByText(/^Failed/)
      .waitFor()
    expect(asked).toEqual(['/api/channel/test/all'])
    expect(stage.upstream.received('first')).toHaveLength(0)
    await page.getByRole('searchbox', { name: 'Filter channels' }).fill('')
    await page.getByRole('radio', { name: 'Failing' }).check()
    await expect.poll(() => rows.allInnerTexts()).toEqual(['second'])
    await page.getByRole('radio', { name: 'Drained' }).check()
    await page.getByText('No channel matches.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expect.poll(() => rows.count()).toBeGreaterThan(4)
    await page.context().close()
  })

  test('87: models are chosen from a list; those of the channel are marked, and only the chosen ones are added', async () => {
    const page = await stage.open('root', '/channels/new')
    stage.upstream.script('lister', {
      kind: 'whole',
      body: JSON.stringify({ data: ['gpt-a', 'gpt-b', 'gpt-c', 'other'].map((id) => ({ id })) }),
    })
    await page.getByRole('combobox', { name: 'Provider' }).click()
    await page.getByRole('option', { name: 'Other, compatible with OpenAI' }).click()
    await page.getByRole('textbox', { name: 'Base URL' }).fill(stage.upstream.baseUrl('lister'))
    const models = page.getByRole('combobox', { name: 'Models' })
    await models.fill('gpt-a,mine')
    await models.press('Enter')
    await page.getByRole('button', { name: 'Fetch models' }).click()
    const dialog = page.getByRole('dialog', { name: 'Fetch models' })
    await dialog.getByText('in the channel').waitFor()
    expect(await dialog.getByRole('checkbox', { checked: true }).count()).toBe(1)
    await dialog.getByRole('searchbox', { name: 'Filter models' }).fill('GPT')
    expect(await dialog.getByRole('checkbox').count()).toBe(3)
    await dialog.getByRole('button', { name: 'Take all' }).click()
    await dialog.getByRole('checkbox', { name: 'gpt-c' }).uncheck()
    await dialog.getByRole('button', { name: 'Take chosen' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Save channel' }).click()
    await page.getByRole('heading', { level: 1, name: 'channel' }).waitFor()
    const { items } = await stage.api<{ items: { models: string }[] }>(
      'GET',
      '/api/channel/search?model=mine',
    )
    expect(items.map((one) => one.models)).toEqual(['gpt-a,mine,gpt-b'])
    await page.context().close()
  })

  test('109, 110: the routing page shows the channels of a model in order, recomputes without one of them, and simulates a call', async () => {
    const page = await stage.open('root', '/routing')
    await page.getByRole('combobox', { name: 'Model' }).click()
    await page.getByRole('combobox', { name: 'Model' }).pressSequentially('shaky')
    await page.getByRole('option', { name: 'shaky' }).click()
    const items = page.getByRole('list', { name: 'Route' }).getByRole('listitem')
    await expect
      .poll(async () => (await items.allInnerTexts()).map((text) => /first|second/.exec(text)?.[0]))
      .toEqual(['first', 'second'])
    expect(await items.first().innerText()).toMatch(/priority 10[\s\S]*first[\s\S]*100%/)
    await page.getByRole('switch', { name: 'Without first' }).check({ force: true })
    await items.filter({ hasText: 'left out here' }).waitFor()
    await page.getByRole('button', { name: 'Simulate a call' }).click()
    const simulation = page.getByRole('region', { name: 'Simulation' })
    await simulation.getByText('The call would go to: second.').waitFor()
    expect(page.url()).toContain('model=shaky')
    await page.context().close()
  })

  test('90: a failing channel is an incident on every page of an administrator, with suggested actions, until it works again', async () => {
    stage.upstream.script('first', { kind: 'status', status: 500 })
    stage.upstream.script('second', { kind: 'whole' })
    for (let call = 0; call < 2; call++) expect(await stage.call('shaky')).toBe(200)
    const page = await stage.open('root', '/keys')
    const incident = page.getByRole('region', { name: 'Incident' })
    await incident.getByText(/Failing: 100% of its calls failed, since \d\d:\d\d\./).waitFor()
    await incident.getByText(/2 answered by other channels, 0 lost\./).waitFor()
    expect(await incident.getByRole('link').innerText()).toBe('first')
    expect(await incident.getByRole('button').allInnerTexts()).toEqual(['Drain', 'Disable', 'Test', 'Hide'])
    const member = await stage.open('member', '/keys')
    await member.getByRole('heading', { level: 1 }).waitFor()
    expect(await member.getByRole('region', { name: 'Incident' }).count()).toBe(0)
    await member.context().close()

    stage.upstream.script('first', { kind: 'whole' })
    await incident.getByRole('button', { name: 'Drain' }).click()
    await incident.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Undo' }).click()
    await incident.waitFor()
    await incident.getByRole('button', { name: 'Hide' }).click()
    await incident.waitFor({ state: 'detached' })
    expect(await stage.call('shaky')).toBe(200)
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
    expect(await incident.count()).toBe(0)
    await page.context().close()
  })

  test('86: a key of a channel is added, retired and used again; its text is shown nowhere', async () => {
    const { ids } = await stage.api<{ ids: number[] }>('POST', '/api/channel/', {
      mode: 'single',
      channel: { name: 'rotated', type: 1, key: 'sk-first-key-0123456789', models: 'm', group: 'default' },
    })
    const page = await stage.open('root', `/channels/${ids[0]}`)
    const table = page.getByRole('table', { name: 'Keys' })
    await table.getByRole('row', { name: /1 sk-f\*+6789 Works/ }).waitFor()
    await page.getByRole('button', { name: 'Add key' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add key' })
    await dialog.getByRole('textbox', { name: 'API keys' }).fill('sk-second-key-9876543210')
    await dialog.getByRole('button', { name: 'Add key' }).click()
    const second = table.getByRole('row', { name: /sk-s\*+3210/ })
    await second.getByText('Works').waitFor()
    const first = table.getByRole('row', { name: /sk-f/ })
    await first.getByRole('button', { name: 'Retire' }).click()
    await first.getByText('Retired', { exact: true }).waitFor()
    await first.getByRole('button', { name: 'Use again' }).click()
    await first.getByText('Works').waitFor()
    await second.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog', { name: 'Remove key' }).getByRole('button', { name: 'Remove' }).click()
    await second.waitFor({ state: 'detached' })
    expect(await page.content()).not.toMatch(/first-key|second-key/)
    await page.context().close()
  })

  test('145: the keys of a channel show what their provider left of them, until when, and the last hour, in both languages', async () => {
    const headers = {
      'x-ratelimit-limit-requests': '1000',
      'x-ratelimit-remaining-requests': '37',
      'x-ratelimit-reset-requests': '10m0s',
      'anthropic-ratelimit-tokens-remaining': '80000',
    }
    stage.upstream.script('scripted', { kind: 'whole', headers })
    const { items } = await stage.api<{ items: { id: number; name: string }[] }>(
      'GET',
      '/api/channel/search?keyword=scripted&page_size=100',
    )
    const id = items.find(({ name }) => name === 'scripted')?.id
    // Other channels may serve the model, too.
    const left = async (): Promise<number | undefined> => {
      expect(await stage.call('scripted')).toBe(200)
      const keys = await stage.api<{ limits: { requests?: { remaining: number } } }[]>(
        'GET',
        `/api/channel/${id}/keys`,
      )
      return keys[0]?.limits.requests?.remaining
    }
    await expect.poll(left).toBe(37)
    const path = `/channels/${id}`
    const page = await stage.open('root', path)
    const row = page.getByRole('table', { name: 'Keys' }).getByRole('row').nth(1)
    await row.getByText('37 of 1,000 requests').waitFor()
    await row.getByText('80,000 tokens').waitFor()
    await row.getByRole('img', { name: 'Last hour: at least 4 % left' }).waitFor()
    const reset = Date.parse((await row.locator('time').first().getAttribute('datetime')) ?? '')
    expect(Math.abs(reset - Date.now() - 600_000)).toBeLessThan(120_000)
    await page.context().close()
    const chinese = await stage.open('root', path, { locale: 'zh-CN' })
    await chinese.getByText('剩余 37 / 1,000 次请求').waitFor()
    await chinese.getByRole('img', { name: '最近一小时：最低剩余 4%' }).waitFor()
    await chinese.context().close()
  })

  test('89: a channel of gateway.yaml is drained by one click, and one click undoes that', async () => {
    const page = await stage.open('root', '/channels')
    const row = page.getByRole('row', { name: /^first / })
    await row.getByRole('button', { name: 'Drain' }).click()
    await row.getByText('Drained', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await row.getByText(/^(?:Works|Not called yet)$/).waitFor()
    await page.context().close()
  })
})

/** A channel without what differs between two with the same fields. */
function comparable(channel: Saved): Omit<Saved, never> {
  const { version: _, created_time: __, ...fields } = channel as Saved & Record<string, unknown>
  return fields
}
