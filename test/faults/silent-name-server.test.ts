import { afterAll, beforeAll, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type Network, startNetwork } from '../fixtures/network.ts'

const PROVIDER = 'provider.test'

let network: Network
let fixtures: readonly Fixture[]
beforeAll(async () => {
  network = await startNetwork((name) => (name === PROVIDER ? ['127.0.0.1'] : undefined), 0)
  const started = (allowed: boolean): Promise<Fixture> =>
    startFixture(
      (upstream) => ({
        options: { retries: 0, media: { timeout: '300ms', allow_private_networks: allowed } },
        models: priced(['m']),
        channels: [
          channel('m', upstream.baseUrl('m').replace('127.0.0.1', PROVIDER), { protocol: 'messages' }),
        ],
        users: [ROOT, user(2, 'ann', [token('ann')])],
      }),
      { env: network.env },
    )
  fixtures = await Promise.all([started(false), started(true)])
})
afterAll(async () => {
  await Promise.all(fixtures?.map((one) => one.close()) ?? [])
  await network?.stop()
})

test.each([
  ['public addresses alone', 0],
  ['private networks too', 1],
])(
  'URLs of clients whose name server is silent delay no look-up of a provider, where clients may reach %s',
  async (_, index) => {
    const fixture = fixtures[index] as Fixture
    const names = Array.from({ length: 8 }, (_, at) => `silent${index}${at}.test`)
    const content = names.map((name) => ({ type: 'image_url', image_url: { url: `http://${name}/` } }))
    const refused = await fixture.chat('ann', { model: 'm', messages: [{ role: 'user', content }] })
    expect(refused).toMatchObject({ status: 400, text: expect.stringContaining('took too long') })
    expect(network.dns.asked()).toContain(names[0])
    fixture.upstream.script('m', wholeMessage([{ text: 'Hello.' }]))
    const answer = await fixture.chat('ann', { model: 'm', messages: [{ role: 'user', content: 'hi' }] })
    expect(answer).toMatchObject({ status: 200 })
  },
)
