import { Agent } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { fetchMedia } from './fetch-media.ts'

test('a fetch ends when its signal is aborted, also before there is a connection', async () => {
  const connecting = Promise.withResolvers<void>()
  const agent = new Agent({ connect: () => connecting.resolve() })
  onTestFinished(() => agent.destroy())
  const leaving = new AbortController()
  const bounds = { maxBytes: 1, signal: leaving.signal, take: () => {} }
  const fetching = fetchMedia('http://media.example/', agent, bounds)
  await connecting.promise
  leaving.abort(new DOMException('late', 'TimeoutError'))
  await expect(fetching).rejects.toThrow('its server took too long')
})
