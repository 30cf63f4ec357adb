import { AxeBuilder } from '@axe-core/playwright'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { completionText, usageText } from '../../test/fixtures/behaviour.ts'
import { call } from '../../test/fixtures/client.ts'
import { withoutBrowser } from './chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from './console-stage.ts'

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']
/** What a page must not run. */
const SCRIPT = '<img src=x onerror="document.title=1">'

interface Listed {
  readonly items: readonly {
    readonly id: string
    readonly session: string
    readonly content_address: string
  }[]
}

describe.skipIf(withoutBrowser())('what was said, in the console', () => {
  let stage: ConsoleStage
  let calls: Listed['items'] = []

  beforeAll(async () => {
    stage = await startConsoleStage()
    await stage.declare('content_log: { what: full, readers: 100 }\n')
    const messages: { role: string; content: string }[] = []
    for (const [question, answer] of [
      ['What is it?', `A cat ${SCRIPT}`],
      ['And now?', 'Still a cat'],
    ] as const) {
      messages.push({ role: 'user', content: question })
      stage.upstream.script('scripted', { kind: 'whole', body: completionText(answer, usageText(20, 5)) })
      const { status, text } = await call(
        stage.gateway.url,
        { model: 'scripted', messages },
        {
          key: PEOPLE.caller.key.replace(/^sk-/, ''),
          headers: { 'x-session-id': 'a-conversation' },
        },
      )
      expect(status, text).toBe(200)
      messages.push({ role: 'assistant', content: answer })
    }
    await vi.waitFor(async () => {
      calls = (await stage.api<Listed>('GET', '/api/log/?model_name=scripted')).items
      expect(calls.map(({ content_address: address }) => address === '')).toEqual([false, false])
    })
  })
  afterAll(async () => {
    await stage?.close()
  })

  test.each(['en-US', 'zh-CN'])(
    'a call shows its conversation when it is asked for, in %s',
    async (locale) => {
      const page = await stage.open('root', `/logs/${calls[0]?.id}`, { locale })
      const [show, recorded] =
        locale === 'en-US'
          ? ['Show what was said', 'Each look at what others said is recorded.']
          : ['显示对话内容', '每次查看他人的内容都会被记录。']
      await page.getByText(recorded).waitFor()
      await page.getByRole('button', { name: show }).click()
      await page.getByText('Still a cat', { exact: true }).waitFor()
      await page.getByText(`A cat ${SCRIPT}`, { exact: true }).waitFor()
      expect(await page.locator('details').count()).toBe(2)
      const { violations } = await new AxeBuilder({ page }).withTags(TAGS).analyze()
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([])
      await page.context().close()
    },
  )

  test('a session reads as a thread, in which nothing is said twice', async () => {
    const page = await stage.open('root', `/sessions/${calls[0]?.session}`)
    await page.getByRole('button', { name: 'Read as a thread' }).click()
    await page.getByText('Still a cat', { exact: true }).waitFor()
    expect(await page.getByText('What is it?', { exact: true }).count()).toBe(1)
    expect(await page.getByText('And now?', { exact: true }).count()).toBe(1)
    const { violations } = await new AxeBuilder({ page }).withTags(TAGS).analyze()
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([])
    await page.context().close()
  })

  test('members see their own, and administrators below the role of readers nothing', async () => {
    const own = await stage.open('caller', `/logs/${calls[0]?.id}`)
    await own.getByRole('button', { name: 'Show what was said' }).click()
    await own.getByText('Still a cat', { exact: true }).waitFor()
    expect(await own.getByText('Each look at what others said is recorded.').count()).toBe(0)
    await own.context().close()
    const admin = await stage.open('admin', `/logs/${calls[0]?.id}`)
    await admin.getByRole('button', { name: 'Show what was said' }).click()
    await admin.getByText('Nothing is kept any more, or you may not read it.').waitFor()
    await admin.context().close()
    expect(stage.complaints).toEqual([])
  })
})
