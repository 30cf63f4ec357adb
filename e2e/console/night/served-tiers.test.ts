import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../../../test/fixtures/client.ts'
import { wholeMessage } from '../../../test/fixtures/messages-behaviour.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

/** Quota units a token: 0.5 for input, 1 for output. */
const PRICE = { input: '1', output: '2', service: { flex: '0.5', fast: '3' } }

describe.skipIf(withoutBrowser())('tiers of service in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.api('POST', '/api/channel/', {
      name: 'tiers',
      type: 1,
      base_url: stage.upstream.baseUrl('tiers'),
      key: 'k',
      models: 'tiered',
      settings: JSON.stringify({ allow_service_tier: true }),
    })
    await stage.api('PUT', '/api/models/price', { model: 'tiered', price: PRICE })
  })
  afterAll(async () => {
    await stage?.close()
  })

  /** Makes a call that asks for a tier, and is served in another. */
  async function callIn(asked: string | undefined, served: string): Promise<void> {
    stage.upstream.script('tiers', {
      kind: 'whole',
      body: JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        created: 7,
        model: 'tiered',
        choices: [{ index: 0, message: { role: 'assistant', content: 'said' }, finish_reason: 'stop' }],
        service_tier: served,
        usage: { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 },
      }),
    })
    const body = {
      model: 'tiered',
      messages: [{ role: 'user', content: 'hi' }],
      ...(asked !== undefined && { service_tier: asked }),
    }
    const { status, text } = await call(stage.gateway.url, body, {
      key: PEOPLE.root.key.replace(/^sk-/, ''),
      path: '/v1/chat/completions',
    })
    expect(status, text).toBe(200)
  }

  const headings = (page: Page): Promise<string[]> =>
    page.getByRole('table', { name: 'Calls' }).getByRole('columnheader').allInnerTexts()

  test('the log has a column for the service tier once a call has one, and the column can be hidden', async () => {
    await callIn(undefined, 'default')
    const page = await stage.open('root', '/logs')
    await page.getByRole('row', { name: /tiered/ }).waitFor()
    expect(await headings(page)).not.toContain('Tier')

    await callIn('priority', 'default')
    await callIn('flex', 'flex')
    await page.reload()
    const rows = page.getByRole('table', { name: 'Calls' }).getByRole('row', { name: /tiered/ })
    await expect.poll(() => rows.count()).toBe(3)
    expect(await headings(page)).toContain('Tier')
    await rows.filter({ hasText: 'Standard, asked for Fast' }).waitFor()
    await rows.filter({ hasText: 'Flex' }).waitFor()
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('menuitemcheckbox', { name: 'Tier' }).click()
    await expect.poll(() => headings(page)).not.toContain('Tier')
    await page.getByRole('menuitemcheckbox', { name: 'Tier' }).click()
    await page.close()
  })

  test('the region in which a call was served is a column of the log', async () => {
    await stage.api('POST', '/api/channel/', {
      name: 'regional',
      type: 14,
      base_url: stage.upstream.baseUrl('regional'),
      key: 'k',
      models: 'regional',
    })
    await stage.api('PUT', '/api/models/price', {
      model: 'regional',
      price: { ...PRICE, regions: { us: '1.1' } },
    })
    const counts = { input_tokens: 1_000, output_tokens: 100, inference_geo: 'us' }
    stage.upstream.script('regional', wholeMessage([{ text: 'said' }], { counts }))
    expect(await stage.call('regional')).toBe(200)
    const page = await stage.open('root', '/logs?model=regional')
    const row = page.getByRole('table', { name: 'Calls' }).getByRole('row', { name: /regional/ })
    await row.getByText('us', { exact: true }).waitFor()
    expect(await headings(page)).toContain('Region')
    await row.locator('[data-row-link]').click()
    const sheet = page.getByRole('dialog', { name: 'Call details' })
    await sheet.getByText('The prices include the factor of the region us').waitFor()
    // 1,000 × 0.55 + 100 × 1.1
    await sheet.getByText('In quota units: 660 × 1 = 660, rounded once.').waitFor()
    await page.close()
  })

  test('usage is divided by service tier, and a click on a tier in the table filters the usage page and the log', async () => {
    await callIn('flex', 'flex')
    const page = await stage.open('root', '/usage?period=today&model=tiered')
    await page.getByRole('combobox', { name: 'Group by' }).click()
    await page.getByRole('option', { name: 'Tier' }).click()
    const table = page.getByRole('table', { name: 'Breakdown' })
    await table.getByRole('row', { name: /^Standard / }).waitFor()
    await table.getByRole('button', { name: 'Flex' }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('tier')).toBe('flex')
    await expect.poll(() => table.getByRole('row', { name: /^Standard / }).count()).toBe(0)
    await page.goto('/logs?tier=flex&model=tiered')
    const rows = page.getByRole('table', { name: 'Calls' }).getByRole('row', { name: /tiered/ })
    await rows.filter({ hasText: 'Flex' }).first().waitFor()
    expect(await rows.filter({ hasText: 'Standard' }).count()).toBe(0)
    await page.close()
  })

  test('the cost of a call names the requested and the served tier, and its lines add up to the charge', async () => {
    await callIn('priority', 'default')
    await callIn('flex', 'flex')
    const page = await stage.open('root', '/logs')
    const open = async (text: string) => {
      await page
        .getByRole('row', { name: /tiered/ })
        .filter({ hasText: text })
        .locator('[data-row-link]')
        .first()
        .click()
      const sheet = page.getByRole('dialog', { name: 'Call details' })
      await sheet.getByRole('heading', { name: 'Timing' }).waitFor()
      return sheet
    }
    const asked = await open('asked for Fast')
    await asked.getByText('Asked for fast, served standard.').waitFor()
    await asked.getByText('In quota units: 600 × 1 = 600, rounded once.').waitFor()
    await page.keyboard.press('Escape')
    await asked.waitFor({ state: 'detached' })

    const flex = await open('Flex')
    await flex.getByText('The prices are those of the tier flex.').waitFor()
    const lines = await flex.getByRole('table', { name: 'Cost lines' }).getByRole('row').allInnerTexts()
    expect(lines.slice(1, 3).map((text) => text.split(/\s*\t\s*/))).toEqual([
      ['Input', '1,000', '$0.50/M', '$0.0005'],
      ['Output', '100', '$1.00/M', '$0.0001'],
    ])
    await flex.getByText('In quota units: 300 × 1 = 300, rounded once.').waitFor()
    await page.close()
  })
})
