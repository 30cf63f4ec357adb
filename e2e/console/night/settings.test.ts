import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { readEnvironment } from '../../../src/config/environment.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('the settings of the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.api('PUT', '/api/option/', {
      key: 'GroupRatio',
      value: JSON.stringify({ default: 1, vip: 0.8, sales: 1 }),
    })
  })
  afterAll(async () => {
    await stage?.close()
  })
  const optionOf = async (wanted: string): Promise<unknown> => {
    const options = await stage.api<{ key: string; value: string }[]>('GET', '/api/option/')
    return JSON.parse(options.find(({ key }) => key === wanted)?.value ?? 'null')
  }

  test('options, fallbacks and balancing can be set; unsaved changes are in a bar with Discard', async () => {
    const page = await stage.open('root', '/settings')
    const perUser = page.getByRole('textbox', { name: 'Keys per user' })
    const save = page.getByRole('button', { name: 'Save settings' })
    await perUser.fill('20')
    await page.getByText('1 change not saved').waitFor()
    const fallback = page.getByRole('region', { name: 'Fallback' })
    await fallback.getByRole('button', { name: 'Add fallback' }).click()
    await fallback.getByRole('textbox', { name: 'Model', exact: true }).last().fill('house-model')
    await fallback.getByRole('textbox', { name: 'Fallback models' }).last().fill('demo-chat, demo-claude')
    await fallback.getByRole('button', { name: 'Add successor' }).click()
    const successor = fallback.getByRole('group', { name: 'Successor' })
    await successor.getByRole('textbox', { name: 'Model', exact: true }).last().fill('house-model')
    await successor.getByRole('textbox', { name: 'Successor house-model' }).fill('demo-claude')
    await fallback.getByRole('button', { name: 'Add balance' }).click()
    const balance = fallback.getByRole('group', { name: 'Balance' })
    await balance.getByRole('textbox', { name: 'Model', exact: true }).last().fill('house-model')
    await balance
      .getByRole('combobox')
      .or(balance.getByRole('textbox', { name: /^Balance/ }))
      .last()
      .click()
    await page.getByRole('option', { name: 'Least busy' }).click()
    await page.getByText('4 changes not saved').waitFor()
    for (const top of [0, 100_000]) {
      await page.mouse.wheel(0, top === 0 ? -100_000 : top)
      const box = await save.boundingBox()
      expect(box?.y).toBeGreaterThanOrEqual(0)
      expect((box?.y ?? 900) + (box?.height ?? 0)).toBeLessThanOrEqual(800)
    }
    await save.click()
    await page
      .getByRole('status')
      .filter({ hasText: /^Saved/ })
      .waitFor()
    expect(await optionOf('token_setting.max_user_tokens')).toBe(20)
    expect(await optionOf('ModelFallback')).toEqual({ 'house-model': ['demo-chat', 'demo-claude'] })
    expect(await optionOf('ModelSuccessor')).toEqual({ 'house-model': 'demo-claude' })
    expect(await optionOf('ModelBalance')).toEqual({ 'house-model': 'least_busy' })

    await perUser.fill('35')
    await page.getByText('1 change not saved').waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
    expect(await perUser.inputValue()).toBe('20')
    expect(await save.isDisabled()).toBe(true)
    await page.close()
  })

  test('what is saved before another option is refused can be changed and saved again', async () => {
    const page = await stage.open('root', '/settings')
    const perUser = page.getByRole('textbox', { name: 'Keys per user' })
    const save = page.getByRole('button', { name: 'Save settings' })
    const successor = page.getByRole('group', { name: 'Successor' })
    await perUser.fill('41')
    await successor.getByRole('button', { name: 'Add successor' }).click()
    await successor.getByRole('textbox', { name: 'Model', exact: true }).last().fill('refused-model')
    await successor.getByRole('textbox', { name: 'Successor refused-model' }).fill('refused-model')
    await save.click()
    await page.getByText('1 change not saved').waitFor()
    expect(await optionOf('token_setting.max_user_tokens')).toBe(41)

    await perUser.fill('42')
    await successor.getByRole('textbox', { name: 'Successor refused-model' }).fill('demo-claude')
    await save.click()
    await page
      .getByRole('status')
      .filter({ hasText: /^Saved/ })
      .waitFor()
    expect(await optionOf('token_setting.max_user_tokens')).toBe(42)
    expect(await optionOf('ModelSuccessor')).toMatchObject({ 'refused-model': 'demo-claude' })
    await page.close()
  })

  test('what is typed while settings are being saved stays typed', async () => {
    const page = await stage.open('root', '/settings')
    const perUser = page.getByRole('textbox', { name: 'Keys per user' })
    const save = page.getByRole('button', { name: 'Save settings' })
    const typed = Promise.withResolvers<undefined>()
    await page.route('**/api/option/', async (route) => {
      if (route.request().method() === 'PUT') await typed.promise
      await route.continue()
    })
    await perUser.fill('51')
    await save.click()
    await perUser.fill('52')
    typed.resolve(undefined)
    await page.getByText(/^Saved/).waitFor()
    expect(await perUser.inputValue()).toBe('52')
    await save.click()
    await expect.poll(() => optionOf('token_setting.max_user_tokens')).toBe(52)
    await page.close()
  })

  test('who takes the value of another administrator keeps the other settings that are typed', async () => {
    const page = await stage.open('root', '/settings')
    const perUser = page.getByRole('textbox', { name: 'Keys per user' })
    const days = page.getByRole('textbox', { name: 'Days that single calls are kept' })
    const save = page.getByRole('button', { name: 'Save settings' })
    await perUser.fill('61')
    await days.fill('55')
    await stage.api('PUT', '/api/option/', { key: 'token_setting.max_user_tokens', value: '62' })
    await save.click()
    const conflict = page.getByRole('dialog', { name: 'Changed meanwhile' })
    await conflict.getByRole('button', { name: 'Take theirs' }).click()
    await expect.poll(() => perUser.inputValue()).toBe('62')
    expect(await days.inputValue()).toBe('55')
    await page.getByText('1 change not saved').waitFor()
    await save.click()
    await expect.poll(() => optionOf('usage_log_days')).toBe(55)
    expect(await optionOf('token_setting.max_user_tokens')).toBe(62)
    await page.close()
  })

  test('settings that only gateway.yaml can change are shown with the name of this file and the line', async () => {
    const lines = readFileSync(join(stage.gateway.dataDir, 'gateway.yaml'), 'utf8').split('\n')
    const lineOf = (start: string): number => lines.findIndex((line) => line.trim().startsWith(start)) + 1
    const page = await stage.open('root', '/settings')
    const limits = page.getByRole('region', { name: 'Rate limits' })
    await limits
      .getByText(`from gateway.yaml, line ${lineOf('critical:')}`)
      .first()
      .waitFor()
    const signIn = page.getByRole('region', { name: 'Sign-in' })
    await signIn.getByText('login: { password: true }', { exact: true }).waitFor()
    const inFile = page.getByRole('region', { name: 'Only in the file' })
    await inFile.getByText(`No from gateway.yaml, line ${lineOf('options: { model_dates')}`).waitFor()
    await page.close()
  })

  test('the line that is offered for each setting of the file is one that the gateway reads', async () => {
    const page = await stage.open('root', '/settings')
    const fileOnly = page.getByRole('region', { name: /^(?:Rate limits|Sign-in|Only in the file)$/ })
    await fileOnly.getByText(/^options: \{ smtp:/).waitFor()
    const lines = await fileOnly.locator('dd > code').allInnerTexts()
    expect(lines.length).toBeGreaterThan(25)
    for (const line of lines) {
      const folder = mkdtempSync(join(tmpdir(), 'sluice-line-'))
      writeFileSync(join(folder, 'prices.yaml'), '{}\n')
      const config = join(folder, 'gateway.yaml')
      writeFileSync(config, line, { mode: 0o600 })
      const environment = {
        DATA_DIR: folder,
        OIDC_SECRET: 'a-secret-of-the-client',
        METRICS_TOKEN: 'm'.repeat(32),
      }
      expect(() => readConfig(readEnvironment(environment, { config })), line).not.toThrow()
    }
    await page.close()
  })

  test('the settings lead to the page of groups, which alone changes them', async () => {
    const page = await stage.open('root', '/settings')
    const groups = page.getByRole('region', { name: 'Groups' })
    expect(await groups.locator('input, button').count()).toBe(0)
    await groups.getByRole('link', { name: 'Groups' }).click()
    await page.getByRole('heading', { name: 'Groups', level: 1 }).waitFor()
    await page.close()
  })

  test('the index of the settings leads to each section, with unsaved changes too', async () => {
    const page = await stage.open('root', '/settings')
    const save = page.getByRole('button', { name: 'Save settings' })
    await page.getByRole('textbox', { name: 'Keys per user' }).fill('77')
    const index = page.getByRole('navigation', { name: 'Sections' })
    const names = await index.getByRole('link').allInnerTexts()
    const regions = await page
      .locator('main section[aria-label]')
      .evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')))
    expect(names).toEqual(regions)
    for (const name of names) {
      await index.getByRole('link', { name, exact: true }).click()
      const region = page.getByRole('region', { name, exact: true })
      await expect.poll(() => region.evaluate((one) => one === document.activeElement)).toBe(true)
      await expect.poll(async () => (await region.boundingBox())?.y ?? 900).toBeLessThan(700)
    }
    expect(await save.isEnabled()).toBe(true)
    await page.close()
  })

  test('a refused file has a banner on every page, which takes one line on a phone until it is opened', async () => {
    const file = join(stage.gateway.dataDir, 'gateway.yaml')
    const before = readFileSync(file, 'utf8')
    writeFileSync(file, `${before}\noptoins: {}\n`)
    const trouble = () => stage.api<{ refused_configuration: object | null }>('GET', '/api/console')
    await expect.poll(async () => (await trouble()).refused_configuration).not.toBeNull()
    const page = await stage.open('root', '/settings', { viewport: { width: 390, height: 800 } })
    const banner = page.getByRole('region', { name: 'Incident' }).getByRole('alert')
    await banner.getByText('Configuration file refused').waitFor()
    expect((await banner.boundingBox())?.height).toBeLessThan(48)
    const mistake = banner.getByText(/optoins: unknown key.*The next start would fail\./)
    expect(await mistake.isVisible()).toBe(false)
    await banner.getByRole('button', { name: 'Details' }).click()
    await mistake.waitFor()
    await page.setViewportSize({ width: 1280, height: 800 })
    await mistake.waitFor()
    writeFileSync(file, before)
    await expect.poll(async () => (await trouble()).refused_configuration).toBeNull()
    await page.close()
  })
})
