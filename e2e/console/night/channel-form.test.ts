import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

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
  readonly repair: boolean
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

  test('the form of a channel suggests an unused name for each provider, and text typed as Provider searches providers', async () => {
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
    // Each provider has a name of its own.
    const names: string[] = []
    await provider.click()
    const all = await page.getByRole('option').allInnerTexts()
    expect(all.length).toBeGreaterThan(10)
    await provider.press('Escape')
    for (const one of all) {
      await provider.click()
      await page.getByRole('option', { name: one, exact: true }).click()
      await expect.poll(() => name.inputValue()).not.toBe(names.at(-1) ?? 'mistral')
      names.push(await name.inputValue())
    }
    for (const one of names) expect(one).toMatch(/^[a-z][a-z0-9-]*$/)
    expect(new Set(names).size).toBe(all.length)
    await provider.click()
    await provider.pressSequentially('no such provider')
    await page.getByText('Nothing found').waitFor()
    await provider.press('Escape')
    await page.close()
  })

  test('a channel that is not saved yet can be tested without a name, and the focus moves to its first invalid field', async () => {
    const page = await stage.open('root', '/channels/new')
    await page.getByRole('combobox', { name: 'Provider' }).click()
    await page.getByRole('option', { name: 'Other, compatible with OpenAI' }).click()
    const name = page.getByRole('textbox', { name: 'Name', exact: true })
    await expect.poll(() => name.inputValue()).toBe('channel')
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
    await page.close()
  })

  test('the advanced settings of a channel are saved, and shown when the channel is opened again', async () => {
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
    await page.getByRole('checkbox', { name: 'Repair answers' }).check()
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
    expect(channel.repair).toBe(true)

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
    expect(await page.getByRole('textbox', { name: 'Proxy' }).inputValue()).toBe('http://proxy.example:3128')
    expect(await page.getByRole('textbox', { name: 'Test model' }).inputValue()).toBe('asked')
    expect(await page.getByRole('textbox', { name: 'Probe every' }).inputValue()).toBe('30s')
    expect(await page.getByRole('textbox', { name: 'System prompt' }).inputValue()).toBe('Be brief.')
    expect(await tier.inputValue()).toBe('fast')
    expect(await page.getByRole('checkbox', { name: 'Repair answers' }).isChecked()).toBe(true)
    const checked = page.getByRole('group', { name: 'Protocols' }).getByRole('checkbox', { checked: true })
    expect(await checked.count()).toBe(2)
    await page.close()
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
    'the form of a $provider channel has its own fields, and saves the channel that the API would create',
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
      await page.close()
    },
  )
})

/** A channel without what differs between two with the same fields. */
function comparable(channel: Saved): Omit<Saved, never> {
  const { version: _, created_time: __, ...fields } = channel as Saved & Record<string, unknown>
  return fields
}
