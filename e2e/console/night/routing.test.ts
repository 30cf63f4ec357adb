import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

/** The parts of a simulated call that this file compares. */
interface Simulated {
  readonly refusal: { readonly status: number; readonly code: string; readonly message: string } | null
  readonly hold: number
}

describe.skipIf(withoutBrowser())('the page of routes', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
    for (const [name, priority, group] of [
      ['front', 10, 'default,vip'],
      ['rear', 0, 'default'],
    ] as const)
      await stage.api('POST', '/api/channel/', {
        mode: 'single',
        channel: {
          name,
          priority,
          type: 1,
          base_url: stage.upstream.baseUrl(name),
          key: 'k',
          models: 'routed',
          group,
        },
      })
    await stage.api('PUT', '/api/models/price', { model: 'routed', price: { input: 1, output: 2 } })
    await stage.api('PUT', '/api/option/', { key: 'ModelFallback', value: '{"routed":["scripted"]}' })
  })
  afterAll(async () => {
    await stage?.close()
  })

  const simulated = (more: object): Promise<Simulated> =>
    stage.api<Simulated>('POST', '/api/routing/simulate', {
      model: 'routed',
      group: 'default',
      protocol: 'chat',
      prompt_tokens: 1000,
      ...more,
    })

  test('the route of a model lists its channels and fallbacks with shares, and can be recomputed without one of them', async () => {
    const page = await stage.open('root', '/routing')
    const model = page.getByRole('combobox', { name: 'Model' })
    await model.click()
    await model.pressSequentially('routed')
    await page.getByRole('option', { name: 'routed' }).click()
    const items = page.getByRole('list', { name: 'Route' }).getByRole('listitem')
    const order = async () =>
      (await items.allInnerTexts()).map((text) => /front|rear|scripted/.exec(text)?.[0])
    await expect.poll(order).toEqual(['front', 'rear', 'scripted'])
    const steps = [
      /priority 10[\s\S]*front[\s\S]*100%[\s\S]*Not called yet/,
      /priority 0[\s\S]*rear[\s\S]*100%/,
      /fallback scripted[\s\S]*scripted[\s\S]*100%/,
    ]
    for (const [place, step] of steps.entries()) expect(await items.nth(place).innerText()).toMatch(step)
    expect(page.url()).toContain('model=routed')
    await page.getByRole('switch', { name: 'Without front' }).check({ force: true })
    const left = items.filter({ hasText: 'left out here' })
    await left.waitFor()
    expect(await left.innerText()).toMatch(/front\s+0%/)
    await page.getByRole('switch', { name: 'Without front' }).uncheck({ force: true })
    await page.getByRole('combobox', { name: 'Group' }).click()
    await page.getByRole('option', { name: 'vip' }).click()
    await expect.poll(order).toEqual(['front'])
    expect(page.url()).toContain('group=vip')
    await page.close()
  })

  test('a simulated call shows the channel that it would use and its hold, or its refusal, and sends no request', async () => {
    const page = await stage.open('root', '/routing?model=routed')
    await page.getByRole('button', { name: 'Simulate a call' }).click()
    const simulation = page.getByRole('region', { name: 'Simulation' })
    await simulation.getByText('The call would go to: front.').waitFor()
    const { hold } = await simulated({})
    expect(hold).toBeGreaterThan(0)
    await expect
      .poll(() => simulation.locator('dd [title]').getAttribute('title'))
      .toBe(`${hold / 500_000} USD`)
    await page.getByRole('switch', { name: 'Without front' }).check({ force: true })
    await simulation.getByText('The call would go to: rear.').waitFor()

    await page.goto('/routing?model=no-such-model')
    await page.getByRole('button', { name: 'Simulate a call' }).click()
    const { refusal } = await simulated({ model: 'no-such-model' })
    await simulation.getByText(`Refused with ${refusal?.status} ${refusal?.code}:`).waitFor()
    expect(await simulation.locator('q').innerText()).toBe(refusal?.message)
    for (const lane of ['front', 'rear']) expect(stage.upstream.received(lane)).toHaveLength(0)
    await page.close()
  })
})
