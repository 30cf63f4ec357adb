import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AlertReceiver, startAlertReceiver } from '../../../test/fixtures/alert-receiver.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('the settings of the console', () => {
  let stage: ConsoleStage
  let receiver: AlertReceiver
  beforeAll(async () => {
    stage = await startConsoleStage()
    receiver = await startAlertReceiver()
  })
  afterAll(async () => {
    await stage?.close()
    await receiver?.stop()
  })

  test('a receiver of alerts is added, tested and removed; its secret is shown once', async () => {
    const page = await stage.open('root', '/settings')
    const region = page.getByRole('region', { name: 'Alerts' })
    await region.getByRole('button', { name: 'Add receiver' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add receiver' })
    await dialog.getByRole('textbox', { name: 'URL' }).fill(`${receiver.url}/private-path`)
    await dialog.getByRole('button', { name: 'Add receiver' }).click()
    const secret = dialog.getByRole('textbox', { name: 'Secret' })
    expect(await secret.inputValue()).toMatch(/^whsec_/)
    await page.mouse.click(5, 5)
    await dialog.getByRole('button', { name: 'Done' }).click()
    const row = region.getByRole('row', { name: new RegExp(new URL(receiver.url).host) })
    await row.getByRole('button', { name: 'Send a test' }).click()
    await row.getByText(/^Answered 204 in /).waitFor()
    expect(receiver.received).toMatchObject([{ type: 'test', data: {} }])
    expect(await page.content()).not.toMatch(/whsec_|private-path/)
    await row.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog', { name: 'Remove' }).getByRole('button', { name: 'Remove' }).click()
    await row.waitFor({ state: 'detached' })
    await page.close()
  })

  test('the console offers only a root user without a password to set a password, and the offer stays closed once closed', async () => {
    const page = await stage.open('root', '/keys')
    const offer = page.getByRole('link', { name: 'Set a password' })
    await offer.waitFor()
    await page.getByRole('button', { name: 'Not now' }).click()
    await offer.waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('heading', { name: 'API keys' }).waitFor()
    expect(await offer.count()).toBe(0)
    await page.close()
    // A member that came by a token has no password either.
    const member = await stage.open('caller', '/keys')
    await member.getByRole('heading', { name: 'API keys' }).waitFor()
    expect(await member.getByRole('link', { name: 'Set a password' }).count()).toBe(0)
    await member.close()
  })
})
