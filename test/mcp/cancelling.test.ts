import { textTool } from '@sluice/simulator'
import { expect, onTestFinished, test } from 'vitest'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { beginSession, startMcpServer } from '../fixtures/mcp.ts'

test('a running call is cancelled by its id, also if another call of the session with that id has ended', async () => {
  const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = Promise.withResolvers<string>()
  let isCancelled = false
  const server = await startMcpServer({
    name: 'web',
    versions: ['2026-07-28'],
    tools: () => [
      textTool({ name: 'wait' }, async ({ arguments: { number }, signal }) => {
        begun[Number(number)]?.resolve()
        if (number === 0) return first.promise
        signal.addEventListener('abort', () => (isCancelled = true))
        return new Promise<string>(() => {})
      }),
    ],
    ttlMs: 60_000,
  })
  onTestFinished(() => server.close())
  const fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    // Only the client ends the call.
    mcp: { servers: [{ name: 'web', url: server.url, timeout: '1h' }] },
  }))
  onTestFinished(() => fixture.close())
  const session = await beginSession(fixture.gateway.url, 'ann')
  const call = (number: number) =>
    session.ask('tools/call', { name: 'web_wait', arguments: { number } }, 'same')
  const lasting = call(1)
  await begun[1]?.promise
  const short = call(0)
  await begun[0]?.promise
  first.resolve('done')
  expect((await short).message.result).toMatchObject({ content: [{ text: 'done' }] })
  await session.notify('notifications/cancelled', { requestId: 'same' })
  await expect.poll(() => isCancelled, { message: 'the server sees that its call is cancelled' }).toBe(true)
  await lasting
})
