import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../../../test/fixtures/behaviour.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

/** USD that a call of the model `scripted` costs. */
const COST = 0.0012

describe.skipIf(withoutBrowser())('the answer cache in the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    stage.upstream.script('scripted', { kind: 'whole', usage: usageText(1000, 100) })
  })
  afterAll(async () => {
    await stage?.close()
  })
  const option = async (): Promise<string | undefined> => {
    const options = await stage.api<{ key: string; value: string }[]>('GET', '/api/option/')
    return options.find(({ key }) => key === 'cache')?.value
  }

  test('the answer cache is turned on in the settings, and an invalid duration is refused beside its field', async () => {
    const page = await stage.open('root', '/settings')
    const section = page.getByRole('region', { name: 'Answer cache' })
    const save = page.getByRole('button', { name: 'Save settings' })
    expect(await section.getByRole('textbox', { name: 'Time for all models' }).count()).toBe(0)
    await section.getByRole('switch', { name: 'Keep answers for equal requests' }).click()
    const time = section.getByRole('textbox', { name: 'Time for all models' })
    expect(await time.inputValue()).toBe('10m')
    await time.fill('soon')
    await save.click()
    await section.getByText('expected a duration such as 24h or 720h, or 0').waitFor()
    expect(await option()).toBe('')
    await time.fill('30m')
    await section.getByRole('textbox', { name: 'Maximum size' }).fill('2GB')
    await section.getByRole('textbox', { name: 'Part of the charge' }).fill('0.25')
    await section.getByRole('combobox', { name: 'Shared by' }).click()
    await page.getByRole('option', { name: 'Calls of one user' }).click()
    await save.click()
    await page
      .getByRole('status')
      .filter({ hasText: /^Saved/ })
      .waitFor()
    expect(JSON.parse((await option()) ?? '')).toEqual({
      ttl: '30m',
      max_ttl: '1h',
      scope: 'user',
      most: 2_000_000_000,
      price: '0.25',
    })
    expect(await section.getByRole('textbox', { name: 'Maximum size' }).inputValue()).toBe('2000000000')
    await page.close()
  })

  test('the usage page shows the hits of the answer cache, their share of all calls and what they saved', async () => {
    for (let index = 0; index < 4; index += 1) expect(await stage.call('scripted')).toBe(200)
    const sums = () => stage.api<{ totals: { requests: number; hits: number } }>('GET', '/api/usage?by=none')
    await expect.poll(async () => (await sums()).totals.requests).toBe(4)
    const page = await stage.open('root', '/usage?period=today')
    const section = page.getByRole('region', { name: 'Answer cache' })
    await section.waitFor()
    const text = (await section.innerText()).replaceAll(/\s+/g, ' ')
    expect(text).toMatch(/Hits 3 /)
    expect(text).toContain('75%')
    expect(text).toContain('3 of 4 calls')
    // Three quarters of each of the three charges.
    expect(text).toContain(`$${(3 * COST * 3) / 4}`)
    await page.close()
  })

  test('the answer cache is turned off in the settings', async () => {
    const page = await stage.open('root', '/settings')
    const section = page.getByRole('region', { name: 'Answer cache' })
    await section.getByRole('switch', { name: 'Keep answers for equal requests' }).click()
    await page.getByRole('button', { name: 'Save settings' }).click()
    await page
      .getByRole('status')
      .filter({ hasText: /^Saved/ })
      .waitFor()
    expect(await option()).toBe('')
    await page.close()
    expect(stage.complaints).toEqual([])
  })
})
