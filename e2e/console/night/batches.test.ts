import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BatchClient, chatLine } from '../../../test/fixtures/batches.ts'
import { axeViolations } from '../axe.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

/** A line whose provider refuses it. */
const refused = chatLine('the wrong one', 'demo-chat', {
  messages: [{ role: 'user', content: 'simulate(status=400)' }],
})

describe.skipIf(withoutBrowser())('the page of batches', () => {
  let stage: ConsoleStage
  let client: BatchClient
  let own: string
  beforeAll(async () => {
    stage = await startConsoleStage()
    client = new BatchClient(stage.gateway.url, PEOPLE.root.key)
    own = (await client.ended((await client.make([chatLine('a', 'demo-chat'), refused])).id)).id
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('a batch is listed with its progress and cost, and its page says which line failed and why', async () => {
    const page = await stage.open('root', '/batches')
    const row = page
      .getByRole('table', { name: 'Batches' })
      .getByRole('row')
      .filter({ has: page.getByTitle(own) })
    await row.waitFor()
    // Ids of one time begin alike.
    const [shown = ''] = await row.getByRole('link').allInnerTexts()
    expect(shown).toBe(`${own.slice(0, 10)}…${own.slice(-8)}`)
    expect(await row.getByRole('cell').allInnerTexts()).toEqual(
      expect.arrayContaining(['Completed', 'root', 'demo-chat', '2 of 2', '1']),
    )
    await row.getByRole('link', { name: shown }).click()
    const failed = page
      .getByRole('table', { name: 'Failed lines' })
      .getByRole('row', { name: /the wrong one/ })
    await failed.getByText('400').waitFor()
    expect(await axeViolations(page)).toEqual([])
    const downloading = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download results' }).click()
    expect((await downloading).suggestedFilename()).toBe('results.jsonl')
    await page.getByRole('link', { name: 'Calls in the log' }).click()
    await page.getByRole('textbox', { name: 'Batch' }).waitFor()
    await page.close()
  })

  test('a running batch is cancelled after a confirmation', async () => {
    stage.upstream.script('scripted', { kind: 'silence' })
    const { id } = await client.make(Array.from({ length: 20 }, (_, at) => chatLine(String(at), 'scripted')))
    const page = await stage.open('admin', `/batches/${id}`)
    await page.getByText('Running').waitFor()
    await page.getByRole('button', { name: 'Cancel batch' }).click()
    const dialog = page.getByRole('dialog', { name: 'Cancel the batch?' })
    await dialog.getByText('20 lines without an answer').waitFor()
    await dialog.getByRole('button', { name: 'Cancel batch' }).click()
    await page
      .getByText(/Being cancelled|Cancelled/)
      .first()
      .waitFor()
    expect((await client.batch(id)).status).toMatch(/^cancel/)
    await page.close()
  })

  test('a member sees the own batches alone', async () => {
    const page = await stage.open('caller', '/batches')
    await page.getByText('No batches yet.').waitFor()
    await page.goto(`${stage.gateway.url}/batches/${own}`)
    await page.getByRole('heading', { name: 'This batch does not exist, or is not yours.' }).waitFor()
    await page.close()
  })
})
