import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import type { Patch } from '../fixtures/patch.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** A gateway that throws on a response: an unknown bug. */
const THROWS: Patch = {
  file: 'src/call/whole-response.ts',
  text: 'const bytes = this.#bytes.take()',
  by: "const bytes = this.#bytes.take(); if (bytes.includes('stumbling block')) throw new Error('unforeseen')",
}

const copy = await patchedProgram([THROWS])
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      models: priced(['m']),
      channels: [
        channel('first', upstream.baseUrl('first'), { models: ['m'], priority: 5 }),
        channel('spare', upstream.baseUrl('spare'), { models: ['m'] }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
  copy.discard()
})

async function resting(): Promise<number> {
  const { text } = await call(fixture.gateway.url, undefined, { method: 'GET', path: '/metrics' })
  return Number(/^sluice_resting_channels (\d+)$/m.exec(text)?.[1])
}

test('an exception while a response is handled ends its call only, and the channel that the call probed is restored', async () => {
  const { upstream } = fixture
  upstream.script('spare', { kind: 'whole' })
  upstream.script('first', { kind: 'status', status: 500, body: errorBody('out of order') })
  for (let i = 0; i < 5; i++) expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  // On a slow machine the rest may be over; a further call then begins the next one.
  const restingAfterCall = async (): Promise<number> => {
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
    return resting()
  }
  await expect.poll(restingAfterCall).toBe(1)
  await expect.poll(resting, { interval: 100 }).toBe(0)

  upstream.script('first', { kind: 'whole', content: 'stumbling block' })
  const answer = await fixture.chat('ann', ask('m'))
  expect(answer.status).toBe(500)
  expect(answer.json().error).toMatchObject({ type: 'api_error', code: 'internal_error' })

  upstream.script('first', { kind: 'whole', content: 'back' })
  expect((await fixture.chat('ann', ask('m'))).json().choices[0]?.message.content).toBe('back')
  expect(await resting()).toBe(0)
})
