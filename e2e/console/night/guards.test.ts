import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { axeViolations } from '../axe.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from '../console-stage.ts'

interface Guard {
  readonly name: string
  readonly do: string
  readonly mode: string
  readonly where: readonly string[]
  readonly match: object
  readonly models: readonly string[] | null
  readonly sample: number
}

const FILED = `
guards:
  - { name: filed, do: flag, where: [ input ], match: { regex: "code-[0-9]+" } }
`

describe.skipIf(withoutBrowser())('the page of guards', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.declare(FILED)
    await stage.api('PUT', '/api/option/', {
      key: 'GroupRatio',
      value: JSON.stringify({ default: 1, vip: 0.8, sales: 1 }),
    })
    stage.upstream.script('scripted', { kind: 'whole' })
  })
  afterAll(async () => {
    await stage?.close()
  })

  const guards = (): Promise<readonly Guard[]> => stage.api<readonly Guard[]>('GET', '/api/guards')
  const guardNamed = async (wanted: string): Promise<Guard | undefined> =>
    (await guards()).find(({ name }) => name === wanted)
  const say = async (content: string): Promise<string> => {
    const answer = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${PEOPLE.root.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'scripted', messages: [{ role: 'user', content }] }),
    })
    await answer.text()
    return answer.headers.get('x-request-id') ?? ''
  }

  test('guards are listed with their verdicts, and a guard of gateway.yaml is marked', async () => {
    await say('code-1 and code-2')
    const page = await stage.open('admin', '/guards')
    const row = page.getByRole('row', { name: /filed/ })
    await row.waitFor()
    await row.getByTitle('from gateway.yaml').waitFor()
    expect(await row.getByRole('cell').allInnerTexts()).toEqual([
      'filed',
      'Acts',
      'Report',
      'Regular expressions: code-[0-9]+',
      '1',
      '2',
      '0',
      '0',
      expect.stringMatching(/ms$/),
      '',
    ])
    await row.getByRole('link', { name: 'filed' }).click()
    await page.getByText('This guard is declared in gateway.yaml, and can be changed there alone.').waitFor()
    expect(await page.getByRole('button', { name: 'Save changes' }).count()).toBe(0)
    await page.getByRole('textbox', { name: 'Text', exact: true }).fill('see code-7')
    await page.getByRole('button', { name: 'Try', exact: true }).click()
    const outcome = page.getByRole('region', { name: 'Outcome' })
    await outcome.getByText('Reported, 1 match').waitFor()
    expect(await axeViolations(page)).toEqual([])
    await page.close()
  })

  test('a new guard can be tried on a text, then added, changed and deleted', async () => {
    const page = await stage.open('admin', '/guards')
    await page.getByRole('link', { name: 'Add guard' }).click()
    await page.getByRole('heading', { level: 1, name: 'Add guard' }).waitFor()
    const choose = async (label: string, option: string): Promise<void> => {
      await page.getByRole('combobox', { name: label, exact: true }).click()
      await page.getByRole('option', { name: option, exact: true }).click()
    }
    await choose('Action', 'Redact')
    await choose('Mode', 'Acts')
    await choose('Kind', 'Words')
    await page.getByRole('textbox', { name: 'Text in its place' }).fill('#')
    await page.getByRole('checkbox', { name: 'Results of tools' }).uncheck()
    const words = page.getByRole('textbox', { name: 'Words and phrases' })
    const attempt = page.getByRole('button', { name: 'Try', exact: true })
    await page.getByRole('textbox', { name: 'Text', exact: true }).fill('over yonder')
    await attempt.click()
    await expect.poll(() => words.getAttribute('aria-invalid')).toBe('true')
    await words.fill('yonder\nproject x')
    await attempt.click()
    const outcome = page.getByRole('region', { name: 'Outcome' })
    await outcome.getByText('Redacted, 1 match').waitFor()
    expect(await outcome.locator('pre').innerText()).toBe('over #')
    expect(await guardNamed('draft')).toBeUndefined()
    expect(await axeViolations(page)).toEqual([])

    await page.getByRole('button', { name: 'Add guard' }).click()
    const name = page.getByRole('textbox', { name: 'Name', exact: true })
    await expect.poll(() => name.evaluate((input) => input === document.activeElement)).toBe(true)
    await name.fill('filed')
    await page.getByRole('button', { name: 'Add guard' }).click()
    await page.getByText('there is a guard "filed" already').waitFor()
    await name.fill('words')
    await page.getByRole('button', { name: 'Add guard' }).click()
    await page.getByRole('heading', { level: 1, name: 'words' }).waitFor()
    expect(await guardNamed('words')).toMatchObject({
      do: 'redact',
      mode: 'enforce',
      where: ['input', 'output', 'tool_arguments'],
      match: { words: ['yonder', 'project x'] },
      with: '#',
      models: null,
      sample: 1,
    })

    await choose('Kind', 'Personal data')
    await page.getByRole('checkbox', { name: 'E-mail addresses' }).check()
    const models = page.getByRole('combobox', { name: 'Models' })
    await models.fill('scripted')
    await models.press('Enter')
    await page.getByRole('textbox', { name: 'Share of calls' }).fill('2')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText('Enter a number from 0 to 1.').waitFor()
    await page.getByRole('textbox', { name: 'Share of calls' }).fill('0.5')
    await page.getByRole('button', { name: 'Save changes' }).click()
    // The notice of the guard's creation may still be there.
    await page.getByText('Guard “words” saved').first().waitFor()
    await expect
      .poll(() => guardNamed('words'))
      .toMatchObject({
        match: { pii: ['email'] },
        models: ['scripted'],
        sample: 0.5,
        with: '#',
      })

    await page.goto('/guards')
    await page.getByRole('button', { name: 'Delete words' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Guard “words” deleted').waitFor()
    expect(await guardNamed('words')).toBeUndefined()
    await page.goto('/guards/words')
    await page.getByText('This guard is no longer there.').waitFor()
    await page.close()
  })

  test("a guard with a kind of match that has no form fields is edited as JSON, and invalid JSON shows the gateway's message", async () => {
    const page = await stage.open('root', '/guards?new=1')
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('other')
    await page.getByRole('combobox', { name: 'Kind', exact: true }).click()
    await page.getByRole('option', { name: 'Another kind' }).click()
    const json = page.getByRole('textbox', { name: 'Match as JSON' })
    await json.fill('[]')
    await page.getByRole('button', { name: 'Add guard' }).click()
    await page.getByText('Enter a JSON object.').waitFor()
    await json.fill('{"nothing": true}')
    await page.getByRole('button', { name: 'Add guard' }).click()
    await page.getByText(/match: expected a mapping with one of/).waitFor()
    await json.fill('{"words": ["yonder"]}')
    await page.getByRole('button', { name: 'Add guard' }).click()
    await page.getByRole('heading', { level: 1, name: 'other' }).waitFor()
    expect(await guardNamed('other')).toMatchObject({ match: { words: ['yonder'] }, mode: 'monitor' })
    await stage.api('DELETE', '/api/guards/other')
    await page.close()
  })

  test('a guard that calls a service is edited in a form; its secrets are hidden, and stay unless they are replaced', async () => {
    const page = await stage.open('root', '/guards?new=1')
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('served')
    await page.getByRole('combobox', { name: 'Kind', exact: true }).click()
    await page.getByRole('option', { name: 'Webhook' }).click()
    await page.getByRole('textbox', { name: 'Address' }).fill('http://127.0.0.1:9/checks')
    await page.getByRole('textbox', { name: 'Headers' }).fill('x-secret: a-secret-value')
    await page.getByRole('textbox', { name: 'Timeout' }).fill('3s')
    await page.getByRole('button', { name: 'Add guard' }).click()
    await page.getByRole('heading', { level: 1, name: 'served' }).waitFor()
    const headers = page.getByRole('textbox', { name: 'Headers' })
    expect(await headers.inputValue()).toBe('x-secret: ***')
    await page.getByRole('textbox', { name: 'Timeout' }).fill('4s')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await expect
      .poll(() => guardNamed('served'))
      .toMatchObject({
        timeout: 4000,
        match: { webhook: { url: 'http://127.0.0.1:9/checks', headers: { 'x-secret': '***' } } },
      })
    await page.getByRole('textbox', { name: 'Address' }).fill('http://127.0.0.1:9/elsewhere')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByText(/expected headers in full/).waitFor()
    await stage.api('DELETE', '/api/guards/served')
    await page.close()
  })

  test('the page of a call shows the verdicts of guards, which link to the guards for administrators', async () => {
    const id = await say('code-1')
    const page = await stage.open('root', `/logs/${id}`)
    const dialog = page.getByRole('dialog', { name: 'Call details' })
    await dialog.getByText('Reported, 1 match').waitFor()
    await dialog.getByRole('link', { name: 'Open filed' }).click()
    await page.getByRole('heading', { level: 1, name: 'filed' }).waitFor()
    await page.close()
  })

  test('the forms of keys and groups offer the guards to choose from', async () => {
    const page = await stage.open('root', '/keys?new=1')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Models and more limits' }).click()
    const guard = dialog.getByRole('combobox', { name: 'Guards' })
    await guard.click()
    await page.getByRole('option', { name: 'filed' }).click()
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('dialog', { name: 'Key created' }).waitFor()
    const { items } = await stage.api<{ items: { guards: string[] }[] }>('GET', '/api/token/')
    expect(items[0]?.guards).toEqual(['filed'])

    await page.goto('/groups?group=sales')
    const ofGroup = page.getByRole('dialog', { name: 'sales' }).getByRole('combobox', { name: 'Guards' })
    const save = page.getByRole('button', { name: 'Save changes' })
    await ofGroup.fill('nowhere')
    await ofGroup.press('Enter')
    await save.click()
    await page.getByText(/there is no guard "nowhere"|expected .* guard/).waitFor()
    await ofGroup.press('Backspace')
    await ofGroup.fill('filed')
    await ofGroup.press('Enter')
    await save.click()
    await save.waitFor({ state: 'detached' })
    const options = await stage.api<{ key: string; value: string }[]>('GET', '/api/option/')
    expect(options.find(({ key }) => key === 'GroupGuards')?.value).toMatch(/"sales":\["filed"\]/)
    await page.close()
  })
})
