import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

describe.skipIf(withoutBrowser())('models of images, speech and embeddings in the playground', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  async function sent(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text)
    await page.getByRole('button', { name: 'Send' }).click()
  }

  /** Follows the link of the cost, and checks that the call has that model and a charge. */
  async function checkCost(page: Page, model: string): Promise<void> {
    const link = page.getByRole('link', { name: /^Call details: \$/ })
    const href = await link.getAttribute('href')
    const call = await stage.api<{ model_name: string; quota: number }>(
      'GET',
      `/api/log/${href?.split('/').at(-1)}`,
    )
    expect(call).toMatchObject({ model_name: model })
    expect(call.quota).toBeGreaterThan(0)
    await link.click()
    await page.getByRole('dialog', { name: 'Call details' }).waitFor()
  }

  test('a picture of an images model is shown, with its cost', async () => {
    const page = await stage.open('root', '/playground?model=demo-image')
    await sent(page, 'A lighthouse')
    const picture = page.getByRole('region', { name: 'demo-image, Images' }).getByRole('img')
    await picture.waitFor()
    await expect.poll(() => picture.evaluate((one: HTMLImageElement) => one.naturalWidth)).toBeGreaterThan(0)
    await page.getByText('$5.00 in, $10.00 out per million + $0.042 an image').first().waitFor()
    await page.getByRole('link', { name: /^Call details: \$/ }).waitFor()
    // A picture comes at once, and nothing of a conversation applies to it.
    expect(await page.getByText('tokens/s').count()).toBe(0)
    await page.getByRole('textbox', { name: 'Size' }).waitFor()
    expect(await page.getByRole('radio').count()).toBe(0)
    await checkCost(page, 'demo-image')
    expect(stage.complaints).toEqual([])
    await page.close()
  })

  test('the playground plays generated speech and shows its cost; after a reload the messages remain, but not the audio', async () => {
    const page = await stage.open('root', '/playground?model=demo-speech')
    await page.getByRole('textbox', { name: 'Voice' }).fill('verse')
    const asked = page.waitForRequest(/\/api\/playground\/audio\/speech/)
    await sent(page, 'Good morning')
    expect((await asked).postDataJSON()).toEqual({
      model: 'demo-speech',
      input: 'Good morning',
      voice: 'verse',
    })
    const audio = page.getByLabel('Speech', { exact: true })
    await expect.poll(() => audio.evaluate((one: HTMLAudioElement) => one.duration)).toBeGreaterThan(0)
    await page.reload()
    await page.getByText('Good morning').waitFor()
    expect(await page.locator('audio').count()).toBe(0)
    await checkCost(page, 'demo-speech')
    expect(stage.complaints).toEqual([])
    await page.close()
  })

  test('the playground shows dimensions and cosine similarities of embeddings, and an example that calls /v1/embeddings', async () => {
    const page = await stage.open('root', '/playground?model=demo-embed')
    await page.getByText('For embeddings, each line is a text.').waitFor()
    await page.getByText('$0.02 in per million', { exact: true }).first().waitFor()
    await sent(page, 'a cat\na cat\nquantum mechanics')
    const answer = page.getByRole('region', { name: 'demo-embed, Embeddings' })
    await answer.getByText('Dimensions').waitFor()
    const text = await answer.innerText()
    expect(text).toMatch(/Cosine of text 1 and text 2\s*1\.0000/)
    expect(text).toMatch(/Cosine of text 1 and text 3\s*-?0\.\d{4}/)
    await page.getByRole('button', { name: 'View code' }).click()
    const code = page.getByRole('dialog', { name: 'View code' })
    expect(await code.getByRole('tabpanel').innerText()).toContain('/v1/embeddings')
    expect(await code.getByRole('tab').allInnerTexts()).toEqual(['curl'])
    await page.keyboard.press('Escape')
    await checkCost(page, 'demo-embed')
    expect(stage.complaints).toEqual([])
    await page.close()
  })
})
